/* SPDX-License-Identifier: BSD-3-Clause */
/* The tables of the report. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "sheets.h"

#define OWN_SHEETS (SHEETS - FATE_SHEETS)

const char *port_name(const struct report *r, uint32_t port)
{
	return records_port(r->records, port)->shown;
}

/* ---- latency ---- */

void sheet_put_spread(struct sheet *s, unsigned column, const struct spread *d)
{
	sheet_put_count(s, column++, d->count);
	if (!d->count)
		return;
	sheet_put_ns(s, column++, (double)d->min);
	for (int q = 0; q < QUANTILES; q++)
		sheet_put_ns(s, column++, spread_quantile(d, quantile_shares[q]));
	sheet_put_ns(s, column, (double)d->max);
}

static int by_packets(const void *a, const void *b)
{
	const struct way *x = *(const struct way *const *)a, *y = *(const struct way *const *)b;

	return x->spread.count < y->spread.count ? 1 : x->spread.count > y->spread.count ? -1 : 0;
}

static void put_way(struct sheet *s, const struct report *r, const struct way *w, bool queues)
{
	if (queues)
		sheet_put(s, 0, "%s queue %u > %s queue %u", port_name(r, w->ends.rx_port),
			w->ends.rx_queue, port_name(r, w->ends.tx_port), w->ends.tx_queue);
	else
		sheet_put(s, 0, "%s > %s", port_name(r, w->ends.rx_port),
			port_name(r, w->ends.tx_port));
	sheet_put_spread(s, 1, &w->spread);
}

/* All pairs are shown, as they are few. */
static int make_ways(struct sheet *s, const struct report *r, const struct keyed *k, bool queues)
{
	void **ways = keyed_sorted(k, by_packets);
	uint32_t shown = queues && k->count > ROWS_MAX ? ROWS_MAX : k->count;
	int ret = ways ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < shown && !ret; i++) {
		ret = sheet_row(s);
		if (!ret)
			put_way(s, r, ways[i], queues);
	}
	s->more = k->count - shown;
	free(ways);
	return ret;
}

static int make_sizes(struct sheet *s, const struct join *j)
{
	int ret = 0;

	for (int i = 0; i < SIZES && !ret; i++) {
		if (!j->sizes[i].count)
			continue;
		ret = sheet_row(s);
		if (ret)
			break;
		sheet_put(s, 0, "%s", size_names[i]);
		sheet_put_spread(s, 1, &j->sizes[i]);
	}
	return ret;
}

/* ---- flows ---- */

double flow_quantile(const struct joined_flow *f, double share)
{
	return f->bucket ? buckets_quantile(
				   f->bucket, FLOW_BITS, share, (double)f->min, (double)f->max)
			 : NAN;
}

struct ranked {
	double value;
	uint32_t index;
};

static int by_value(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;

	if (x->value != y->value)
		return x->value < y->value ? 1 : -1;
	return x->index > y->index ? 1 : -1;
}

static double value_of(const struct joined_flow *f, enum flow_rank order)
{
	switch (order) {
	case BY_NOT_SENT: return (double)f->not_sent;
	case BY_NOT_OFFERED: return (double)f->not_offered;
	case BY_REORDERED: return (double)f->reordered;
	case BY_P99: return f->bucket ? flow_quantile(f, 0.99) : 0;
	default: return (double)f->received;
	}
}

uint32_t *flows_ranked(const struct join *j, enum flow_rank order, uint64_t max, uint32_t *count)
{
	struct ranked *all = calloc(j->flows.count + 1, sizeof(*all));
	uint32_t *out, n = 0;

	*count = 0;
	if (!all)
		return NULL;
	for (uint32_t i = 0; i < j->flows.count; i++) {
		double v = value_of(joined_flow_at(&j->flows, i), order);

		if (v > 0)
			all[n++] = (struct ranked){v, i};
	}
	qsort(all, n, sizeof(*all), by_value);
	n = n > max ? (uint32_t)max : n;
	out = calloc(n + 1, sizeof(*out));
	for (uint32_t i = 0; i < n && out; i++)
		out[i] = all[i].index;
	*count = out ? n : 0;
	free(all);
	return out;
}

static void put_flow_name(struct sheet *s, const struct report *r, const struct joined_flow *f)
{
	char text[HEADERS_TEXT];

	if (records_port_count(r->records) > 1)
		sheet_put(s, 0, "%s: %s", port_name(r, f->key.port), flow_text(&f->key, text));
	else
		sheet_put(s, 0, "%s", flow_text(&f->key, text));
}

static void put_flow(struct sheet *s, const struct report *r, const struct joined_flow *f)
{
	put_flow_name(s, r, f);
	sheet_put_count(s, 1, f->received);
	sheet_put_count(s, 2, f->not_sent);
	sheet_put_count(s, 3, f->reordered);
	sheet_put_ns(s, 4, flow_quantile(f, 0.5));
	sheet_put_ns(s, 5, flow_quantile(f, 0.99));
	if (f->bucket)
		sheet_put_ns(s, 6, (double)f->max);
}

static void put_reordered(struct sheet *s, const struct report *r, const struct joined_flow *f)
{
	put_flow_name(s, r, f);
	sheet_put_count(s, 1, f->reordered);
	sheet_put_count(s, 2, f->sent);
	sheet_put_count(s, 3, f->most_behind);
	sheet_put_ns(s, 4, (double)f->most_late_ns);
	sheet_put(s, 5, "%" PRIu64, f->reordered_number);
}

