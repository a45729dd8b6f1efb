/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Buffer address against time, a panel for each pool. Samples are runs of some microseconds
 * with long pauses between them: in one row on one scale they would be lines only. So runs
 * stand side by side, and a mark is a pause.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "memory.h"
#include "measure/plot.h"
#include "measure/rates.h"
#include "base/util.h"

#define PANELS_MAX 4
#define SERIES_MAX 12 /* of a panel */
#define NAME_LEN   (RINGTAP_NAME_LEN + 24)
#define MIB        1048576.0
#define GAP        0.04 /* all pauses together, of the time that is shown */
#define PATIENCE   20   /* times the median between bursts: longer is a pause */

struct cloud {
	const struct memory_pattern *of[SERIES_MAX]; /* patterns of this pool */
	struct plot_series series[SERIES_MAX];
	char names[SERIES_MAX][NAME_LEN], title[2 * RINGTAP_NAME_LEN + 128];
	size_t series_count;
	uint32_t pool;
	uint64_t packets, low, high; /* addresses */
};

struct drawing {
	struct cloud clouds[PANELS_MAX];
	size_t cloud_count;
	double *x, *y, *marks; /* x and y of samples, by pattern */
	double *at;            /* of samples, by their number: x, in seconds */
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
static int lay_out_time(struct drawing *p, const struct memory_samples *s)
{
	uint64_t patience = 0, shown = 0;
	double gap;

	p->at = calloc(s->count, sizeof(*p->at));
	p->marks = calloc(s->count, sizeof(*p->marks));
	if (!p->at || !p->marks || find_patience(s, &patience))
		return -ENOMEM;
	for (size_t i = 1; i < s->count; i++) {
		uint64_t ns = step_ns(s, i, patience);

		shown += ns == UINT64_MAX ? 0 : ns;
		p->mark_count += ns == UINT64_MAX;
	}
	gap = fmax((double)shown, 1) * 1e-9 * GAP / (double)(p->mark_count + 1);
	p->mark_count = 0;
	for (size_t i = 1; i < s->count; i++) {
		uint64_t ns = step_ns(s, i, patience);

		p->at[i] = p->at[i - 1] + (ns == UINT64_MAX ? 2 * gap : (double)ns * 1e-9);
		if (ns == UINT64_MAX)
			p->marks[p->mark_count++] = p->at[i] - gap;
	}
	p->end = fmax(p->at[s->count - 1], 1e-9);
	return 0;
}

static struct cloud *cloud_of(struct drawing *p, uint32_t pool)
{
	for (size_t i = 0; i < p->cloud_count; i++)
		if (p->clouds[i].pool == pool)
			return &p->clouds[i];
	if (p->cloud_count == PANELS_MAX)
		return NULL;
	p->clouds[p->cloud_count] = (struct cloud){.pool = pool, .low = UINT64_MAX};
	return &p->clouds[p->cloud_count++];
}

/* The points of one pattern, written to x and y, whose number is returned. */
static size_t put_points(const struct drawing *p, struct cloud *c, const struct memory_samples *s,
	const struct memory_pattern *of, double *x, double *y)
{
	size_t n = 0;

	for (size_t i = 0; i < s->count; i++) {
		const struct memory_sample *a = &s->list[i];

		if (a->port != of->port || a->pool != of->pool || a->queue != of->queue)
			continue;
		x[n] = p->at[i];
		y[n++] = (double)a->address; /* made relative when the lowest is known */
		c->low = a->address < c->low ? a->address : c->low;
		c->high = a->address > c->high ? a->address : c->high;
	}
	return n;
}

static int fill(struct drawing *p, const struct memory *mem)
{
	const struct memory_samples *s = mem->samples;
	const struct memory_patterns *all = mem->patterns;
	size_t at = 0;

	p->x = calloc(s->count, sizeof(*p->x));
	p->y = calloc(s->count, sizeof(*p->y));
	if (!p->x || !p->y)
		return -ENOMEM;
	for (size_t i = 0; i < all->count; i++) {
		struct cloud *c = cloud_of(p, all->list[i].pool);
		char port[RINGTAP_NAME_LEN];
		size_t k;

		if (!c || c->series_count == SERIES_MAX)
			continue;
		k = c->series_count++;
		snprintf(c->names[k], NAME_LEN, "%s queue %d",
			printable(port, sizeof(port),
				memory_port_name(mem->m->last, all->list[i].port)),
			all->list[i].queue);
		c->series[k] = (struct plot_series){.name = c->names[k],
			.x = p->x + at,
			.y = p->y + at,
			.points = true,
			.colour = (int)k};
		c->series[k].count = put_points(p, c, s, &all->list[i], p->x + at, p->y + at);
		at += c->series[k].count;
		c->packets += c->series[k].count;
	}
	return 0;
}

/* The part of the pool that its packets use, and a little beside it. */
static void fit(struct cloud *c, uint64_t base, struct plot_axis *y)
{
	double low = (double)(c->low - base), high = (double)(c->high - base);
	double margin = fmax((high - low) * 0.05, 4096), unit = high < 8 * MIB ? MIB / 1024 : MIB;

	y->label =
		unit < MIB ? "buffer address in the pool, KiB" : "buffer address in the pool, MiB";
	y->min = fmax(low - margin, 0) / unit;
	y->max = (high + margin) / unit;
	for (size_t i = 0; i < c->series_count; i++) {
		double *v = (double *)c->series[i].y;

		for (size_t k = 0; k < c->series[i].count; k++)
			v[k] = (v[k] - (double)base) / unit;
	}
}

static struct plot_panel panel_of(
	const struct drawing *p, struct cloud *c, const struct ringtap_snapshot *f)
{
	struct plot_panel panel = {.title = c->title,
		.x = {.label = "time; consecutive packets side by side, a grey line is a pause",
			.unit = "s",
			.max = p->end * 1.01},
		.series = c->series,
		.series_count = c->series_count,
		.marks = p->marks,
		.mark_count = p->mark_count};
	uint64_t base = c->pool < f->pool_count ? ringtap_snapshot_pool(f, c->pool)->base : c->low;
	char pool[RINGTAP_NAME_LEN], count[FORMAT_LEN];
	bool density = false;

	if (c->low < base) /* buffers outside of their pool */
		base = c->low;
	fit(c, base, &panel.y);
	for (size_t i = 0; i < c->series_count; i++)
		density |= c->series[i].count > PLOT_POINTS_MAX;
	snprintf(c->title, sizeof(c->title), "%s: %s packets, addresses from 0x%" PRIx64 "%s",
		c->pool == RINGTAP_NO_INDEX
			? "buffers of no pool"
			: printable(pool, sizeof(pool), memory_pool_name(f, c->pool)),
		format_count(count, c->packets), base,
		density ? "; the darker, the more packets; mixed colours: several queues" : "");
	return panel;
}

static int draw(struct drawing *p, const struct memory *mem, FILE *f)
{
	struct plot_panel panels[PANELS_MAX];
	char title[256], name[RINGTAP_NAME_LEN];

	for (size_t i = 0; i < p->cloud_count; i++)
		panels[i] = panel_of(p, &p->clouds[i], mem->m->last);
	if (!p->cloud_count)
		panels[0] = (struct plot_panel){.title = "no packet was received",
			.x = {.label = "time", .unit = "s", .max = 1},
			.y = {.label = "buffer address, MiB", .max = 1}};
	snprintf(title, sizeof(title), "%s: buffers of received packets",
		printable(name, sizeof(name), mem->m->app.name));
	return plot_write(f, plot_format(mem->m->options->plot), title, panels,
		p->cloud_count ? p->cloud_count : 1);
}

int memory_plot(const struct memory *mem, FILE *f)
{
	struct drawing *p = calloc(1, sizeof(*p));
	int ret = p ? 0 : -ENOMEM;

	if (!ret && mem->samples->count)
		ret = lay_out_time(p, mem->samples);
	if (!ret && mem->samples->count)
		ret = fill(p, mem);
	if (!ret)
		ret = draw(p, mem, f);
	if (p) {
		free(p->x);
		free(p->y);
		free(p->at);
		free(p->marks);
	}
	free(p);
	return ret;
}
