/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/nearest.h"
#include "target/attach_app.h"
#include "cli/commands.h"
#include "measure/collectors.h"
#include "show/term.h"
#include "output.h"
#include "base/signals.h"
#include "base/util.h"

/* Collectors that cost the application little; docs/performance.md has the measurements. */
#define COLLECTORS_DEFAULT (RINGTAP_POLLS | RINGTAP_BUSY | RINGTAP_POOLS)

enum {
	OPT_COLLECTORS = 1,
};

struct top_options {
	struct watch watch; /* first, for watch_name() */
	struct top_config cfg;
};

#define TO(field) OPTION_TO(struct top_options, field)

static const struct option_def options[] = {
	{TO(cfg.view), OPTION_CHOICE, 0, "view", "WHAT", VIEW_NAMES, 0, 0,
		"The table to begin with: apps, ports, queues, threads, pools, rings, "
		"xstats, devices, latency, gaps or flows (default: ports); flows captures headers of "
		"one of N received packets"},
	{TO(cfg.sort), OPTION_TEXT, 0, "by", "COLUMN", COLUMN_NAMES, 0, 0,
		"Sort by the column of this title, largest first"},
	{TO(cfg.reverse), OPTION_FLAG, 0, "reverse", NULL, NULL, 0, 0, "Smallest first"},
	{TO(cfg.interval_ns), OPTION_TIME, 0, "interval", "TIME", NULL, INTERVAL_TIME,
		"Time between two updates, over which rates are taken, 100ms to 1h (default: 1s)"},
	{TO(cfg.once), OPTION_FLAG, '1', "once", NULL, NULL, 0, 0,
		"Print one table, or one document, after one interval"},
	{TO(cfg.wide), OPTION_FLAG, 0, "wide", NULL, NULL, 0, 0,
		"All columns, and names in full, in printed tables (default: what fits COLUMNS or "
		"the terminal; all where there is neither)"},
	{TO(cfg.json), OPTION_FLAG, 0, "json", NULL, NULL, 0, 0,
		"Print JSON with all statistics: a line each interval, or one document with "
		"--once"},
	{TO(cfg.count), OPTION_NUMBER, 0, "updates", "N", NULL, 1, UINT32_MAX,
		"Stop after N intervals"},
	{TO(cfg.duration_ns), OPTION_TIME, 0, "duration", "TIME", NULL, SOME_TIME,
		"Stop after TIME (default: at a signal, or q on a terminal)"},
	{OPTION_SET(OPT_COLLECTORS), OPTION_TEXT, 0, "collectors", "LIST", "all|" COLLECTOR_NAMES,
		0, 0,
		"What the applications count, separated by commas: polls, bytes, busy, gaps, "
		"latency, addresses, pools, xstats, devices, or all (default: polls,busy,pools; "
		"latency, gaps, xstats and devices when their view is shown)"},
	LATENCY_SAMPLE_OPTION(struct top_options, watch.latency_every),
	ATTACH_OPTION(struct top_options, watch.attach),
};

static int set(void *ctx, int id, const struct option_value *v)
{
	struct watch *w = &((struct top_options *)ctx)->watch;

	w->collectors = collectors_parse("top", v->text);
	return w->collectors ? 0 : -EINVAL;
}

static int check(const struct top_config *cfg)
{
	const struct view *v = &views[cfg->view];
	char titles[256] = "", list[300];
	struct nearest n;

	if (cfg->view == VIEW_FLOWS && cfg->json)
		return message_fail(-EINVAL,
			"top: --view flows: JSON has statistics only; use ringtap flows --json");
	if (cfg->sort && column_find(v->columns, v->column_count, cfg->sort) < 0) {
		nearest_begin(&n, cfg->sort, strlen(cfg->sort));
		for (unsigned i = 0; i < v->column_count; i++) {
			const char *title = v->columns[i].title;

			text_list_add(titles, sizeof(titles), title);
			nearest_offer(&n, title, strlen(title));
		}
		snprintf(list, sizeof(list), "choose from %s", titles);
		return message_fail(-EINVAL, "top: --by %s: the view %s has no such column; %s",
			cfg->sort, v->name, nearest_advice(&n, list));
	}
	return 0;
}

static int run(const struct command *self, int argc, char **argv)
{
	struct top_options c = {.cfg = {.interval_ns = NS_PER_S, .view = VIEW_PORTS},
		.watch = {.command = "top",
			.collectors = COLLECTORS_DEFAULT,
			.latency_every = 1,
			.keep_ended = true}};
	struct watch *w = &c.watch;
	int ret = options_parse(self, argc, argv, &c);

	if (ret <= 0)
		return ret ? STATUS_USAGE : STATUS_OK;
	if (check(&c.cfg))
		return STATUS_USAGE;
	c.cfg.collectors = w->collectors;
	w->collectors |= views[c.cfg.view].needs;
	watch_init(w);
	ret = stop_catch();
	if (ret)
		message_print("top: cannot wait for signals: %s", strerror(-ret));
	ret = ret ? STATUS_FAILED : watch_find(w);
	if (ret == STATUS_OK)
		ret = term_live(c.cfg.once, c.cfg.json) == LIVE_SCREEN ? top_screen(w, &c.cfg)
								       : top_lines(w, &c.cfg);
	watch_free(w);
	return ret;
}

const struct command cmd_top = {
	.name = "top",
	.summary = "show live statistics of ports, queues, threads and mempools",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.operands = "[APP[:PORT]]...",
	.listed = LIST_TARGETS,
	.operand = watch_name,
	.set = set,
	.run = run,
};
