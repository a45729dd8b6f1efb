/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/util.h"
#include "counts.h"
#include "record.h"
#include "report.h"
#include "show/sheet.h"
#include "web/page.h"
#include "web/view.h"

#define EVERY_NS (NS_PER_S / 4)
#define CURVES   14

/* Leaves every second sample. The counts are cumulative: nothing is missing. */
static void thin_out(struct record_page *p)
{
	for (unsigned i = 1; i < p->count; i += 2)
		free(p->samples[i].list);
	for (unsigned i = 0; i < p->count; i += 2)
		p->samples[i / 2] = p->samples[i];
	p->count = (p->count + 1) / 2;
	p->every_ns *= 2;
}

void page_sample(struct recorder *r, uint64_t now_mono_ns, bool last)
{
	struct record_page *p = &r->page;
	uint64_t ns = now_mono_ns - r->start_mono_ns;
	struct page_sample *s;

	if (!p->file.f)
		return;
	p->every_ns = p->every_ns ? p->every_ns : EVERY_NS;
	if (p->count && ns - p->samples[p->count - 1].ns < p->every_ns && !last)
		return;
	if (p->count == PAGE_SAMPLES)
		thin_out(p);
	/* The last one replaces one of the same time. */
	if (p->count && ns == p->samples[p->count - 1].ns)
		free(p->samples[--p->count].list);
	s = &p->samples[p->count];
	if (shares_update(r))
		return;
	*s = (struct page_sample){.ns = ns, .list = calloc(r->share_count + 1, sizeof(*s->list))};
	if (!s->list)
		return;
	/* All that was counted came after the first sample. */
	for (; p->count && s->count < r->share_count; s->count++) {
		const struct ringtap_counts *c = &r->shares[s->count].counts;

		s->list[s->count][PAGE_SEEN] = c->seen;
		s->list[s->count][PAGE_CAPTURED] = c->captured;
		s->list[s->count][PAGE_LOST] = counts_lost(c);
	}
	p->count++;
}

static uint64_t count_at(const struct page_sample *s, unsigned i, enum page_count what)
{
	return i < s->count ? s->list[i][what] : 0;
}

/* Rates between samples, a curve for each interface that has any. */
static void add_rates(struct view *v, const struct recorder *r, enum page_count what,
	const char *id, const char *title)
{
	const struct record_page *p = &r->page;
	const struct page_sample *end = &p->samples[p->count - 1];
	json_t *panel = NULL, *edges, *values;
	char name[REPORT_LABEL_LEN];
	unsigned curves = 0;

	for (unsigned i = 0; i < end->count && curves < CURVES; i++) {
		if (!count_at(end, i, what) || !report_label(r, i, name))
			continue;
		if (!panel) {
			panel = view_panel(v, "levels", id, title);
			edges = json_array();
			json_put(panel, "unit", json_text("/s"));
			for (unsigned k = 0; k < p->count; k++)
				json_array_append_new(
					edges, view_at(v, r->start_ns + p->samples[k].ns));
			json_put(panel, "edges_ns", edges);
		}
		values = view_series(panel, name, (enum view_colour)(curves++ % 7));
		for (unsigned k = 1; k < p->count; k++) {
			const struct page_sample *a = &p->samples[k - 1], *b = a + 1;

			view_append(values, (double)(count_at(b, i, what) - count_at(a, i, what)) /
						    ((double)(b->ns - a->ns) / NS_PER_S));
		}
	}
	if (curves == CURVES)
		view_panel_note(panel, "There may be more, which the table has.");
}

static void add_losses(struct view *v, const struct recorder *r)
{
	char text[REPORT_LOSS_LEN], advice[REPORT_LOSS_LEN];

	if (!report_loss_text(r, text, advice))
		view_finding(v, "ok", "The capture lost no packet", NULL);
	else
		json_array_append_new(view_finding(v, "fault", "The capture lost packets", advice),
			json_text(text));
}

static void add_files(struct view *v, const struct recorder *r)
{
	json_t *table = view_panel(v, "table", "files", "Files"), *row;

	view_column(table, "file", "text");
	view_column(table, "packets", "count");
	view_column(table, "size", "bytes");
	json_put(table, "rows", json_array());
	for (size_t i = 0; i < r->files.count; i++) {
		row = view_row(table);
		json_array_append_new(row, json_text(r->files.list[i].name));
		json_array_append_new(row, json_count(r->files.list[i].packets));
		json_array_append_new(row, json_count(r->files.list[i].bytes));
	}
}

static json_t *make(const struct recorder *r)
{
	struct ringtap_stats s = {.size = sizeof(s)};
	const struct record_page *p = &r->page;
	struct sheet t;
	char text[64], n[FORMAT_LEN];
	struct view v;

	/* The clock may have been set: the page has the time that has passed. */
	view_begin(&v, "record", "Recording", r->start_ns,
		r->start_ns + r->end_mono_ns - r->start_mono_ns);
	view_fact(&v, "host", json_string_value(json_object_get(v.document, "host")), NULL);
	for (unsigned i = 0; i < r->targets.count; i++) {
		view_application(&v, r->targets.list[i].name, 0, NULL);
		view_fact(&v, "application", r->targets.list[i].name, NULL);
	}
	view_time_fact(&v, "begun", r->start_ns);
	view_time_fact(&v, "ended", r->end_ns);
	view_fact(&v, "ended by", end_name(r->end), r->error_text);
	snprintf(text, sizeof(text), "%s packets", format_count(n, r->written));
	view_fact(&v, "written", text, NULL);
	if (r->cfg->capture.options.sample > 1) {
		snprintf(text, sizeof(text), "one of %u packets", r->cfg->capture.options.sample);
		view_fact(&v, "sample", text, NULL);
	}
	if (r->cfg->first)
		view_fact(&v, "captured of each flow", r->cfg->first, NULL);
	if (ringtap_capture_stats(r->cap, &s))
		return v.document;
	add_losses(&v, r);
	if (p->count > 1) {
		add_rates(&v, r, PAGE_SEEN, "seen", "Packets seen");
		if (s.total.seen != s.total.captured)
			add_rates(&v, r, PAGE_CAPTURED, "captured", "Packets captured");
		add_rates(&v, r, PAGE_LOST, "lost", "Packets lost by the capture");
	}
	t = report_table(r, &s);
	t.title = "Interfaces and queues";
	sheet_view(&t, &v);
	sheet_free(&t);
	add_files(&v, r);
	return v.document;
}

int page_write(struct recorder *r)
{
	if (!r->page.file.f)
		return 0;
	return out_file_close(&r->page.file, "record", web_page_write(make(r), r->page.file.f));
}

void page_free(struct record_page *p)
{
	out_file_close(&p->file, "record", 0);
	while (p->count)
		free(p->samples[--p->count].list);
}
