/* SPDX-License-Identifier: BSD-3-Clause */
/* Latencies as a table, text histogram and JSON. */
#include <inttypes.h>
#include <math.h>

#include "base/json.h"
#include "latency.h"
#include "measure/metrics.h"
#include "show/sheet.h"
#include "base/util.h"

#define COLUMNS (3 + LATENCY_QUANTILES)

/* min, mean, percentiles, max; in cycles. */
static void stats_of(const struct latency_pair *p, double out[COLUMNS])
{
	out[0] = (double)p->min;
	out[1] = p->count ? (double)p->sum / (double)p->count : 0;
	for (int q = 0; q < LATENCY_QUANTILES; q++)
		out[2 + q] = p->quantile[q];
	out[COLUMNS - 1] = (double)p->max;
}

static bool is_few(const struct latency_pair *p, int column)
{
	return column >= 2 && column < COLUMNS - 1 && latency_few(p, column - 2);
}

static bool any_few(const struct latency *l)
{
	for (uint32_t i = 0; i < l->pair_count; i++)
		if (latency_few(&l->pairs[i], LATENCY_QUANTILES - 1))
			return true;
	return false;
}

/* ns_per_cycle: 0: the row has cycles, else times. */
static void add_row(struct sheet *t, const struct latency_pair *p, double ns_per_cycle)
{
	double v[COLUMNS];

	if (sheet_row(t))
		return;
	stats_of(p, v);
	sheet_put(t, 0, "%s", ns_per_cycle > 0 ? "time" : "cycles");
	for (int i = 0; i < COLUMNS; i++) {
		char text[FORMAT_LEN];

		if (ns_per_cycle > 0)
			format_ns(text, fmin(v[i] * ns_per_cycle, 1e18)); /* more is a lie */
		else if (v[i] < 999999.5)
			format_count(text, (uint64_t)(v[i] + 0.5));
		else
			format_si(text, v[i]);
		sheet_put(t, 1 + (unsigned)i, "%s%s", text, is_few(p, i) ? "*" : "");
	}
}

static void print_untimed(const struct latency *l)
{
	char n[FORMAT_LEN];

	for (uint32_t i = 0; i < l->untimed_count; i++) {
		const struct latency_untimed *u = &l->untimed[i];

		if (u->unstamped)
			text_wrapf(stdout, 2,
				"not timed: %s packets sent by %s, no receive time stamp: made by "
				"the application, or their mbufs were reset%s",
				format_count(n, u->unstamped), u->port,
				l->every > 1 ? ", or not chosen by --sample" : "");
		if (u->shared)
			text_wrapf(stdout, 2,
				"not timed: %s packets sent by %s, cloned or referenced more than "
				"once",
				format_count(n, u->shared), u->port);
	}
	if (l->no_room)
		printf("not timed: %s packets of pairs that the probe had no room for\n",
			format_count(n, l->no_room));
}

static void print_pair(const struct latency *l, const struct latency_pair *p)
{
	struct sheet t = {.heads = {"", "min", "mean", "p50", "p90", "p99", "p99.9", "max"},
		.columns = 1 + COLUMNS};
	char n[FORMAT_LEN], part[LATENCY_PART_LEN];

	putchar('\n');
	text_wrapf(stdout, 2, "%s > %s%s: %s packets%s", p->from, p->to, latency_part(part, l, p),
		format_count(n, p->count), p->inferred ? ", inferred" : "");
	add_row(&t, p, 0);
	add_row(&t, p, l->ns_per_cycle);
	sheet_end(&t, 0, stdout);
}

