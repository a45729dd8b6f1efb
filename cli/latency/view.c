/* SPDX-License-Identifier: BSD-3-Clause */
/* Latencies as a document for the page: where most packets are, and how far the tail reaches. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/util.h"
#include "latency.h"
#include "measure/rates.h"

#define CURVES_MAX 7 /* colours that differ */
#define PER_STEP   4 /* buckets: a sixteenth of an octave */
#define NAME_LEN   (2 * RINGTAP_NAME_LEN + LATENCY_PART_LEN + 16)

static char *name_of(const struct latency *l, const struct latency_pair *p, char out[NAME_LEN])
{
	char from[RINGTAP_NAME_LEN], to[RINGTAP_NAME_LEN], part[LATENCY_PART_LEN];

	snprintf(out, NAME_LEN, "%s > %s%s%s", printable(from, sizeof(from), p->from),
		printable(to, sizeof(to), p->to), latency_part(part, l, p),
		p->inferred ? " (inferred)" : "");
	return out;
}

static uint64_t packets_in(const struct latency_pair *p, uint32_t step)
{
	uint64_t packets = 0;

	for (uint32_t b = step * PER_STEP; b < (step + 1) * PER_STEP; b++)
		packets += p->bucket[b];
	return packets;
}

/* The steps that have packets of any pair. False: there are none. */
static bool find_steps(const struct latency *l, uint32_t *first, uint32_t *last)
{
	uint32_t steps = ringtap_latency_buckets() / PER_STEP;

	*first = steps;
	*last = 0;
	for (uint32_t i = 0; i < l->pair_count; i++)
		for (uint32_t s = 0; s < steps; s++)
			if (packets_in(&l->pairs[i], s)) {
				*first = s < *first ? s : *first;
				*last = s > *last ? s : *last;
			}
	return *first <= *last;
}

static json_t *add_spread(struct view *v, const struct latency *l, const char *kind,
	const char *title, uint32_t first, uint32_t last)
{
	json_t *panel = view_panel(v, kind, kind, title), *edges = json_array();
	char name[NAME_LEN];

	json_object_set_new(panel, "unit", json_string("ns"));
	json_object_set_new(panel, "of", json_string("packets"));
	for (uint32_t s = first; s <= last + 1; s++) {
		uint64_t width, low = ringtap_latency_low(s * PER_STEP, &width);

		view_append(edges, fmax((double)low, 0.5) * l->ns_per_cycle);
	}
	json_object_set_new(panel, "edges", edges);
	for (uint32_t i = 0; i < l->pair_count && i < CURVES_MAX; i++) {
		json_t *values = view_series(panel, name_of(l, &l->pairs[i], name), i);

		for (uint32_t s = first; s <= last; s++)
			view_append(values, (double)packets_in(&l->pairs[i], s));
	}
	return panel;
}

static void add_marks(json_t *panel, const struct latency *l)
{
	json_t *marks = json_array();

	for (uint32_t i = 0; i < l->pair_count && i < CURVES_MAX; i++)
		for (int q = 0; q < LATENCY_QUANTILES; q++)
			json_array_append_new(marks,
				json_pack("{s:s, s:f, s:i}", "name", latency_labels[q], "value",
					fmax(l->pairs[i].quantile[q], 0.5) * l->ns_per_cycle,
					"colour", (int)i));
	json_object_set_new(panel, "marks", marks);
}

static void add_table(struct view *v, const struct latency *l)
{
	json_t *table = view_panel(v, "table", "pairs", "From receiving to sending");
	char name[NAME_LEN];

	view_column(table, "from > to", "text");
	view_column(table, "packets", "count");
	view_column(table, "min", "ns");
	view_column(table, "mean", "ns");
	for (int q = 0; q < LATENCY_QUANTILES; q++)
		view_column(table, latency_labels[q], "ns");
	view_column(table, "max", "ns");
	for (uint32_t i = 0; i < l->pair_count; i++) {
		const struct latency_pair *p = &l->pairs[i];
		json_t *row = view_row(table);

		json_array_append_new(row, json_text(name_of(l, p, name)));
		json_array_append_new(row, json_count(p->count));
		view_append(row, (double)p->min * l->ns_per_cycle);
		view_append(row, (double)p->sum / (double)p->count * l->ns_per_cycle);
		for (int q = 0; q < LATENCY_QUANTILES; q++)
			view_append(row, p->quantile[q] * l->ns_per_cycle);
		view_append(row, (double)p->max * l->ns_per_cycle);
	}
}

/* ---- over time ---- */

static json_t *edges_of(const struct view *v, const struct latency_moments *t)
{
	json_t *edges = json_array();

	for (uint32_t i = 0; i < t->count; i++)
		json_array_append_new(edges, view_at(v, t->list[i].from_ns));
	json_array_append_new(edges, view_at(v, t->list[t->count - 1].to_ns));
	return edges;
}

