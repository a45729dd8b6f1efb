/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/monitor/collectors.h"
#include "base/signals.h"
#include "top.h"
#include "base/util.h"

#define INTERVAL_MIN_NS   (NS_PER_S / 10)
#define INTERVAL_MAX_NS   (3600 * NS_PER_S)
#define LATENCY_EVERY_MAX 1000000
/* What costs the application little; docs/performance.md has the measurements. */
#define COLLECTORS_DEFAULT (RINGTAP_POLLS | RINGTAP_BUSY | RINGTAP_POOLS)

enum {
	OPT_ONCE = 1,
	OPT_JSON,
	OPT_INTERVAL,
	OPT_COUNT,
	OPT_VIEW,
	OPT_SORT,
	OPT_REVERSE,
	OPT_COLLECTORS,
	OPT_EVERY
};

static const struct option_def options[] = {
	{OPT_VIEW, OPTION_CHOICE, 'v', "view", "VIEW", VIEW_NAMES, 0, 0,
		"The table to begin with: ports, queues, threads, pools, latency or gaps "
		"(default ports)"},
	{OPT_SORT, OPTION_TEXT, 's', "sort", "COLUMN", NULL, 0, 0,
		"Sort by the column of this title, largest first"},
	{OPT_REVERSE, OPTION_FLAG, 'r', "reverse", NULL, NULL, 0, 0, "Smallest first"},
	{OPT_INTERVAL, OPTION_TEXT, 'n', "interval", "SECONDS", NULL, 0, 0,
		"Time between two updates, 0.1 to 3600, over which rates are taken (default 1)"},
	{OPT_ONCE, OPTION_FLAG, '1', "once", NULL, NULL, 0, 0,
		"Print one table, or one document, after one interval; needs no terminal"},
	{OPT_JSON, OPTION_FLAG, 0, "json", NULL, NULL, 0, 0,
		"Print JSON with all statistics: a line each interval, or one document with "
		"--once"},
	{OPT_COUNT, OPTION_NUMBER, 'c', "count", "N", NULL, 1, UINT32_MAX,
		"End after so many intervals"},
	{OPT_COLLECTORS, OPTION_TEXT, 0, "collectors", "LIST", NULL, 0, 0,
		"What the applications count, separated by commas: polls, bytes, busy, gaps, "
		"latency, addresses, pools, or all (default polls,busy,pools; latency and gaps "
		"when their view is shown)"},
	{OPT_EVERY, OPTION_NUMBER, 0, "latency-every", "N", NULL, 1, LATENCY_EVERY_MAX,
		"Time one packet in N only, which costs the application less (default 1)"},
};

/* clang-format off: it would break the texts at odd places */
static const struct section sections[] = {
	{"DESCRIPTION",
		"ringtap top shows what the polling threads of running DPDK applications do: "
		"packets, bits and polls a second, how full bursts are, how much of their time "
		"is work, what is lost and where, and how full mempools are. Without APP it "
		"shows all applications of the host that have the probe, and those that start "
		"meanwhile. Applications count only while it runs.\n\n"
		"Packets are counted exactly, by the probe. Bits are the driver's statistics, if "
		"it has any; with the collector bytes, which reads the length of every packet "
		"and so costs more, they are exact, too. MISSED, NOMBUF and ERR are the drivers' "
		"counts, which are read twice a second. UNSENT are packets passed to TX less "
		"those that the driver sent: refused packets, which the application may drop or "
		"offer again, and those that the driver lost. A busy poll or call is one that "
		"had packets.\n"},
	{"KEYS", "  p u t m l g   ports, queues, threads, mempools, latency, gaps\n"
		 "  left right    previous, next view\n"
		 "  < >           sort by the column before, after; o: the view's own order\n"
		 "  r             reverse the order\n"
		 "  + -           longer, shorter interval\n"
		 "  space         pause\n"
		 "  up down PgUp PgDn Home End   scroll\n"
		 "  h ?           help on keys and columns\n"
		 "  q Ctrl-C      quit\n"},
	{"EXAMPLES", "The threads of one application, as a table for a report:\n\n"
		     "  ringtap top --once -v threads my-app\n\n"
		     "Received packets a second of each port, every ten seconds:\n\n"
		     "  ringtap top --json -n 10 | jq -c '.applications[] |\n"
		     "      {name} + (.ports[]? | {port: .name, pps: .rx.packets_per_second})'\n"},
	{"EXIT STATUS", "0; 1 if there is nothing to show or the output fails; 2 for a wrong "
			"command line.\n"},
};
/* clang-format on */

