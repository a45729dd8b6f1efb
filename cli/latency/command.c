/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <string.h>

#include "cli/commands.h"
#include "latency.h"
#include "base/out_file.h"
#include "base/util.h"

#define DEFAULT_NS (10 * NS_PER_S)

enum { OPT_EVERY = MEASURE_OWN, OPT_HISTOGRAM };

/* clang-format off: it would break the texts at odd places */
static const struct option_def options[] = {
	{.kind = OPTION_HEADING, .help = "What to measure"},
	MEASURE_OPTION_INTERFACE,
	{MEASURE_DURATION, OPTION_TEXT, 0, "duration", "SECONDS", NULL, 0, 0,
		"Measure for SECONDS, or until Ctrl-C (default: 10; no limit with --packets)"},
	{MEASURE_PACKETS, OPTION_NUMBER, 0, "packets", "N", NULL, 1, UINT64_MAX,
		"Measure until N packets, or some more, have been timed"},
	{OPT_EVERY, OPTION_NUMBER, 0, "every", "N", NULL, 1, 1 << 20,
		"Time one packet in N (default: 1, every packet). Of several measurements at "
		"once, the smallest N applies to all"},
	{.kind = OPTION_HEADING, .help = "Output"},
	{OPT_HISTOGRAM, OPTION_FLAG, 0, "histogram", NULL, NULL, 0, 0,
		"Print the whole distribution, too; with --csv, instead"},
	MEASURE_OPTION_JSON,
	{MEASURE_CSV, OPTION_FLAG, 0, "csv", NULL, NULL, 0, 0, "Print comma-separated values"},
	{MEASURE_PLOT, OPTION_FILE, 0, "plot", "FILE.svg|png", NULL, 0, 0, "Draw the distribution"},
	MEASURE_OPTION_QUIET,
};

static const struct section sections[] = {
	{"DESCRIPTION",
		"ringtap latency measures how long packets stay in a running DPDK application: "
		"from the moment when a burst comes out of the driver until the moment when a "
		"burst is handed to the driver. The probe writes the time stamp counter into "
		"every packet that is received, and reads it when the packet is sent. Time in "
		"the queues of NICs is not included; time in the application's own queues is.\n\n"
		"Percentiles come from a histogram of all packets, whose buckets are fine enough "
		"for an error below 1 %. Minimum, maximum and mean are exact; where another "
		"monitor measures since before this one, minimum and maximum are within 1 %.\n\n"
		"Packets that the application made itself, clones, packets with several "
		"references, and those that circulate without being received again, have no "
		"receive time stamp: they are counted as not timed.\n\n"
		"Applications that reset the flags of packets (testpmd's mac, macswap, csum) "
		"lose the flag of the time stamp. Their times are printed separately, as "
		"inferred: right if the application sends what it receives, wrong if it frees "
		"that and fills raw mbufs of the same pool (testpmd's flowgen).\n"},
	SECTION_OPEN_VSWITCH,
	{"EXAMPLES", "Ten seconds of the only application:\n\n"
		     "  ringtap latency\n\n"
		     "A million packets of application ovs that port p0 receives or sends, as a "
		     "plot:\n\n"
		     "  ringtap latency -i ovs:p0 --packets 1000000 --plot latency.svg\n\n"
		     "Fail a test if one packet in 1000 takes longer than 50 us:\n\n"
		     "  ringtap latency --json | jq -e \\\n"
		     "      '.pairs + .inferred | length > 0 and all(.[].ns.p999; . < 50000)'\n"},
	{"EXIT STATUS",
		"0: measured until a limit, a signal, or the end of the application; also if "
		"there was no packet.\n\n"
		"1: attaching to the application failed, or the output could not be written.\n\n"
		"2: the command line is wrong; nothing was attached.\n"},
};
/* clang-format on */

struct config {
	struct measure_options common;
	uint32_t every;
	bool histogram;
};

static int set(void *ctx, int id, const struct option_value *v)
{
	struct config *c = ctx;

	switch (id) {
	case OPT_EVERY: c->every = (uint32_t)v->number; return 0;
	case OPT_HISTOGRAM: c->histogram = true; return 0;
	default: return measure_set(&c->common, "latency", id, v);
	}
}

static int operand(void *ctx, const char *text)
{
	return measure_operand(&((struct config *)ctx)->common, "latency", text);
}

static uint64_t look(
	void *ctx, const struct ringtap_snapshot *first, const struct ringtap_snapshot *now)
{
	return latency_timed(ctx, first, now);
}

static int report(const struct config *c, const struct measure *m, struct out_file *plot)
{
	struct latency l;
	int ret = latency_sum(&l, &m->app, m->first, m->last), error = ret;

	if (!ret && c->common.json)
		ret = latency_json(&l, m);
	else if (!ret && c->common.csv)
		latency_csv(&l, c->histogram);
	else if (!ret)
		latency_print(&l, m);
	if (!ret && c->histogram && !c->common.json && !c->common.csv)
		latency_print_histogram(&l);
	if (ret || fflush(stdout) || ferror(stdout)) {
		message_print("latency: cannot write to standard output: %s",
			strerror(ret ? -ret : errno));
		ret = -EIO;
	}
	if (plot->f && !error)
		error = latency_plot(&l, m, plot->f);
	if (out_file_close(plot, "latency", error))
		ret = -EIO;
	latency_free(&l);
	return ret ? STATUS_FAILED : STATUS_OK;
}

static int run(const struct command *self, int argc, char **argv)
{
	struct config c = {.every = 1};
	struct measure m = {.command = "latency",
		.options = &c.common,
		.collectors = RINGTAP_LATENCY,
		.what = "packets timed",
		.look = look,
		.ctx = &m.app};
	struct out_file plot = {0};
	int ret = options_parse(self, argc, argv, &c);

	if (ret <= 0)
		return ret ? STATUS_USAGE : STATUS_OK;
	if (c.common.json && c.common.csv) {
		message_print("latency: --json and --csv: choose one");
		return STATUS_USAGE;
	}
	if (!c.common.duration_ns && !c.common.packets)
		c.common.duration_ns = DEFAULT_NS;
	m.latency_every = c.every;
	if (out_file_open(&plot, "latency", c.common.plot))
		return STATUS_FAILED;
	ret = measure_run(&m);
	if (ret == STATUS_OK)
		ret = report(&c, &m, &plot);
	out_file_close(&plot, "latency", 0);
	measure_free(&m);
	return ret;
}

const struct command cmd_latency = {
	.name = "latency",
	.summary = "measure how long packets stay in a running DPDK application",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.operands = "[APP]",
	.listed = LIST_APPS,
	.operand = operand,
	.sections = sections,
	.section_count = sizeof(sections) / sizeof(sections[0]),
	.set = set,
	.run = run,
};
