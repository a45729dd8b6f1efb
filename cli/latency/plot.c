/* SPDX-License-Identifier: BSD-3-Clause */
/* Two views of the same histograms: where most packets are, and how far the tail reaches. Both mark
 * percentiles. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "latency.h"
#include "measure/plot.h"
#include "measure/rates.h"
#include "base/util.h"

#define CURVES_MAX 12
#define PER_STEP   4 /* buckets: a sixteenth of an octave */
#define NAME_LEN   (2 * RINGTAP_NAME_LEN + 16)

struct curves {
	struct plot_series density[CURVES_MAX], tail[CURVES_MAX];
	char names[CURVES_MAX][NAME_LEN];
	struct plot_label lines[CURVES_MAX * LATENCY_QUANTILES],
		dots[CURVES_MAX * LATENCY_QUANTILES];
	char texts[CURVES_MAX * LATENCY_QUANTILES][48];
	size_t label_count;
	double *values; /* of all curves */
	size_t count;
	double low, high;   /* seconds */
	double most_end;    /* seconds: where almost all packets are */
	double most, least; /* shares */
};

static void name_of(const struct latency_pair *p, char out[NAME_LEN])
{
	char from[RINGTAP_NAME_LEN], to[RINGTAP_NAME_LEN];

	snprintf(out, NAME_LEN, "%s > %s%s", printable(from, sizeof(from), p->from),
		printable(to, sizeof(to), p->to), p->inferred ? " (inferred)" : "");
}

/* The share of packets in each step, drawn as stairs: four numbers a step. */
static struct plot_series density_of(
	const struct latency_pair *p, double scale, double *x, double *y, double *most)
{
	uint32_t steps = ringtap_latency_buckets() / PER_STEP;
	size_t n = 0;

	for (uint32_t s = 0; s < steps; s++) {
		uint64_t width, low = ringtap_latency_low(s * PER_STEP, &width), packets = 0;
		double share;

		for (uint32_t b = s * PER_STEP; b < (s + 1) * PER_STEP; b++)
			packets += p->bucket[b];
		share = (double)packets / (double)p->count;
		*most = fmax(*most, share);
		x[n] = fmax((double)low, 0.5) * scale;
		y[n++] = share;
		x[n] = (double)(low + width * PER_STEP) * scale;
		y[n++] = share;
	}
	return (struct plot_series){.x = x, .y = y, .count = n};
}

/* The share of packets that took longer than each bucket's end. */
static struct plot_series tail_of(const struct latency_pair *p, double scale, double *x, double *y)
{
	uint64_t left = p->count;
	size_t n = 0;

	for (uint32_t b = 0; b < ringtap_latency_buckets(); b++) {
		uint64_t width, low = ringtap_latency_low(b, &width);

		if (!p->bucket[b])
			continue;
		x[n] = fmax((double)low, 0.5) * scale;
		y[n++] = (double)left / (double)p->count;
		left -= p->bucket[b];
		x[n] = (double)(low + width) * scale;
		y[n++] = left ? (double)left / (double)p->count : NAN;
	}
	return (struct plot_series){.x = x, .y = y, .count = n};
}

/* Percentiles: lines where the packets are, and dots on the curve of the tail. */
static void label(struct curves *c, const struct latency_pair *p, double scale, int colour)
{
	for (int q = 0; q < LATENCY_QUANTILES; q++) {
		double x = p->quantile[q] * scale;
		char *text = c->texts[c->label_count], value[32];

		format_ns(value, x * 1e9);
		snprintf(text, sizeof(c->texts[0]), "%s %s", latency_labels[q], value);
		c->lines[c->label_count] = (struct plot_label){
			.x = x, .y = NAN, .text = latency_labels[q], .colour = colour};
		c->dots[c->label_count++] = (struct plot_label){
			.x = x, .y = 1 - latency_shares[q], .text = text, .colour = colour};
	}
	c->most_end = fmax(c->most_end, p->quantile[P99] * scale);
}

static int make(struct curves *c, const struct latency *l)
{
	double scale = l->ns_per_cycle * 1e-9;
	size_t each = 2 * (size_t)ringtap_latency_buckets();

	*c = (struct curves){.low = INFINITY, .high = 0, .least = 1};
	c->count = l->pair_count < CURVES_MAX ? l->pair_count : CURVES_MAX;
	c->values = calloc(4 * each * CURVES_MAX, sizeof(*c->values));
	if (!c->values)
		return -ENOMEM;
	for (size_t i = 0; i < c->count; i++) {
		const struct latency_pair *p = &l->pairs[i];
		double *v = c->values + 4 * each * i;

		name_of(p, c->names[i]);
		c->density[i] = density_of(p, scale, v, v + each, &c->most);
		c->tail[i] = tail_of(p, scale, v + 2 * each, v + 3 * each);
		c->density[i].name = c->tail[i].name = c->names[i];
		c->density[i].colour = c->tail[i].colour = (int)i;
		label(c, p, scale, (int)i);
		c->low = fmin(c->low, fmax((double)p->min, 1) * scale);
		c->high = fmax(c->high, (double)(p->max + 1) * scale);
		c->least = fmin(c->least, 1.0 / (double)p->count);
	}
	return 0;
}

int latency_plot(const struct latency *l, const struct measure *m, FILE *f)
{
	struct plot_panel panels[2] = {
		{.title = "The fastest 99 %: share of packets in each sixteenth of an octave",
			.x = {.label = "time in the application", .unit = "s", .log = true},
			.y = {.label = "share of packets", .percent = true}},
		{.title = "All packets: share of them that took longer",
			.x = {.label = "time in the application", .unit = "s", .log = true},
			.y = {.label = "share of packets that take longer",
				.percent = true,
				.log = true,
				.max = 1.5}},
	};
	char title[256], name[RINGTAP_NAME_LEN];
	struct curves c;
	int ret = make(&c, l);

	if (ret)
		return ret;
	if (!c.count) {
		c.low = 1e-7;
		c.high = c.most_end = 1e-5;
		c.most = 1;
		c.least = 0.001;
	}
	panels[0].x.min = panels[1].x.min = c.low / 1.15;
	panels[1].x.max = c.high * 1.15;
	panels[0].x.max = fmin(c.high, fmax(c.most_end, c.low) * 1.3) * 1.15;
	panels[0].y.max = c.most * 1.08;
	panels[1].y.min = c.least * 0.9 < 0.5 ? c.least * 0.9 : 0.5;
	panels[0].series = c.density;
	panels[1].series = c.tail;
	panels[0].series_count = panels[1].series_count = c.count;
	panels[0].labels = c.lines;
	panels[1].labels = c.dots;
	panels[0].label_count = panels[1].label_count = c.label_count;
	snprintf(title, sizeof(title), "%s: from receiving to sending, %.1f s",
		printable(name, sizeof(name), m->app.name),
		(double)m->last->interval_ns / NS_PER_S);
	ret = plot_write(f, plot_format(m->options->plot), title, panels, 2);
	free(c.values);
	return ret;
}