static json_t *column_of(const struct latency_moment *m, uint32_t first, uint32_t last)
{
	json_t *column = json_array();

	for (uint32_t s = first; s <= last; s++) {
		uint64_t packets = 0;

		for (uint32_t b = s * PER_STEP; b < (s + 1) * PER_STEP; b++)
			packets += m->bucket[b];
		view_append_counts(column,
			&(uint32_t){packets < UINT32_MAX ? (uint32_t)packets : UINT32_MAX}, 1);
	}
	return column;
}

static void add_time(struct view *v, const struct latency *l, const struct latency_moments *t,
	uint32_t first, uint32_t last)
{
	static const enum view_colour colours[LATENCY_QUANTILES] = {
		VIEW_BLUE, VIEW_SKY, VIEW_ORANGE, VIEW_RED};
	json_t *heat = view_panel(v, "heat", "heat", "All packets, by the time of sending");
	json_t *levels = view_panel(v, "levels", "percentiles", "Percentiles of each moment");
	json_t *y = json_array(), *counts = json_array();

	json_object_set_new(heat, "name", json_string("packets"));
	json_object_set_new(heat, "unit", json_string("ns"));
	json_object_set_new(heat, "log", json_true());
	json_object_set_new(heat, "edges_ns", edges_of(v, t));
	for (uint32_t s = first; s <= last + 1; s++) {
		uint64_t width, low = ringtap_latency_low(s * PER_STEP, &width);

		view_append(y, fmax((double)low, 0.5) * l->ns_per_cycle);
	}
	json_object_set_new(heat, "y_edges", y);
	for (uint32_t i = 0; i < t->count; i++)
		json_array_append_new(counts, column_of(&t->list[i], first, last));
	json_object_set_new(heat, "counts", counts);
	json_object_set_new(levels, "unit", json_string("ns"));
	json_object_set_new(levels, "log", json_true());
	json_object_set_new(levels, "edges_ns", edges_of(v, t));
	for (int q = 0; q < LATENCY_QUANTILES; q++) {
		json_t *values = view_series(levels, latency_labels[q], colours[q]);

		for (uint32_t i = 0; i < t->count; i++)
			view_append(values,
				ringtap_latency_quantile(t->list[i].bucket, latency_shares[q]) *
					l->ns_per_cycle);
	}
}

/* Percentiles of so few packets that they say little. */
static void add_few(struct view *v, const struct latency *l, const struct latency_pair *p)
{
	char text[NAME_LEN + 160], name[NAME_LEN], n[FORMAT_LEN], list[64] = "";

	for (int q = 0; q < LATENCY_QUANTILES; q++)
		if (latency_few(p, q))
			snprintf(list + strlen(list), sizeof(list) - strlen(list), "%s%s",
				*list ? ", " : "", latency_labels[q]);
	if (!*list)
		return;
	snprintf(text, sizeof(text),
		"%s: %s packets are too few for %s: fewer than %d took longer.",
		name_of(l, p, name), format_count(n, p->count), list, LATENCY_BEYOND);
	view_note(v, text);
}

static void add_notes(struct view *v, const struct latency *l)
{
	char text[512], n[FORMAT_LEN];

	for (uint32_t i = 0; i < l->untimed_count; i++) {
		const struct latency_untimed *u = &l->untimed[i];

		if (u->unstamped) {
			snprintf(text, sizeof(text),
				"Not timed: %s packets sent by %s, no receive time stamp: made by the "
				"application, or their mbufs were reset%s.",
				format_count(n, u->unstamped), u->port,
				l->every > 1 ? ", or not chosen by --sample" : "");
			view_note(v, text);
		}
		if (u->shared) {
			snprintf(text, sizeof(text),
				"Not timed: %s packets sent by %s, cloned or referenced more than once.",
				format_count(n, u->shared), u->port);
			view_note(v, text);
		}
	}
	for (uint32_t i = 0; i < l->pair_count; i++)
		add_few(v, l, &l->pairs[i]);
	if (!l->pair_count)
		view_note(v, l->untimed_count ? "No packet could be timed."
					      : "No packet was received and sent again.");
	for (uint32_t i = 0; i < l->pair_count; i++)
		if (l->pairs[i].inferred) {
			view_note(v,
				"inferred: the application resets its mbufs' flags, and that of "
				"the time stamp with them. The times are right if it sends what it "
				"receives.");
			break;
		}
}

json_t *latency_view(
	const struct latency *l, const struct measure *m, const struct latency_moments *t)
{
	char share[64] = "every packet timed";
	uint32_t first, last;
	struct view v;

	measure_view(&v, m, "from receiving to sending");
	if (l->every > 1)
		snprintf(share, sizeof(share), "one packet in %" PRIu32 " timed", l->every);
	view_fact(&v, "packets", share, NULL);
	add_notes(&v, l);
	if (!l->pair_count)
		return v.document;
	add_table(&v, l);
	if (!find_steps(l, &first, &last))
		return v.document;
	add_marks(add_spread(&v, l, "spread", "Share of packets, by their time in the application",
			  first, last),
		l);
	add_spread(&v, l, "tail", "Share of packets that took this or longer", first, last);
	if (t->count > 1)
		add_time(&v, l, t, first, last);
	return v.document;
}