static int make_flows(struct sheet *s, const struct report *r, enum flow_rank order,
	void (*put)(struct sheet *, const struct report *, const struct joined_flow *))
{
	uint32_t count, *ranked = flows_ranked(r->j, order, r->flows, &count);
	int ret = ranked ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < count && !ret; i++) {
		ret = sheet_row(s);
		if (!ret)
			put(s, r, joined_flow_at(&r->j->flows, ranked[i]));
	}
	free(ranked);
	return ret;
}

/* ---- what else happened ---- */

static int by_count(const void *a, const void *b)
{
	const struct protocol *x = *(const struct protocol *const *)a;
	const struct protocol *y = *(const struct protocol *const *)b;

	return x->count < y->count ? 1 : x->count > y->count ? -1 : 0;
}

static void put_protocol(struct sheet *s, const struct report *r, const struct protocol *p)
{
	char protocol[PROTOCOL_TEXT], text[HEADERS_TEXT];

	sheet_put(s, 0, "%s: %s", port_name(r, p->port), headers_protocol(&p->headers, protocol));
	sheet_put_count(s, 1, p->count);
	sheet_put(s, 2, "%" PRIu64, p->number);
	sheet_put(s, 3, "%s, %u bytes", headers_text(&p->headers, text), p->length);
}

int sheet_put_protocols(struct sheet *s, const struct report *r, const struct keyed *k)
{
	void **all = keyed_sorted(k, by_count);
	uint32_t shown = k->count > ROWS_MAX ? ROWS_MAX : k->count;
	int ret = all ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < shown && !ret; i++) {
		ret = sheet_row(s);
		if (!ret)
			put_protocol(s, r, all[i]);
	}
	s->more = k->count - shown;
	free(all);
	return ret;
}

static int make_changes(struct sheet *s, const struct join *j)
{
	int ret = 0;

	for (int c = 0; c < CHANGES && !ret; c++) {
		const struct changed *x = &j->changes[c];

		if (!x->count)
			continue;
		ret = sheet_row(s);
		if (ret)
			break;
		sheet_put(s, 0, "%s", change_names[c]);
		sheet_put_count(s, 1, x->count);
		sheet_put(s, 2, "%" PRIu64 " > %" PRIu64, x->rx_number, x->tx_number);
		sheet_put(s, 3, "%s", x->text);
	}
	if (ret || !s->rows || !j->unchanged)
		return ret;
	ret = sheet_row(s);
	if (!ret) {
		sheet_put(s, 0, "nothing");
		sheet_put_count(s, 1, j->unchanged);
	}
	return ret;
}

static int make_copies(struct sheet *s, const struct join *j)
{
	int ret = 0;

	for (int n = 2; n <= TIMES_MAX && !ret; n++) {
		if (!j->times[n])
			continue;
		ret = sheet_row(s);
		if (ret)
			break;
		sheet_put(s, 0, n < TIMES_MAX ? "%d times" : "%d times or more", n);
		sheet_put_count(s, 1, j->times[n]);
		sheet_put(s, 2, "%" PRIu64, j->times_number[n]);
	}
	return ret;
}

int sheets_make(struct sheet sheets[SHEETS], const struct report *r)
{
	static const char *const titles[] = {"Flows with the most packets",
		"Flows with the most packets not sent", "Flows with the most packets reordered",
		"Flows with the highest latency (p99)", "Flows with the most packets not offered"};
	const struct sheet empty[OWN_SHEETS] = {
		{.title = "Latency from receiving to sending",
			.heads = {"from > to", LATENCY_HEADS},
			.columns = 8},
		{.title = "Latency by queue", .heads = {"from > to", LATENCY_HEADS}, .columns = 8},
		{.title = "Latency by size", .heads = {"bytes", LATENCY_HEADS}, .columns = 8},
		{.title = "Not sent",
			.heads = {"port: protocol", "packets", "frame", "the first of them"},
			.columns = 4,
			.wide = true},
		{.title = "Sent in another order than received",
			.heads = {"flow", "reordered", "of", "most behind", "latest by", "frame"},
			.columns = 6},
		{.title = "Changed on the way",
			.heads = {"what", "packets", "frames", "the first of them"},
			.columns = 4,
			.wide = true},
		{.title = "Sent more than once",
			.heads = {"sent", "packets", "frame"},
			.columns = 3},
		{.title = titles[r->order],
			.heads = {"flow", "received", "not sent", "reordered", "p50", "p99", "max"},
			.columns = 7},
	};
	int ret;

	memcpy(sheets, empty, sizeof(empty));
	ret = fate_sheets_make(&sheets[OWN_SHEETS], r);
	ret = ret ?: make_ways(&sheets[0], r, &r->j->pairs, false);
	if (r->j->queues.count > r->j->pairs.count)
		ret = ret ?: make_ways(&sheets[1], r, &r->j->queues, true);
	ret = ret ?: make_sizes(&sheets[2], r->j);
	ret = ret ?: sheet_put_protocols(&sheets[3], r, &r->j->unsent);
	ret = ret ?: make_flows(&sheets[4], r, BY_REORDERED, put_reordered);
	ret = ret ?: make_changes(&sheets[5], r->j);
	ret = ret ?: make_copies(&sheets[6], r->j);
	ret = ret ?: make_flows(&sheets[7], r, r->order, put_flow);
	if (!ret) {
		sheets[4].more = r->j->reordered_flows - sheets[4].rows;
		sheets[7].more = r->order == BY_PACKETS ? r->j->flows.count - sheets[7].rows : 0;
	}
	return ret;
}

void sheets_free(struct sheet sheets[SHEETS])
{
	for (int i = 0; i < SHEETS; i++)
		sheet_free(&sheets[i]);
}
