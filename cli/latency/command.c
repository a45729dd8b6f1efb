/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/commands.h"
#include "latency.h"
#include "measure/collectors.h"
#include "base/out_file.h"
#include "base/util.h"
#include "web/page.h"

#define DEFAULT_NS (10 * NS_PER_S)
#define MOMENT_NS  (NS_PER_S / 10) /* a moment of the page, at first */

struct latency_options {
	struct measure_options common; /* first, for measure.c */
	uint32_t every;
	enum latency_by by;
	uint64_t interval_ns;
	bool histogram;
};

/* A measurement, and what was cut off it so far. */
struct run {
	const struct latency_options *c;
	struct measure m;
	struct latency_clock clock; /* for --interval */
	struct latency_moments moments;
	int error; /* in cutting it, or in the output */
};

#define TO(field) OPTION_TO(struct latency_options, field)

/* clang-format off: it would break the texts at odd places */
static const struct option_def options[] = {
	{.kind = OPTION_HEADING, .help = "What to measure"},
	MEASURE_OPTION_ATTACH,
	{TO(common.duration_ns), OPTION_TIME, 0, "duration", "TIME", NULL, SOME_TIME,
		"Measure for TIME, or until Ctrl-C (default: 10s; no limit with --packets)"},
	{TO(common.packets), OPTION_NUMBER, 'c', "packets", "N", NULL, 1, UINT64_MAX,
		"Measure until N packets, or some more, have been timed"},
	{TO(every), OPTION_NUMBER, 0, "sample", "N", NULL, 1, LATENCY_SAMPLE_MAX,
		"Time one packet in N (default: 1, every packet). Of several measurements at "
		"once, the smallest N applies to all"},
	{TO(by), OPTION_CHOICE, 0, "by", "port|queue|thread|size", "port|queue|thread|size", 0, 0,
		"What the rows are of, besides the pair of ports: nothing (port, the default), the "
		"queue that sent, the thread that sent, or the length of the packets"},
	{.kind = OPTION_HEADING, .help = "Output"},
	{TO(interval_ns), OPTION_TIME, 0, "interval", "TIME", NULL, INTERVAL_TIME,
		"Print a report, or a JSON document in a line, of each interval, instead of one of "
		"all the time; 100ms to 1h"},
	{TO(histogram), OPTION_FLAG, 0, "histogram", NULL, NULL, 0, 0,
		"Print the whole distribution, too"},
	MEASURE_OPTION_JSON,
	MEASURE_OPTION_HTML,
	MEASURE_OPTION_QUIET,
};
/* clang-format on */

static int print_report(const struct run *r, const struct latency *l)
{
	if (r->c->common.json)
		return latency_json(l, &r->m, r->clock.interval_ns);
	latency_print(l, &r->m);
	if (r->c->histogram)
		latency_print_histogram(l);
	return 0;
}

/* ret: as latency_clock_next() returned it. */
static void interval_over(struct run *r, struct latency *l, int ret)
{
	if (ret == 1) {
		ret = print_report(r, l);
		if (!r->c->common.json)
			putchar('\n');
		fflush(stdout);
		latency_free(l);
	}
	r->error = r->error ? r->error : ret;
}

static void moment_over(struct run *r, struct latency *l, int ret)
{
	if (ret == 1) {
		ret = latency_moments_add(&r->moments, l);
		latency_free(l);
	}
	r->error = r->error ? r->error : ret;
}

static uint64_t take(
	void *ctx, const struct ringtap_snapshot *first, const struct ringtap_snapshot *now)
{
	struct run *r = ctx;
	enum latency_by by = r->c->by;
	struct latency l;

	if (r->clock.interval_ns && !r->error)
		interval_over(r, &l, latency_clock_next(&r->clock, &l, by, &r->m.app, first, now));
	if (r->moments.clock.interval_ns && !r->error)
		moment_over(r, &l,
			latency_clock_next(&r->moments.clock, &l, by, &r->m.app, first, now));
	/* Enough, if nothing can be printed any more. */
	return r->error ? UINT64_MAX : latency_timed(&r->m.app, first, now);
}

static int report(struct run *r, struct out_file *html)
{
	struct latency l, rest;
	int ret = latency_sum(&l, r->c->by, &r->m.app, r->m.first, r->m.last), error;

	if (!ret && r->clock.interval_ns)
		interval_over(r, &rest, latency_clock_end(&r->clock, &rest, r->c->by, &r->m));
	else if (!ret)
		ret = print_report(r, &l);
	if (r->moments.clock.interval_ns)
		moment_over(r, &rest, latency_clock_end(&r->moments.clock, &rest, r->c->by, &r->m));
	error = ret = ret ? ret : r->error;
	ret = output_end("latency", ret);
	if (html->f && !error)
		error = web_page_write(latency_view(&l, &r->m, &r->moments), html->f);
	if (out_file_close(html, "latency", error))
		ret = STATUS_FAILED;
	latency_free(&l);
	return ret;
}

static int run(const struct command *self, int argc, char **argv)
{
	struct latency_options c = {.common = {.command = "latency"}, .every = 1};
	struct run r = {.c = &c,
		.m = {.options = &c.common,
			.collectors = RINGTAP_LATENCY,
			.what = "packets timed",
			.take = take,
			.ctx = &r}};
	struct out_file html = {0};
	int ret = options_parse(self, argc, argv, &c);

	if (ret <= 0)
		return ret ? STATUS_USAGE : STATUS_OK;
	if (!c.common.duration_ns && !c.common.packets)
		c.common.duration_ns = DEFAULT_NS;
	r.m.latency_every = c.every;
	if (c.by == BY_QUEUE || c.by == BY_SIZE)
		r.m.collectors |= RINGTAP_LATENCY_SPLIT;
	if (out_file_open(&html, "latency", c.common.html))
		return STATUS_FAILED;
	r.clock.interval_ns = c.interval_ns;
	r.moments.clock.interval_ns = html.f ? MOMENT_NS : 0;
	ret = measure_run(&r.m);
	if (ret == STATUS_OK)
		ret = report(&r, &html);
	out_file_close(&html, "latency", 0);
	latency_clock_free(&r.clock);
	latency_moments_free(&r.moments);
	measure_free(&r.m);
	return ret;
}

const struct command cmd_latency = {
	.name = "latency",
	.summary = "measure how long packets stay in a running DPDK application",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.operands = "[APP[:PORT]]...",
	.listed = LIST_TARGETS,
	.operand = measure_operand,
	.run = run,
};