struct context {
	struct top_config cfg;
	struct watch watch;
};

static int set_interval(struct top_config *cfg, const char *text)
{
	if (!parse_seconds(text, &cfg->interval_ns) && cfg->interval_ns >= INTERVAL_MIN_NS &&
		cfg->interval_ns <= INTERVAL_MAX_NS)
		return 0;
	message_print("top: --interval %s: out of range; give seconds from 0.1 to 3600", text);
	return -EINVAL;
}

static int set(void *ctx, int id, const struct option_value *v)
{
	struct watch *w = &((struct context *)ctx)->watch;
	struct top_config *cfg = &((struct context *)ctx)->cfg;

	switch (id) {
	case OPT_ONCE: cfg->once = true; return 0;
	case OPT_JSON: cfg->json = true; return 0;
	case OPT_INTERVAL: return set_interval(cfg, v->text);
	case OPT_COUNT: cfg->count = v->number; return 0;
	case OPT_VIEW: cfg->view = (enum top_view)v->number; return 0;
	case OPT_SORT: cfg->sort = v->text; return 0;
	case OPT_REVERSE: cfg->reverse = true; return 0;
	case OPT_EVERY: w->latency_every = (unsigned)v->number; return 0;
	case OPT_COLLECTORS: w->collectors = collectors_parse("top", v->text); break;
	}
	return w->collectors ? 0 : -EINVAL;
}

static int operand(void *ctx, const char *text)
{
	return watch_name(&((struct context *)ctx)->watch, "top", text);
}

static int check(const struct top_config *cfg)
{
	const struct view *v = &views[cfg->view];

	if (cfg->sort && column_find(v->columns, v->column_count, cfg->sort) < 0) {
		message_print(
			"top: --sort %s: the view %s has no such column; give the title of one",
			cfg->sort, v->name);
		return -EINVAL;
	}
	if (!cfg->once && !cfg->json && (!isatty(STDOUT_FILENO) || !isatty(STDIN_FILENO))) {
		message_print("top: standard input or output is no terminal; use --once or --json");
		return -EINVAL;
	}
	return 0;
}

static int run(const struct command *self, int argc, char **argv)
{
	struct context c = {.cfg = {.interval_ns = NS_PER_S},
		.watch = {.collectors = COLLECTORS_DEFAULT, .latency_every = 1}};
	struct watch *w = &c.watch;
	int ret = options_parse(self, argc, argv, &c);

	if (ret <= 0)
		return ret ? STATUS_USAGE : STATUS_OK;
	if (check(&c.cfg))
		return STATUS_USAGE;
	c.cfg.collectors = w->collectors;
	w->collectors |= views[c.cfg.view].needs;
	watch_init(w);
	ret = watch_find(w, "top");
	if (ret == STATUS_OK)
		ret = c.cfg.once || c.cfg.json || !top_can_draw() ? top_lines(w, &c.cfg)
								  : top_screen(w, &c.cfg);
	watch_free(w);
	return ret;
}

const struct command cmd_top = {
	.name = "top",
	.summary = "show live statistics of ports, queues, threads and mempools",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.operands = "[APP]...",
	.listed = LIST_APPS,
	.operand = operand,
	.sections = sections,
	.section_count = sizeof(sections) / sizeof(sections[0]),
	.set = set,
	.run = run,
};