void latency_print(const struct latency *l, const struct measure *m)
{
	char share[48] = "every packet timed";
	bool inferred = false;

	if (l->every > 1)
		snprintf(share, sizeof(share), "one packet in %" PRIu32 " timed", l->every);
	text_wrapf(stdout, 2, "%s: %.1f s, %s", m->app.name,
		(double)(l->to_ns - l->from_ns) / NS_PER_S, share);
	if (m->first->latency_every != l->f->latency_every)
		puts("(now; another monitor has changed that meanwhile)");
	for (uint32_t i = 0; i < l->pair_count; i++) {
		print_pair(l, &l->pairs[i]);
		inferred |= l->pairs[i].inferred;
	}
	if (any_few(l))
		text_wrapf(stdout, 2,
			"\n* fewer than %d packets took longer: too few for this percentile",
			LATENCY_BEYOND);
	if (inferred)
		puts("\n"
		     "inferred: the application resets its mbufs' flags, and that of the time\n"
		     "stamp with them. The times are right if it sends what it receives, and "
		     "wrong\nif it frees that and fills raw mbufs (testpmd's flowgen).");
	if (!l->pair_count)
		puts(l->untimed_count ? "\nNo packet could be timed in that time."
				      : "\nNo packet was received and sent again in that time.");
	else
		putchar('\n');
	print_untimed(l);
}

/* ---- histogram ---- */

#define PER_ROW 8 /* buckets: an eighth of an octave */

static uint64_t row_count(const struct latency_pair *p, uint32_t row)
{
	uint64_t n = 0;

	for (uint32_t b = row * PER_ROW; b < (row + 1) * PER_ROW; b++)
		n += p->bucket[b];
	return n;
}

static void add_bar(struct sheet *t, const struct latency *l, const struct latency_pair *p,
	uint32_t row, uint64_t most)
{
	uint64_t width, low = ringtap_latency_low(row * PER_ROW, &width), n = row_count(p, row);
	uint64_t end = low + width * PER_ROW;
	char from[FORMAT_LEN], to[FORMAT_LEN];

	format_ns(from, (double)low * l->ns_per_cycle);
	format_ns(to, (double)end * l->ns_per_cycle);
	sheet_add_bar(t, from, to, n, p->count, most, 3);
}

void latency_print_histogram(const struct latency *l)
{
	for (uint32_t i = 0; i < l->pair_count; i++) {
		const struct latency_pair *p = &l->pairs[i];
		struct sheet t = sheet_histogram("time");
		uint32_t rows = ringtap_latency_buckets() / PER_ROW;
		char part[LATENCY_PART_LEN];
		uint64_t most = 1;
		bool gap = false;

		for (uint32_t r = 0; r < rows; r++)
			most = row_count(p, r) > most ? row_count(p, r) : most;
		putchar('\n');
		text_wrapf(stdout, 2, "%s > %s%s%s", p->from, p->to, latency_part(part, l, p),
			p->inferred ? " (inferred)" : "");
		for (uint32_t r = 0; r < rows; r++) {
			if (row_count(p, r)) {
				if (gap && t.rows)
					sheet_add(&t, "...", NULL);
				add_bar(&t, l, p, r, most);
			}
			gap = !row_count(p, r);
		}
		sheet_end(&t, 0, stdout);
	}
}

/* ---- JSON ---- */

/* In cycles, or in ns by keys that say so. */
static void put_stats(json_t *j, const struct latency_pair *p, double ns_per_cycle)
{
	double v[COLUMNS];

	stats_of(p, v);
	for (int i = 0; i < COLUMNS; i++) {
		const char *name = i < 2             ? (i ? "mean" : "min")
				   : i < COLUMNS - 1 ? latency_names[i - 2]
						     : "max";
		char key[16];

		snprintf(key, sizeof(key), ns_per_cycle > 0 ? "%s_ns" : "%s", name);
		json_put(j, key,
			ns_per_cycle > 0 ? json_ns(v[i] * ns_per_cycle) : json_number(v[i]));
	}
}

