/* SPDX-License-Identifier: BSD-3-Clause */
/* The largest flows of an incident, for incident.json and index.html. */
#include <inttypes.h>
#include <stdio.h>

#include "base/json.h"
#include "base/util.h"
#include "flight.h"
#include "flow_report.h"

#define TOP 10

/* ---- incident.json */

static json_t *port_json(uint16_t port)
{
	return port ? json_count(port) : json_null();
}

static json_t *flow_json(const struct flow *w)
{
	const struct flow_key *k = &w->key;
	char src[ADDRESS_TEXT], dst[ADDRESS_TEXT], protocol[16];

	return json_pack("{s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "source",
		json_text(flow_address(k, k->src, src)), "destination",
		json_text(flow_address(k, k->dst, dst)), "source_port", port_json(k->src_port),
		"destination_port", port_json(k->dst_port), "protocol",
		json_text(flow_protocol(k, protocol)), "vlan",
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

static void put_flow(json_t *table, const struct flow *w)
{
	json_t *row = view_row(table);
	char text[FLOW_TEXT];

	json_array_append_new(row, json_text(flow_text(&w->key, text)));
	json_array_append_new(row, json_count(w->packets[0]));
	json_array_append_new(row, json_count(w->packets[1]));
	json_array_append_new(row, json_count(w->bytes));
}

static bool is_in(const struct flow *w, const struct flow **list, size_t n)
{
	while (n--)
		if (list[n] == w)
			return true;
	return false;
}

void flow_report_view(const struct incident *i, struct view *v)
{
	const struct flow *by_packets[TOP], *by_bytes[TOP];
	char text[256], count[FORMAT_LEN], lacks[FORMAT_LEN];
	size_t packets, bytes;
	json_t *table;

	if (!i->flows || !flows_count(i->flows))
		return;
	table = view_panel(v, "table", "flows", "Largest flows");
	format_count(count, flows_count(i->flows));
	if (flows_error(i->flows))
		snprintf(text, sizeof(text),
			"Of %s flows, the largest; a count may lack up to %s packets.", count,
			format_count(lacks, flows_error(i->flows)));
	else
		snprintf(text, sizeof(text), "Of %s flows, the largest by packets and by bytes.",
			count);
	view_panel_note(table, text);
	if (i->rows)
		json_object_set_new(table, "groups",
			json_pack("{s:s, s:s, s:s, s:s}", "table", "packets", "by", "packet",
				"count", "direction", "sum", "bytes"));
	view_column(table, "flow", "text");
	view_column(table, "received", "count");
	view_column(table, "sent", "count");
	view_column(table, "bytes", "count");
	packets = flows_top(i->flows, FLOWS_BY_PACKETS, by_packets, TOP);
	bytes = flows_top(i->flows, FLOWS_BY_BYTES, by_bytes, TOP);
	for (size_t k = 0; k < packets; k++)
		put_flow(table, by_packets[k]);
	for (size_t k = 0; k < bytes; k++)
		if (!is_in(by_bytes[k], by_packets, packets))
			put_flow(table, by_bytes[k]);
}
