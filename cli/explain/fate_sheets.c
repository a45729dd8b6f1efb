/* SPDX-License-Identifier: BSD-3-Clause */
/* The tables and JSON of recordings with fates. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "sheets.h"
#include "packet/size_json.h"

static double share(uint64_t n, uint64_t of)
{
	return of ? 100.0 * (double)n / (double)of : 0;
}

/* ---- by queue ---- */

static void put_row(struct sheet *s, const struct fate_row *row)
{
	sheet_put_count(s, 1, row->received);
	sheet_put_count(s, 2, row->count[KNOWN_OFFERED]);
	sheet_put_count(s, 3, row->count[KNOWN_NOT_OFFERED]);
	sheet_put(s, 4, "%.1f", share(row->count[KNOWN_NOT_OFFERED], row->received));
	sheet_put_count(s, 5, row->count[KNOWN_OPEN]);
	sheet_put_count(s, 6, row->count[KNOWN_UNKNOWN]);
	if (s->columns > 7)
		sheet_put_count(s, 7, row->count[KNOWN_LET_GO]);
}

static int by_place(const void *a, const void *b)
{
	const struct fate_row *x = *(const struct fate_row *const *)a;
	const struct fate_row *y = *(const struct fate_row *const *)b;

	return x->port != y->port ? (x->port > y->port ? 1 : -1) : (x->queue > y->queue) ? 1 : -1;
}

static int make_queues(struct sheet *s, const struct report *r)
{
	const struct known_fates *f = &r->j->fates;
	void **rows = keyed_sorted(&f->rows, by_place);
	uint32_t shown = f->rows.count > ROWS_MAX ? ROWS_MAX : f->rows.count;
	int ret = rows ? 0 : -ENOMEM;

	s->columns = f->total.count[KNOWN_LET_GO] ? 8 : 7;
	for (uint32_t i = 0; i < shown && !ret; i++) {
		const struct fate_row *row = rows[i];

		ret = sheet_row(s);
		if (ret)
			break;
		sheet_put(s, 0, "%s, %u", port_name(r, row->port), row->queue);
		put_row(s, row);
	}
	s->more = f->rows.count - shown;
	if (!ret && f->rows.count > 1)
		ret = sheet_row(s);
	if (!ret && f->rows.count > 1) {
		sheet_put(s, 0, "all");
		put_row(s, &f->total);
	}
	free(rows);
	return ret;
}

/* ---- not offered ---- */

static int make_flows(struct sheet *s, const struct report *r)
{
	uint32_t count, *ranked = flows_ranked(r->j, BY_NOT_OFFERED, r->flows, &count);
	int ret = ranked ? 0 : -ENOMEM;
	char text[HEADERS_TEXT];

	for (uint32_t i = 0; i < count && !ret; i++) {
		const struct joined_flow *f = joined_flow_at(&r->j->flows, ranked[i]);

		ret = sheet_row(s);
		if (ret)
			break;
		sheet_put(s, 0, "%s: %s", port_name(r, f->key.port), flow_text(&f->key, text));
		sheet_put_count(s, 1, f->not_offered);
		sheet_put_count(s, 2, f->received);
		sheet_put(s, 3, "%.1f", share(f->not_offered, f->received));
	}
	free(ranked);
	return ret;
}

static int make_sizes(struct sheet *s, const struct known_fates *f)
{
	int ret = 0;

	for (int i = 0; i < SIZES && !ret; i++) {
		if (!f->sizes[i])
			continue;
		ret = sheet_row(s);
		if (ret)
			break;
		sheet_put(s, 0, "%s", size_names[i]);
		sheet_put_count(s, 1, f->sizes[i]);
		sheet_put(s, 2, "%.1f", share(f->sizes[i], f->total.count[KNOWN_NOT_OFFERED]));
	}
	return ret;
}

static int by_packets(const void *a, const void *b)
{
	const struct fate_reason *x = *(const struct fate_reason *const *)a;
	const struct fate_reason *y = *(const struct fate_reason *const *)b;

	return x->packets != y->packets ? (x->packets < y->packets ? 1 : -1)
					: strcmp(x->text, y->text);
}

static int make_reasons(struct sheet *s, const struct known_fates *f)
{
	void **list = keyed_sorted(&f->reasons, by_packets);
	int ret = list ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < f->reasons.count && !ret; i++) {
		const struct fate_reason *reason = list[i];

		if (!reason->packets)
			break;
		ret = sheet_row(s);
		if (ret)
			break;
		sheet_put(s, 0, "%s", reason->text);
		sheet_put_count(s, 1, reason->packets);
		sheet_put(s, 2, "%.1f", share(reason->packets, f->total.count[KNOWN_NOT_OFFERED]));
	}
	free(list);
	return ret;
}

