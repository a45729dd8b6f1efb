/* SPDX-License-Identifier: BSD-3-Clause */
/* The report as a document for the page: docs/view.md. */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/json.h"
#include "base/util.h"
#include "web/view.h"
#include "facts.h"
#include "sheets.h"

/* ---- what the page says ---- */

__attribute__((format(printf, 2, 3))) static void note(struct view *v, const char *format, ...)
{
	char text[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	view_note(v, text);
}

static void add_lead(struct view *v, const struct report *r)
{
	const struct join *j = r->j;
	char received[FORMAT_LEN], lost[FORMAT_LEN], p50[32], p99[32], max[32], share[32] = "";

	if (j->received)
		snprintf(share, sizeof(share), " (%.3g %%)",
			100 * (double)j->not_sent / (double)j->received);
	note(v, "Of %s received packets, %s were not sent%s.", format_count(received, j->received),
		format_count(lost, j->not_sent), share);
	if (j->sent) {
		format_ns(p50, spread_quantile(&j->all, 0.5));
		format_ns(p99, spread_quantile(&j->all, 0.99));
		format_ns(max, (double)j->all.max);
		note(v, "Half of the others left after %s, 99 %% after %s, the last one after %s.",
			p50, p99, max);
	}
	note(v, "%s packets were sent after others of their flow that came later.",
		format_count(lost, j->reordered));
}

static void say(void *ctx, const char *text)
{
	view_note(ctx, text);
}

static void add_applications(struct view *v, const struct report *r)
{
	uint32_t known = 0; /* their ids are 0, 1, … in order of their first ports */

	for (uint32_t i = 0; i < records_port_count(r->records); i++) {
		const struct port *p = records_port(r->records, i);

		if (!p->application[0] || p->application_id < known)
			continue;
		view_application(v, p->application, 0, NULL);
		view_fact(v, "DPDK application", p->application, NULL);
		known = p->application_id + 1u;
	}
}

static void add_facts(struct view *v, const struct report *r)
{
	struct fact facts[FACTS_MAX];
	unsigned n = facts_make(facts, r);

	add_applications(v, r);
	view_time_fact(v, "first packet", r->j->first_ns);
	view_time_fact(v, "last packet", r->j->last_ns);
	for (unsigned i = 0; i < n; i++) {
		char count[FORMAT_LEN], text[128];

		if (isnan(facts[i].share))
			snprintf(text, sizeof(text), "%s", facts[i].meaning);
		else
			snprintf(text, sizeof(text), "%.4g %%; %s", 100 * facts[i].share,
				facts[i].meaning);
		view_fact(v, facts[i].name, format_count(count, facts[i].count), text);
	}
}

static void add_method(struct view *v, const struct report *r)
{
	json_t *all = view_finding(v, "note", "How it was measured", NULL);
	char timeout[32], text[512];

	format_ns(timeout, (double)r->j->timeout_ns);
	snprintf(text, sizeof(text),
		"ringtap recorded the packets inside the application: as received, when a burst came "
		"out of the driver, and as sent, when it was handed to the driver. Records of one "
		"packet have the same id. Time in the queues of NICs is not included.");
	json_array_append_new(all, json_text(text));
	snprintf(text, sizeof(text),
		"A packet counts as not sent if it was received and not handed to a driver within %s. "
		"The reason is not visible from outside: the application dropped or consumed it, "
		"holds it, or sent a copy that has no id.",
		timeout);
	json_array_append_new(all, json_text(text));
	if (r->j->fates.present)
		json_array_append_new(all,
			json_text(
				"A packet counts as not offered if its mbuf was used again, or was "
				"found free, before any port was handed the packet. Why is not "
				"visible; a copy of it, which has no id, may have been sent."));
	json_array_append_new(all,
		json_text(
			"A packet is reordered if it was received before, and sent after, another "
			"packet of its flow. Of packets of one time stamp in different queues the "
			"order is not known; they do not count."));
	json_array_append_new(all,
		json_text(
			"Frame numbers are those of Wireshark, over all files. Changes are those of "
			"the outermost headers."));
}

/* ---- over time ---- */

static void add_heat(struct view *v, const struct slices *s)
{
	uint32_t low = SLICE_BUCKETS, high = 0;
	json_t *panel, *edges = json_array(), *y = json_array(), *counts = json_array();

	for (uint32_t i = 0; i < s->count; i++)
		for (uint32_t b = 0; b < SLICE_BUCKETS; b++)
			if (s->at[i].bucket[b]) {
				low = b < low ? b : low;
				high = b > high ? b : high;
			}
	for (uint32_t i = 0; i <= s->count; i++)
		json_array_append_new(edges, view_at(v, s->start_ns + ((uint64_t)i << s->shift)));
	for (uint32_t b = low; b <= high + 1 && low <= high; b++) {
		uint64_t width, from = rt_log_bucket_low(b, SLICE_BITS, &width);

		view_append(y, from ? (double)from : 0.5);
	}
	for (uint32_t i = 0; i < s->count && low <= high; i++) {
		json_t *column = json_array();

		view_append_counts(column, s->at[i].bucket + low, high - low + 1);
		json_array_append_new(counts, column);
	}
	panel = view_panel(v, "heat", "heat", "Latency of all packets, by the time of reception");
	json_object_set_new(panel, "name", json_string("packets"));
	json_object_set_new(panel, "unit", json_string("ns"));
	json_object_set_new(panel, "log", json_true());
	json_object_set_new(panel, "edges_ns", edges);
	json_object_set_new(panel, "y_edges", y);
	json_object_set_new(panel, "counts", counts);
}

static void add_percentiles(struct view *v, const struct slices *s)
{
	static const char *const names[QUANTILES] = {"p50", "p90", "p99", "p99.9"};
	static const enum view_colour colours[QUANTILES] = {
		VIEW_BLUE, VIEW_SKY, VIEW_ORANGE, VIEW_RED};
	json_t *panel = view_panel(v, "levels", "percentiles", "Percentiles of each moment");
	json_t *edges = json_array(), *values[QUANTILES + 1];

	json_object_set_new(panel, "unit", json_string("ns"));
	json_object_set_new(panel, "log", json_true());
	for (uint32_t i = 0; i <= s->count; i++)
		json_array_append_new(edges, view_at(v, s->start_ns + ((uint64_t)i << s->shift)));
	json_object_set_new(panel, "edges_ns", edges);
	for (int q = 0; q < QUANTILES; q++)
		values[q] = view_series(panel, names[q], colours[q]);
	values[QUANTILES] = view_series(panel, "max", VIEW_GREY);
	for (uint32_t i = 0; i < s->count; i++) {
		const struct slice *at = &s->at[i];
		double p50 = NAN;

		for (int q = 0; q < QUANTILES; q++) {
			double ns = buckets_quantile(
				at->bucket, SLICE_BITS, quantile_shares[q], 0, (double)at->max_ns);

			p50 = q ? p50 : ns;
			view_append(values[q], ns);
		}
		view_append(values[QUANTILES], isnan(p50) ? NAN : (double)at->max_ns);
	}
}

static void add_counts(struct view *v, const struct report *r)
{
	const struct slices *s = &r->j->slices;
	uint64_t step = UINT64_C(1) << s->shift, end = s->start_ns + s->count * step;
	json_t *received, *panel, *not_sent, *reordered;

	/* The last slice is not over. */
	if (r->j->last_ns >= end - step && r->j->last_ns < end)
		end = r->j->last_ns + 1;
	panel = view_counts(v, "received", "Packets received", "packets", s->start_ns, step, end);
	received = view_series(panel, "received", VIEW_BLUE);
	panel = view_counts(v, "lost", "Packets that were not sent, or not in order", "packets",
		s->start_ns, step, end);
	not_sent = view_series(panel, "not sent", VIEW_RED);
	reordered = view_series(panel, "reordered", VIEW_GREEN);
	for (uint32_t i = 0; i < s->count; i++) {
		view_append(received, (double)s->at[i].received);
		view_append(not_sent, (double)s->at[i].not_sent);
		view_append(reordered, (double)s->at[i].reordered);
	}
}

json_t *report_view(const struct report *r)
{
	const struct slices *s = &r->j->slices;
	uint64_t last_ns = r->j->last_ns > r->j->first_ns ? r->j->last_ns : r->j->first_ns + 1;
	struct sheet sheets[SHEETS];
	char title[256];
	struct view v;

	view_begin(&v, "explain", report_title(r, title), r->j->first_ns, last_ns);
	add_facts(&v, r);
	add_lead(&v, r);
	notes_make(r, say, &v);
	if (s->count) {
		add_heat(&v, s);
		add_percentiles(&v, s);
		add_counts(&v, r);
	}
	if (!sheets_make(sheets, r))
		for (int i = 0; i < SHEETS; i++)
			sheet_view(&sheets[i], &v);
	sheets_free(sheets);
	add_method(&v, r);
	return v.document;
}
