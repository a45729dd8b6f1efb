/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "counted/counted.h"
#include "base/util.h"
#include "facts.h"
#include "sheets.h"
#include "packet/size_json.h"

static void put_count(json_t *to, const char *key, uint64_t n)
{
	json_put(to, key, json_count(n));
}

static void put_if(json_t *to, const char *key, bool known, uint64_t n)
{
	json_put(to, key, known ? json_count(n) : json_null());
}

/* By the port's number in the recording, and its name, of which a recording of several applications
 * has "APP:" in front. */
json_t *port_json(const struct report *r, uint32_t port)
{
	const struct port *p = records_port(r->records, port);
	size_t n = strlen(p->application);
	bool both = n && !strncmp(p->name, p->application, n) && p->name[n] == ':';

	return json_port(port, both ? p->name + n + 1 : p->name);
}

/* ---- latency ---- */

/* [lowest value, lowest value of the next bucket, packets], ns. */
static json_t *histogram(const struct spread *s)
{
	json_t *j = json_array();

	for (uint32_t b = 0; b < SPREAD_BUCKETS; b++) {
		uint64_t width, low = rt_log_bucket_low(b, SPREAD_BITS, &width);

		if (s->bucket[b])
			json_array_append_new(
				j, json_pack("[I,I,I]", (json_int_t)low, (json_int_t)(low + width),
					   (json_int_t)s->bucket[b]));
	}
	return j;
}

json_t *spread_json(const struct spread *s)
{
	json_t *j = json_object();

	put_count(j, "packets", s->count);
	json_put(j, "min_ns", s->count ? json_count(s->min) : json_null());
	json_put(j, "mean_ns", json_ns(spread_mean(s)));
	for (int q = 0; q < QUANTILES; q++) {
		char key[16];

		snprintf(key, sizeof(key), "%s_ns", quantile_keys[q]);
		json_put(j, key, json_ns(spread_quantile(s, quantile_shares[q])));
	}
	json_put(j, "max_ns", s->count ? json_count(s->max) : json_null());
	json_put(j, "histogram_ns", histogram(s));
	return j;
}

static json_t *queue(uint16_t n)
{
	return n == UINT16_MAX ? json_null() : json_count(n);
}

static json_t *ways(const struct report *r, const struct keyed *k, bool queues)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < k->count; i++) {
		const struct way *w = k->things[i];
		json_t *j = json_object();

		json_put(j, "rx_port", port_json(r, w->ends.rx_port));
		json_put(j, "tx_port", port_json(r, w->ends.tx_port));
		if (queues) {
			json_put(j, "rx_queue", queue(w->ends.rx_queue));
			json_put(j, "tx_queue", queue(w->ends.tx_queue));
		}
		put_count(j, "copies", w->copies);
		json_put(j, "latency", spread_json(&w->spread));
		json_array_append_new(list, j);
	}
	return list;
}

static json_t *sizes(const struct join *j)
{
	json_t *list = json_array();

	for (int i = 0; i < SIZES; i++) {
		json_t *size = size_json((uint32_t)i);

		json_put(size, "latency", spread_json(&j->sizes[i]));
		json_array_append_new(list, size);
	}
	return list;
}

static json_t *over_time(const struct slices *s)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < s->count; i++) {
		const struct slice *at = &s->at[i];
		json_t *j = json_object();

		json_put(j, "start", json_time(s->start_ns + ((uint64_t)i << s->shift)));
		put_count(j, "received", at->received);
		put_count(j, "not_sent", at->not_sent);
		put_count(j, "copies", at->copies);
		put_count(j, "reordered", at->reordered);
		for (int q = 0; q < QUANTILES; q++) {
			char key[16];

			snprintf(key, sizeof(key), "%s_ns", quantile_keys[q]);
			json_put(j, key,
				json_ns(buckets_quantile(at->bucket, SLICE_BITS, quantile_shares[q],
					0, (double)at->max_ns)));
		}
		put_count(j, "max_ns", at->max_ns);
		json_array_append_new(list, j);
	}
	return list;
}