static json_t *reasons_json(const struct known_fates *f)
{
	void **list = keyed_sorted(&f->reasons, by_packets);
	json_t *all = json_array();

	for (uint32_t i = 0; list && i < f->reasons.count; i++) {
		const struct fate_reason *reason = list[i];
		json_t *j = json_object();

		json_put(j, "reason", json_text(reason->text));
		json_put(j, "packets", json_count(reason->packets));
		json_array_append_new(all, j);
	}
	free(list);
	return all;
}

static int make_noticed(struct sheet *s, const struct known_fates *f)
{
	int ret = f->noticed.count ? sheet_row(s) : 0;

	if (!f->noticed.count || ret)
		return ret;
	sheet_put(s, 0, "since the reception");
	sheet_put_spread(s, 1, &f->noticed);
	return 0;
}

int fate_sheets_make(struct sheet sheets[FATE_SHEETS], const struct report *r)
{
	const struct known_fates *f = &r->j->fates;
	const struct sheet empty[FATE_SHEETS] = {
		{.title = "What became of received packets",
			.heads = {"port, queue", "received", "offered", "not offered", "%", "open",
				"unknown", "let go"},
			.columns = 7},
		{.title = "Not offered",
			.heads = {"port: protocol", "packets", "frame", "the first of them"},
			.columns = 4,
			.wide = true},
		{.title = "Flows with the most packets not offered",
			.heads = {"flow", "not offered", "received", "%"},
			.columns = 4},
		{.title = "Not offered, by size", .heads = {"bytes", "packets", "%"}, .columns = 3},
		{.title = "Time until it was noticed",
			.heads = {"of packets not offered", LATENCY_HEADS},
			.columns = 8},
		{.title = "Not offered, by reason, as the application gave it",
			.heads = {"reason", "packets", "%"},
			.columns = 3},
	};
	int ret;

	for (int i = 0; i < FATE_SHEETS; i++)
		sheets[i] = empty[i];
	if (!f->present)
		return 0;
	ret = make_queues(&sheets[0], r);
	ret = ret ?: sheet_put_protocols(&sheets[1], r, &f->refused);
	ret = ret ?: make_flows(&sheets[2], r);
	ret = ret ?: make_sizes(&sheets[3], f);
	ret = ret ?: make_noticed(&sheets[4], f);
	return ret ?: make_reasons(&sheets[5], f);
}

/* ---- JSON ---- */

static void put_counts(json_t *to, const struct fate_row *row)
{
	json_put(to, "received", json_count(row->received));
	json_put(to, "offered", json_count(row->count[KNOWN_OFFERED]));
	json_put(to, "not_offered", json_count(row->count[KNOWN_NOT_OFFERED]));
	json_put(to, "open", json_count(row->count[KNOWN_OPEN]));
	json_put(to, "unknown", json_count(row->count[KNOWN_UNKNOWN]));
	json_put(to, "likely_offered", json_count(row->likely));
	json_put(to, "unseen", json_count(row->unseen));
	json_put(to, "port_stopped", json_count(row->stopped));
	json_put(to, "let_go", json_count(row->count[KNOWN_LET_GO]));
}

static json_t *queues(const struct report *r)
{
	void **rows = keyed_sorted(&r->j->fates.rows, by_place);
	json_t *list = json_array();

	for (uint32_t i = 0; i < r->j->fates.rows.count && rows; i++) {
		const struct fate_row *row = rows[i];
		json_t *j = json_object();

		json_put(j, "rx_port", port_json(r, row->port));
		json_put(j, "rx_queue", json_count(row->queue));
		put_counts(j, row);
		json_array_append_new(list, j);
	}
	free(rows);
	return list;
}

json_t *explain_fates_json(const struct report *r)
{
	const struct known_fates *f = &r->j->fates;
	json_t *j;

	if (!f->present)
		return json_null();
	j = json_object();
	put_counts(j, &f->total);
	json_put(j, "complete", json_boolean(f->ended));
	json_put(j, "lost", json_count(records_fates_lost(r->records)));
	json_put(j, "of_other_packets", json_count(f->elsewhere));
	json_put(j, "queues", queues(r));
	json_put(j, "not_offered_by_protocol", protocols_json(r, &f->refused));
	json_put(j, "not_offered_by_size", sizes_json(f->sizes));
	json_put(j, "not_offered_by_reason", reasons_json(f));
	json_put(j, "noticed", spread_json(&f->noticed));
	return j;
}
