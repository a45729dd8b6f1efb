/* SPDX-License-Identifier: BSD-3-Clause */
/* The largest flows of an incident, for incident.json and index.html. */
#include <inttypes.h>
#include <stdio.h>

#include "base/html.h"
#include "base/json.h"
#include "base/util.h"
#include "flight.h"
#include "flow_report.h"

#define TOP 10

/* ---- incident.json */

static json_t *end_json(const struct flow_key *k, const uint8_t *address, uint16_t port)
{
	char text[ADDRESS_TEXT];

	return json_pack("{s:o,s:o}", "address", json_text(flow_address(k, address, text)), "port",
		port ? json_count(port) : json_null());
}

static json_t *flow_json(const struct flow *w)
{
	const struct flow_key *k = &w->key;
	char protocol[16];

	return json_pack("{s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "source",
		end_json(k, k->src, k->src_port), "target", end_json(k, k->dst, k->dst_port),
		"protocol", json_text(flow_protocol(k, protocol)), "vlan",
		k->vlan == FLOW_NO_VLAN ? json_null() : json_count(k->vlan), "received",
		json_count(w->packets[0]), "sent", json_count(w->packets[1]), "bytes",
		json_count(w->bytes));
}

static json_t *top_json_of(struct flows *f, enum flow_order order)
{
	const struct flow *top[TOP];
	size_t n = flows_top(f, order, top, TOP);
	json_t *list = json_array();

	for (size_t i = 0; i < n; i++)
		json_array_append_new(list, flow_json(top[i]));
	return list;
}

json_t *flow_report_json(const struct incident *i)
{
	if (!i->flows)
		return json_null();
	return json_pack("{s:o,s:o,s:o,s:o}", "count", json_count(flows_count(i->flows)),
		"uncounted_packets_at_most", json_count(flows_error(i->flows)), "by_packets",
		top_json_of(i->flows, FLOWS_BY_PACKETS), "by_bytes",
		top_json_of(i->flows, FLOWS_BY_BYTES));
}

/* ---- index.html */

static void put_flow(FILE *f, const struct flow *w)
{
	char text[FLOW_TEXT], received[FORMAT_LEN], sent[FORMAT_LEN], bytes[FORMAT_LEN];

	fputs("<tr><td>", f);
	html_text(f, flow_text(&w->key, text));
	fprintf(f, "</td><td>%s</td><td>%s</td><td>%s</td></tr>\n",
		format_count(received, w->packets[0]), format_count(sent, w->packets[1]),
		format_count(bytes, w->bytes));
}

static void put_table(FILE *f, struct flows *flows, enum flow_order order, const char *title)
{
	const struct flow *top[TOP];
	size_t n = flows_top(flows, order, top, TOP);

	fprintf(f,
		"<h3>%s</h3>\n<table class=\"flows\"><tr><th>flow</th><th>received</th>"
		"<th>sent</th><th>bytes</th></tr>\n",
		title);
	for (size_t i = 0; i < n; i++)
		put_flow(f, top[i]);
	fputs("</table>\n", f);
}

void flow_report_page(const struct incident *i, FILE *f)
{
	char text[FORMAT_LEN];

	if (!i->flows || !flows_count(i->flows))
		return;
	fprintf(f, "<h2>Top flows</h2>\n<p>%s flows of this window",
		format_count(text, flows_count(i->flows)));
	if (flows_error(i->flows))
		fprintf(f,
			" are the largest; the smallest were not counted to the end, and a count "
			"may lack up to %s packets",
			format_count(text, flows_error(i->flows)));
	fputs(".</p>\n", f);
	put_table(f, i->flows, FLOWS_BY_PACKETS, "By packets");
	put_table(f, i->flows, FLOWS_BY_BYTES, "By bytes");
}