/* ---- flows ---- */

static json_t *flow(const struct report *r, const struct joined_flow *f)
{
	json_t *j = json_object();
	char text[HEADERS_TEXT];

	json_put(j, "rx_port", port_json(r, f->key.port));
	json_put(j, "flow", json_text(flow_text(&f->key, text)));
	put_count(j, "received", f->received);
	put_count(j, "sent", f->sent);
	put_count(j, "not_sent", f->not_sent);
	json_put(j, "not_offered", r->j->fates.present ? json_count(f->not_offered) : json_null());
	put_count(j, "copies", f->copies);
	put_count(j, "first_frame", f->first_number);
	put_count(j, "reordered", f->reordered);
	put_if(j, "most_behind", f->reordered, f->most_behind);
	put_if(j, "latest_by_ns", f->reordered, f->most_late_ns);
	put_if(j, "reordered_frame", f->reordered, f->reordered_number);
	put_if(j, "min_ns", f->bucket, f->min);
	json_put(j, "mean_ns", json_ns(f->bucket ? (double)f->sum / (double)f->sent : NAN));
	json_put(j, "p50_ns", json_ns(f->bucket ? flow_quantile(f, 0.5) : NAN));
	json_put(j, "p99_ns", json_ns(f->bucket ? flow_quantile(f, 0.99) : NAN));
	put_if(j, "max_ns", f->bucket, f->max);
	return j;
}

static json_t *flows(const struct report *r)
{
	uint32_t count, *ranked = flows_ranked(r->j, r->order, r->flows, &count);
	json_t *list = json_array();

	for (uint32_t i = 0; i < count; i++)
		json_array_append_new(list, flow(r, joined_flow_at(&r->j->flows, ranked[i])));
	free(ranked);
	return list;
}

/* ---- what else happened ---- */

static json_t *protocol_json(const struct report *r, const struct protocol *p)
{
	char protocol[PROTOCOL_TEXT], text[HEADERS_TEXT];
	json_t *j = json_object();

	json_put(j, "rx_port", port_json(r, p->port));
	json_put(j, "protocol", json_text(headers_protocol(&p->headers, protocol)));
	json_put(j, "packets", json_count(p->count));
	json_put(j, "first_frame", json_count(p->number));
	json_put(j, "first_time", json_time(p->ns));
	json_put(j, "first", json_text(headers_text(&p->headers, text)));
	json_put(j, "first_bytes", json_count(p->length));
	return j;
}

json_t *protocols_json(const struct report *r, const struct keyed *k)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < k->count; i++)
		json_array_append_new(list, protocol_json(r, k->things[i]));
	return list;
}

static json_t *changes(const struct join *j)
{
	json_t *all = json_object();

	for (int c = 0; c < CHANGES; c++) {
		const struct changed *x = &j->changes[c];
		json_t *to = json_object();

		put_count(to, "packets", x->count);
		put_if(to, "rx_frame", x->count, x->rx_number);
		put_if(to, "tx_frame", x->count, x->tx_number);
		json_put(to, "example", json_text(x->count ? x->text : NULL));
		json_put(all, change_keys[c], to);
	}
	return all;
}

static json_t *times_sent(const struct join *j)
{
	json_t *list = json_array();

	for (int n = 2; n <= TIMES_MAX; n++) {
		json_t *to;

		if (!j->times[n])
			continue;
		to = json_object();
		put_count(to, "times", (uint64_t)n);
		json_put(to, "or_more", json_boolean(n == TIMES_MAX));
		put_count(to, "packets", j->times[n]);
		put_count(to, "first_frame", j->times_number[n]);
		json_array_append_new(list, to);
	}
	return list;
}

