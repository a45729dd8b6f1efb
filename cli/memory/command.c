/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <string.h>

#include "cli/commands.h"
#include "report.h"
#include "base/out_file.h"
#include "base/util.h"
#include "web/page.h"

#define DEFAULT_NS      (10 * NS_PER_S)
#define DEFAULT_PACKETS 32768

struct memory_options {
	struct measure_options common; /* first, for measure.c */
	const char *samples;
	bool distances;
};

#define TO(field) OPTION_TO(struct memory_options, field)

/* clang-format off: it would break the texts at odd places */
static const struct option_def options[] = {
	{.kind = OPTION_HEADING, .help = "What to measure"},
	MEASURE_OPTION_ATTACH,
	{TO(common.duration_ns), OPTION_TIME, 0, "duration", "TIME", NULL, SOME_TIME,
		"Measure for TIME, or until Ctrl-C"},
	{TO(common.packets), OPTION_NUMBER, 'c', "packets", "N", NULL, 1, MEMORY_SAMPLES_MAX,
		"Measure until the buffers of N packets, or some more, have been sampled "
		"(default: 32768 packets, at most 10s; no limit with --duration)"},
	{.kind = OPTION_HEADING, .help = "Output"},
	{TO(distances), OPTION_FLAG, 0, "distances", NULL, NULL, 0, 0,
		"Print the distribution of distances from one buffer to the next, too"},
	MEASURE_OPTION_JSON,
	{TO(samples), OPTION_FILE, 0, "samples", "FILE", NULL, 0, 0,
		"Write every sampled buffer to FILE, as comma-separated values"},
	MEASURE_OPTION_HTML,
	MEASURE_OPTION_QUIET,
};
/* clang-format on */

static uint64_t take(
	void *ctx, const struct ringtap_snapshot *first, const struct ringtap_snapshot *now)
{
	return memory_samples_take(ctx, first, now);
}

struct outputs {
	struct out_file html, samples;
};

static int print(const struct memory *mem)
{
	int ret = 0;

	if (mem->m->options->json)
		ret = memory_json(mem);
	else
		memory_print(mem);
	return output_end("memory", ret) == STATUS_OK ? 0 : -EIO;
}

static int report(const struct memory_options *c, const struct measure *m,
	const struct pcm_iio *pcm, struct outputs *out)
{
	const struct memory_samples *s = m->ctx;
	struct memory_patterns patterns;
	const struct memory mem = {
		.m = m, .samples = s, .patterns = &patterns, .pcm = pcm, .distances = c->distances};
	int ret = memory_patterns_find(&patterns, s, m->last);

	if (m->app.secondary)
		message_print("memory: '%s' is a secondary process: mempools are shown for its "
			      "primary",
			m->app.name);
	if (s->failed)
		ret = -ENOMEM;
	if (ret)
		message_print("memory: %zu samples: %s", s->count, strerror(-ret));
	else if (s->full)
		message_print(
			"memory: no room for more than %zu samples: the rest of the time is missing",
			s->count);
	if (!ret)
		ret = print(&mem);
	if (out->samples.f)
		ret |= out_file_close(&out->samples, "memory",
			ret ? ret : memory_samples_write(s, m->last, out->samples.f));
	if (out->html.f)
		ret |= out_file_close(&out->html, "memory",
			ret ? ret : web_page_write(memory_view(&mem), out->html.f));
	memory_patterns_free(&patterns);
	return ret ? STATUS_FAILED : STATUS_OK;
}

static int run(const struct command *self, int argc, char **argv)
{
	struct memory_options c = {.common = {.command = "memory"}};
	struct memory_samples samples = {0};
	struct measure m = {.options = &c.common,
		.collectors = RINGTAP_POOLS | RINGTAP_ADDRESSES,
		.what = "packets seen",
		.take = take,
		.ctx = &samples};
	struct outputs out = {0};
	struct pcm_iio pcm;
	int ret = options_parse(self, argc, argv, &c);

	if (ret <= 0)
		return ret ? STATUS_USAGE : STATUS_OK;
	if (!c.common.duration_ns && !c.common.packets) {
		c.common.duration_ns = DEFAULT_NS;
		c.common.packets = DEFAULT_PACKETS;
	}
	samples.app = &m.app;
	ret = out_file_open(&out.html, "memory", c.common.html) ||
	      out_file_open(&out.samples, "memory", c.samples);
	if (!ret) {
		pcm_iio_begin(&pcm);
		ret = measure_run(&m);
		pcm_iio_end(&pcm);
		if (ret == STATUS_OK)
			ret = report(&c, &m, &pcm, &out);
	} else {
		ret = STATUS_FAILED;
	}
	out_file_close(&out.html, "memory", 0);
	out_file_close(&out.samples, "memory", 0);
	measure_free(&m);
	memory_samples_free(&samples);
	return ret;
}

const struct command cmd_memory = {
	.name = "memory",
	.summary = "show mempools and the order in which their buffers are used",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.operands = "[APP[:PORT]]...",
	.listed = LIST_TARGETS,
	.operand = measure_operand,
	.run = run,
};