/* [lowest value, lowest value of the next bucket, packets], cycles. */
static json_t *json_histogram(const struct latency_pair *p)
{
	json_t *j = json_array();

	for (uint32_t b = 0; b < ringtap_latency_buckets(); b++) {
		uint64_t width, low = ringtap_latency_low(b, &width);

		if (p->bucket[b])
			json_array_append_new(
				j, json_pack("[I,I,I]", (json_int_t)low, (json_int_t)(low + width),
					   (json_int_t)p->bucket[b]));
	}
	return j;
}

/* Null: all of them. */
static void put_part(json_t *j, const struct latency_pair *p, const struct ringtap_snapshot *f)
{
	const struct ringtap_thread_stats *t =
		p->thread == RINGTAP_NO_INDEX ? NULL : ringtap_snapshot_thread(f, p->thread);

	json_put(j, "thread", t ? json_thread(t->lcore, t->name, t->tid) : json_null());
	json_put(j, "tx_queue",
		p->tx_queue == RINGTAP_NO_INDEX ? json_null() : json_count(p->tx_queue));
	json_put(j, "from_bytes", p->bytes_from ? json_count(p->bytes_from) : json_null());
	json_put(j, "to_bytes", p->bytes_to == UINT32_MAX ? json_null() : json_count(p->bytes_to));
}

/* The percentiles that so few packets exceed. */
static json_t *json_few(const struct latency_pair *p)
{
	json_t *names = json_array();

	for (int q = 0; q < LATENCY_QUANTILES; q++)
		if (latency_few(p, q))
			json_array_append_new(names, json_string(latency_names[q]));
	return names;
}

static json_t *json_pair(
	const struct latency *l, const struct latency_pair *p, const struct ringtap_snapshot *f)
{
	json_t *j = json_object(), *cycles = json_object();

	json_put(j, "rx_port", stats_port_json(f, p->rx_port));
	json_put(j, "tx_port", stats_port_json(f, p->tx_port));
	put_part(j, p, f);
	json_put(j, "packets", json_count(p->count));
	put_stats(j, p, l->ns_per_cycle);
	put_stats(cycles, p, 0);
	json_put(j, "too_few", json_few(p));
	json_put(j, "min_max_exact", json_boolean(p->exact));
	json_put(j, "cycles", cycles);
	json_object_set_new(j, "histogram_cycles", json_histogram(p));
	return j;
}

int latency_json(const struct latency *l, const struct measure *m, bool line)
{
	static const char *const names[] = {"port", "queue", "thread", "size"};
	json_t *j = json_application(m->app.name, m->info.pid, m->info.program);
	json_t *pairs = json_array(), *untimed = json_array(), *inferred = json_array();

	json_put(j, "ended", json_boolean(m->end == END_BY_APPLICATION));
	json_put(j, "begin", json_time(l->from_ns));
	json_put(j, "duration_ns", json_count(l->to_ns - l->from_ns));
	json_put(j, "by", json_string(names[l->by]));
	json_object_set_new(j, "tsc_hz", json_count(l->f->tsc_hz));
	json_object_set_new(j, "sample", json_count(l->every));
	for (uint32_t i = 0; i < l->pair_count; i++)
		json_array_append_new(
			l->pairs[i].inferred ? inferred : pairs, json_pair(l, &l->pairs[i], l->f));
	json_object_set_new(j, "pairs", pairs);
	json_object_set_new(j, "inferred", inferred);
	for (uint32_t i = 0; i < l->untimed_count; i++) {
		json_t *u = json_object();

		json_object_set_new(u, "tx_port", stats_port_json(l->f, l->untimed[i].tx_port));
		json_object_set_new(u, "unstamped", json_count(l->untimed[i].unstamped));
		json_object_set_new(u, "shared", json_count(l->untimed[i].shared));
		json_array_append_new(untimed, u);
	}
	json_object_set_new(j, "not_timed", untimed);
	json_object_set_new(j, "uncounted_packets", json_count(l->no_room));
	j = json_document("latency", j);
	return line ? json_print_line(j, stdout) : json_print(j, stdout);
}