static void add_note(void *list, const char *text)
{
	json_array_append_new(list, json_text(text));
}

/* Totals of the whole file. */
static void put_totals(json_t *to, const struct join *j)
{
	put_count(to, "records", j->records);
	json_put(to, "first", json_time(j->first_ns));
	json_put(to, "last", json_time(j->last_ns));
	put_count(to, "timeout_ns", j->timeout_ns);
	put_count(to, "received", j->received);
	put_count(to, "sent", j->sent);
	put_count(to, "not_sent", j->not_sent);
	put_count(to, "open", j->open);
	put_count(to, "let_go", j->let_go);
	put_count(to, "copies", j->copies);
	put_count(to, "copies_same_queue", j->again);
	put_count(to, "made", j->made);
	put_count(to, "unknown", j->unknown);
	put_count(to, "received_without_id", j->rx_no_id);
	put_count(to, "without_direction", j->no_direction);
	put_count(to, "reordered", j->reordered);
	put_count(to, "reordered_flows", j->reordered_flows);
	put_count(to, "unchanged", j->unchanged);
	put_count(to, "negative_latency", j->negative);
	put_count(to, "out_of_time_order", j->disorder);
	put_count(to, "time_outliers", j->outliers);
	put_count(to, "repeated_ids", j->waitlist.repeated);
}

static json_t *port(const struct report *r, uint32_t i)
{
	const struct port *p = records_port(r->records, i);
	json_t *j = port_json(r, i);

	put_count(j, "received", p->received);
	put_count(j, "sent", p->sent);
	put_if(j, "lost", p->lost != NO_COUNT, p->lost_before + p->lost);
	put_if(j, "missed", p->missed != NO_COUNT, p->missed);
	return j;
}

/* Applications, with their ports. */
static json_t *applications(const struct report *r)
{
	uint32_t count = records_port_count(r->records);
	json_t *list = json_array();

	for (uint32_t i = 0; i < count; i++) {
		const struct port *p = records_port(r->records, i);
		json_t *app, *ports = json_array();
		uint32_t first = 0;

		while (records_port(r->records, first)->application_id != p->application_id)
			first++;
		for (uint32_t k = i; k < count && first == i; k++)
			if (records_port(r->records, k)->application_id == p->application_id)
				json_array_append_new(ports, port(r, k));
		app = json_application(*p->application ? p->application : NULL, 0, NULL);
		json_put(app, "ports", ports);
		if (first == i)
			json_array_append(list, app);
		json_decref(app);
	}
	return list;
}

int explain_json(const struct report *r, FILE *f)
{
	json_t *j = json_document("explain", applications(r));
	json_t *files = json_array(), *notes = json_array();

	for (unsigned i = 0; i < r->file_count; i++)
		json_array_append_new(files, json_text(r->files[i]));
	json_put(j, "files", files);
	json_put(j, "damage", json_text(r->damage));
	put_totals(j, r->j);
	json_put(j, "latency", spread_json(&r->j->all));
	json_put(j, "pairs", ways(r, &r->j->pairs, false));
	json_put(j, "queues", ways(r, &r->j->queues, true));
	json_put(j, "sizes", sizes(r->j));
	put_count(j, "slice_ns", UINT64_C(1) << r->j->slices.shift);
	json_put(j, "slices", over_time(&r->j->slices));
	put_count(j, "flow_count", r->j->flows.count);
	json_put(j, "flows", flows(r));
	json_put(j, "not_sent_by_protocol", protocols_json(r, &r->j->unsent));
	json_put(j, "changes", changes(r->j));
	json_put(j, "sent_more_than_once", times_sent(r->j));
	json_put(j, "fates", explain_fates_json(r));
	json_put(j, "counted_by_application",
		r->counted ? counted_json(r->counted, (struct counted_fates){0}) : json_null());
	notes_make(r, add_note, notes);
	json_put(j, "notes", notes);
	return json_print(j, f);
}
