/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/commands.h"
#include "latency.h"
#include "base/out_file.h"
#include "base/util.h"
#include "web/page.h"

#define DEFAULT_NS (10 * NS_PER_S)

struct latency_options {
	struct measure_options common; /* first, for measure.c */
	uint32_t every;
	bool histogram;
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
	{TO(every), OPTION_NUMBER, 0, "sample", "N", NULL, 1, 1 << 20,
		"Time one packet in N (default: 1, every packet). Of several measurements at "
		"once, the smallest N applies to all"},
	{.kind = OPTION_HEADING, .help = "Output"},
	{TO(histogram), OPTION_FLAG, 0, "histogram", NULL, NULL, 0, 0,
		"Print the whole distribution, too"},
	MEASURE_OPTION_JSON,
	MEASURE_OPTION_HTML,
	MEASURE_OPTION_QUIET,
};
/* clang-format on */

static uint64_t take(
	void *ctx, const struct ringtap_snapshot *first, const struct ringtap_snapshot *now)
{
	return latency_timed(ctx, first, now);
}

static int report(const struct latency_options *c, const struct measure *m, struct out_file *html)
{
	struct latency l;
	int ret = latency_sum(&l, &m->app, m->first, m->last), error = ret;

	if (!ret && c->common.json)
		ret = latency_json(&l, m);
	else if (!ret)
		latency_print(&l, m);
	if (!ret && c->histogram && !c->common.json)
		latency_print_histogram(&l);
	ret = output_end("latency", ret);
	if (html->f && !error)
		error = web_page_write(latency_view(&l, m), html->f);
	if (out_file_close(html, "latency", error))
		ret = STATUS_FAILED;
	latency_free(&l);
	return ret;
}

static int run(const struct command *self, int argc, char **argv)
{
	struct latency_options c = {.common = {.command = "latency"}, .every = 1};
	struct measure m = {.options = &c.common,
		.collectors = RINGTAP_LATENCY,
		.what = "packets timed",
		.take = take,
		.ctx = &m.app};
	struct out_file html = {0};
	int ret = options_parse(self, argc, argv, &c);

	if (ret <= 0)
		return ret ? STATUS_USAGE : STATUS_OK;
	if (!c.common.duration_ns && !c.common.packets)
		c.common.duration_ns = DEFAULT_NS;
	m.latency_every = c.every;
	if (out_file_open(&html, "latency", c.common.html))
		return STATUS_FAILED;
	ret = measure_run(&m);
	if (ret == STATUS_OK)
		ret = report(&c, &m, &html);
	out_file_close(&html, "latency", 0);
	measure_free(&m);
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
