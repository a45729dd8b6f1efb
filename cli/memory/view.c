/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The page: buffer address against time, a panel for each pool. Samples are runs of some
 * microseconds with long pauses between them: on one scale they would be lines only. So runs stand
 * side by side, and a mark is a pause.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/json.h"
#include "report.h"
#include "measure/rates.h"
#include "base/util.h"

#define PANELS_MAX 4
#define SERIES_MAX 7      /* in a panel: colours that differ */
#define POINTS_MAX 100000 /* in all panels */
#define PAUSE      0.04   /* all pauses together, of the time that is shown */
#define PATIENCE   20     /* times the median between bursts: longer is a pause */

/* When samples are drawn: ns, side by side. */
struct layout {
	double *at; /* by the number of the sample */
	double *marks;
	size_t mark_count;
	double end;
};

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* The longest time between two bursts that is not a pause: a thread that was taken off its CPU for
 * milliseconds would squeeze all the rest. */
static int find_patience(const struct memory_samples *s, uint64_t *ns)
{
	uint64_t *gaps = calloc(s->count, sizeof(*gaps));
	size_t n = 0;

	if (!gaps)
		return -ENOMEM;
	for (size_t i = 1; i < s->count; i++) {
		if (s->list[i].run == s->list[i - 1].run && s->list[i].ns > s->list[i - 1].ns)
			gaps[n++] = s->list[i].ns - s->list[i - 1].ns;
	}
	qsort(gaps, n, sizeof(*gaps), by_value);
	*ns = n ? gaps[n / 2] * PATIENCE : 0;
	free(gaps);
	return 0;
}

/* The time from a sample to the one before; UINT64_MAX: a pause. */
static uint64_t step_ns(const struct memory_samples *s, size_t i, uint64_t patience)
{
	const struct memory_sample *a = &s->list[i], *before = a - 1;

	if (a->run != before->run || a->ns < before->ns || a->ns - before->ns > patience)
		return UINT64_MAX;
	return a->ns - before->ns;
}

/* Times side by side. */
static int lay_out_time(struct layout *p, const struct memory_samples *s)
{
	uint64_t patience = 0, shown = 0;
	double pause;

	p->at = calloc(s->count, sizeof(*p->at));
	p->marks = calloc(s->count, sizeof(*p->marks));
	if (!p->at || !p->marks || find_patience(s, &patience))
		return -ENOMEM;
	for (size_t i = 1; i < s->count; i++) {
		uint64_t ns = step_ns(s, i, patience);

		shown += ns == UINT64_MAX ? 0 : ns;
		p->mark_count += ns == UINT64_MAX;
	}
	pause = fmax((double)shown, 1) * PAUSE / (double)(p->mark_count + 1);
	p->mark_count = 0;
	for (size_t i = 1; i < s->count; i++) {
		uint64_t ns = step_ns(s, i, patience);

		p->at[i] = p->at[i - 1] + (ns == UINT64_MAX ? pause : (double)ns);
		if (ns == UINT64_MAX)
			p->marks[p->mark_count++] = p->at[i] - pause / 2;
	}
	p->end = fmax(p->at[s->count - 1], 1);
	return 0;
}

/* ---- panels */

static uint64_t base_of(const struct memory *mem, uint32_t pool)
{
	const struct ringtap_snapshot *f = mem->m->last;
	uint64_t base = pool < f->pool_count ? ringtap_snapshot_pool(f, pool)->base : UINT64_MAX;

	/* Buffers outside of their pool. */
	for (size_t i = 0; i < mem->samples->count; i++)
		if (mem->samples->list[i].pool == pool && mem->samples->list[i].address < base)
			base = mem->samples->list[i].address;
	return base;
}

static void add_points(json_t *series, const struct memory *mem, const struct layout *p,
	const struct memory_pattern *of, uint64_t base)
{
	size_t step = mem->samples->count / POINTS_MAX + 1;
	json_t *x = json_array(), *y = json_array();

	for (size_t i = 0; i < mem->samples->count; i += step) {
		const struct memory_sample *a = &mem->samples->list[i];

		if (a->port != of->port || a->pool != of->pool || a->queue != of->queue)
			continue;
		view_append(x, floor(p->at[i]));
		json_array_append_new(y, json_count(a->address - base));
	}
	json_object_set_new(series, "x", x);
	json_object_set_new(series, "y", y);
}

/* The patterns of a pool, of each queue. */
static void add_pool(struct view *v, const struct memory *mem, const struct layout *p,
	uint32_t pool, unsigned number)
{
	const struct ringtap_snapshot *f = mem->m->last;
	char id[16], title[RINGTAP_NAME_LEN + 96], name[RINGTAP_NAME_LEN],
		port[RINGTAP_NAME_LEN + 24];
	json_t *panel, *marks = json_array(), *all = json_array();
	uint64_t base = base_of(mem, pool);

	snprintf(id, sizeof(id), "pool-%u", number);
	snprintf(title, sizeof(title), "%s, addresses from 0x%" PRIx64,
		pool == RINGTAP_NO_INDEX ? "buffers of no pool"
					 : printable(name, sizeof(name), memory_pool_name(f, pool)),
		base);
	panel = view_panel(v, "points", id, title);
	json_object_set_new(panel, "unit", json_string("bytes"));
	json_object_set_new(panel, "of", json_string("points"));
	view_set(panel, "end", p->end);
	for (size_t i = 0; i < p->mark_count; i++)
		view_append(marks, floor(p->marks[i]));
	json_object_set_new(panel, "marks", marks);
	for (size_t i = 0; i < mem->patterns->count && json_array_size(all) < SERIES_MAX; i++) {
		const struct memory_pattern *of = &mem->patterns->list[i];
		json_t *series;

		if (of->pool != pool)
			continue;
		snprintf(port, sizeof(port), "%s queue %d",
			printable(name, sizeof(name), memory_port_name(f, of->port)), of->queue);
		series = json_pack(
			"{s:o, s:i}", "name", json_text(port), "colour", (int)json_array_size(all));
		add_points(series, mem, p, of, base);
		json_array_append_new(all, series);
	}
	json_object_set_new(panel, "series", all);
}

static void add_pools(struct view *v, const struct memory *mem, const struct layout *p)
{
	uint32_t shown[PANELS_MAX];
	unsigned n = 0, k;

	for (size_t i = 0; i < mem->patterns->count && n < PANELS_MAX; i++) {
		uint32_t pool = mem->patterns->list[i].pool;

		for (k = 0; k < n && shown[k] != pool; k++)
			;
		if (k < n)
			continue;
		shown[n] = pool;
		add_pool(v, mem, p, pool, n++);
	}
}

json_t *memory_view(const struct memory *mem)
{
	struct layout p = {0};
	struct view v;
	char text[160], n[FORMAT_LEN];

	measure_view(&v, mem->m, "buffers of received packets");
	view_fact(&v, "packets", format_count(n, mem->samples->count), NULL);
	if (!mem->samples->count) {
		view_note(&v, "No packet was received.");
	} else if (!lay_out_time(&p, mem->samples)) {
		view_note(&v, "Consecutive packets stand side by side; a grey line is a pause.");
		if (mem->samples->count > POINTS_MAX) {
			snprintf(text, sizeof(text),
				"One packet of %zu is drawn; --samples has all.",
				mem->samples->count / POINTS_MAX + 1);
			view_note(&v, text);
		}
		add_pools(&v, mem, &p);
	}
	free(p.at);
	free(p.marks);
	return v.document;
}
