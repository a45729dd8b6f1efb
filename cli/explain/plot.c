/* SPDX-License-Identifier: BSD-3-Clause */
/* Latency over time, and what was not sent. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/util.h"
#include "report.h"

#define CURVES (QUANTILES + 1) /* percentiles and the maximum */

struct curves {
	double time[SLICES];                         /* s, middles of slices */
	double curve[CURVES][SLICES];                /* s */
	double drop_time[SLICES], drop_mark[SLICES]; /* slices with packets that were not sent */
	double received[SLICES], not_sent[SLICES], reordered[SLICES]; /* packets/s */
	double x_edge[SLICES + 1], y_edge[SLICE_BUCKETS + 1];
	double count[SLICES * SLICE_BUCKETS];
	size_t drops;
	double low, high;            /* s */
	double most_rate, most_lost; /* packets/s */
	double end;                  /* s */
};

static bool take_slice(struct curves *c, const struct slices *s, uint32_t i, double length)
{
	const struct slice *at = &s->at[i];

	c->x_edge[i] = i * length;
	c->time[i] = (i + 0.5) * length;
	for (int q = 0; q < QUANTILES; q++)
		c->curve[q][i] = 1e-9 * buckets_quantile(at->bucket, SLICE_BITS, quantile_shares[q],
						0, (double)at->max_ns);
	c->curve[QUANTILES][i] = isnan(c->curve[0][i]) ? NAN : 1e-9 * (double)at->max_ns;
	for (uint32_t b = 0; b < SLICE_BUCKETS; b++)
		c->count[i * SLICE_BUCKETS + b] = at->bucket[b];
	c->received[i] = (double)at->received / length;
	c->not_sent[i] = (double)at->not_sent / length;
	c->reordered[i] = (double)at->reordered / length;
	c->most_rate = fmax(c->most_rate, c->received[i]);
	c->most_lost = fmax(c->most_lost, fmax(c->not_sent[i], c->reordered[i]));
	return at->not_sent > 0;
}

static struct curves *take(const struct join *j)
{
	const struct slices *s = &j->slices;
	double length = (double)(UINT64_C(1) << s->shift) / NS_PER_S;
	struct curves *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->low = fmax((double)j->all.min, 1) * 1e-9 / 1.2;
	c->high = fmax((double)j->all.max, 10) * 1e-9 * 1.5;
	c->most_rate = c->most_lost = 1e-9;
	for (uint32_t i = 0; i < s->count; i++) {
		if (!take_slice(c, s, i, length))
			continue;
		c->drop_time[c->drops] = c->time[i];
		c->drop_mark[c->drops++] = c->high / 1.12;
	}
	c->end = c->x_edge[s->count] = s->count ? s->count * length : 1;
	for (uint32_t b = 0; b <= SLICE_BUCKETS; b++) {
		uint64_t width;

		c->y_edge[b] = 1e-9 * (double)rt_log_bucket_low(b, SLICE_BITS, &width);
	}
	return c;
}

static int draw(const struct report *r, const struct curves *c, enum plot_format format, FILE *f)
{
	const size_t n = r->j->slices.count;
	const struct plot_heat heat = {.x = c->x_edge,
		.y = c->y_edge,
		.count = c->count,
		.columns = n,
		.rows = SLICE_BUCKETS};
	const struct plot_series drops = {.name = c->drops ? "not sent" : NULL,
		.x = c->drop_time,
		.y = c->drop_mark,
		.count = c->drops,
		.points = true,
		.colour = 1};
	const struct plot_series curves[] = {{"p50", c->time, c->curve[0], n, false, 0},
		{"p90", c->time, c->curve[1], n, false, 5},
		{"p99", c->time, c->curve[2], n, false, 4},
		{"p99.9", c->time, c->curve[3], n, false, 1},
		{"max", c->time, c->curve[4], n, false, 6}};
	const struct plot_series rates[] = {{"received", c->time, c->received, n, false, 0}};
	const struct plot_series lost[] = {{"not sent", c->time, c->not_sent, n, false, 1},
		{"reordered", c->time, c->reordered, n, false, 2}};
	const struct plot_axis time = {
		.label = "time of reception, from the first packet", .unit = "s", .max = c->end};
	const struct plot_axis latency = {.label = "from receiving to sending",
		.unit = "s",
		.log = true,
		.min = c->low,
		.max = c->high};
	const struct plot_panel panels[] = {
		{.title = "Latency of all packets: the darker, the more",
			.x = time,
			.y = latency,
			.series = &drops,
			.series_count = 1,
			.heat = &heat},
		{.title = "Percentiles of each moment",
			.x = time,
			.y = latency,
			.series = curves,
			.series_count = CURVES},
		{.title = "Packets a second",
			.x = time,
			.y = {.label = "packets/s", .unit = "", .max = 1.1 * c->most_rate},
			.series = rates,
			.series_count = 1},
		{.title = "Packets a second that were not sent, or not in order",
			.x = time,
			.y = {.label = "packets/s", .unit = "", .max = 1.1 * c->most_lost},
			.series = lost,
			.series_count = 2}};
	char title[256];

	return plot_write(f, format, report_title(r, title), panels,
		r->j->not_sent || r->j->reordered ? 4 : 3);
}

int report_plot(const struct report *r, enum plot_format format, FILE *f)
{
	struct curves *c = take(r->j);
	int ret = c ? draw(r, c, format, f) : -ENOMEM;

	free(c);
	return ret;
}
