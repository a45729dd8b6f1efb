/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "export.h"
#include "cli/monitor/collectors.h"
#include "base/signals.h"
#include "base/util.h"

#define LISTEN_DEFAULT    "127.0.0.1:9777"
#define LATENCY_EVERY_MAX 1000000

enum { OPT_LISTEN = 1, OPT_COLLECTORS, OPT_EVERY };

static const struct option_def options[] = {
	{OPT_LISTEN, OPTION_TEXT, 'l', "listen", "[HOST:]PORT", NULL, 0, 0,
		"Address to listen at (default " LISTEN_DEFAULT "). Port 0 selects a free port; "
		":PORT listens at all addresses "
		"of the host, for all clients"},
	{OPT_COLLECTORS, OPTION_TEXT, 0, "collectors", "LIST", NULL, 0, 0,
		"What the applications count, separated by commas: polls, bytes, busy, gaps, "
		"latency, pools, or all (default polls,busy,pools; gaps reads the clock at every "
		"poll, bytes and latency read every packet, and so cost more)"},
	{OPT_EVERY, OPTION_NUMBER, 0, "latency-every", "N", NULL, 1, LATENCY_EVERY_MAX,
		"Time one packet in N only, which costs the application less (default 1)"},
};

/* clang-format off: it would break the texts at odd places */
static const struct section sections[] = {
	{"DESCRIPTION",
		"ringtap export serves the statistics of running DPDK applications to "
		"Prometheus: it answers HTTP requests for /metrics in Prometheus' text format "
		"or, on request, in OpenMetrics. Without APP it exports all applications of the "
		"host that have the probe, and those that start meanwhile. It runs until SIGINT "
		"or SIGTERM; applications count only while it does.\n\n"
		"Metrics begin with ringtap_ and have the label app, an application's "
		"file-prefix; docs/statistics.md lists them. Where they are counters of the "
		"probe, they begin at zero when the first monitor attaches; those of drivers "
		"count from the application's start.\n\n"
		"There is no access control: every client that reaches the address can read the "
		"statistics.\n"},
	{"EXAMPLES",
		"For a Prometheus on the same host, and its scrape configuration:\n\n"
		"  ringtap export &\n\n"
		"  scrape_configs:\n"
		"    - job_name: ringtap\n"
		"      static_configs: [{targets: ['127.0.0.1:9777']}]\n\n"
		"Packets received a second, for each application and port, in Prometheus:\n\n"
		"  sum by (app, port) (rate(ringtap_queue_packets_total{direction=\"rx\"}[1m]))\n"
		"\n"
		"DATADIR/ringtap/dashboards/ringtap.json is a dashboard for Grafana, "
		"DATADIR/ringtap/prometheus/ringtap.rules.yml has alert rules. The systemd unit "
		"ringtap-export.service runs the command with few rights, and the options of "
		"RINGTAP_EXPORT_OPTIONS in /etc/default/ringtap-export.\n"},
	{"EXIT STATUS", "0 when it was ended by a signal; 1 if it cannot listen; 2 for a wrong "
			"command line.\n"},
};
/* clang-format on */

struct context {
	const char *listen;
	struct watch watch;
};

static int set(void *ctx, int id, const struct option_value *v)
{
	struct context *c = ctx;

	if (id == OPT_LISTEN)
		c->listen = v->text;
	else if (id == OPT_EVERY)
		c->watch.latency_every = (unsigned)v->number;
	else
		c->watch.collectors = collectors_parse("export", v->text);
	return c->watch.collectors ? 0 : -EINVAL;
}

static int operand(void *ctx, const char *text)
{
	return watch_name(&((struct context *)ctx)->watch, "export", text);
}

static int export(struct watch *w, const char *listen)
{
	struct export_server *s;
	char url[128];
	int ret = export_serve(&s, w, listen, url, sizeof(url));

	if (ret)
		return ret == -EINVAL ? STATUS_USAGE : STATUS_FAILED;
	ret = watch_start(w);
	if (ret) {
		message_print("export: cannot start a thread that finds applications: %s",
			strerror(-ret));
		export_stop(s);
		return STATUS_FAILED;
	}
	/* What scripts wait for. */
	fprintf(stderr, "Exporting at %s\n", url);
	/* Scrapes take snapshots of their own; these notice that applications have ended. */
	for (bool first = true; !stop_wait(WATCH_STEP_NS); first = false) {
		watch_step(w);
		if (first && !watch_attached(w)) {
			watch_explain(w, "export");
			message_print("export: nothing to export yet; waiting for an application");
		}
	}
	export_stop(s);
	return STATUS_OK;
}

static int run(const struct command *self, int argc, char **argv)
{
	struct context c = {.listen = LISTEN_DEFAULT,
		.watch = {.collectors = RINGTAP_POLLS | RINGTAP_BUSY | RINGTAP_POOLS,
			.latency_every = 1}};
	int ret = options_parse(self, argc, argv, &c);

	if (ret <= 0)
		return ret ? STATUS_USAGE : STATUS_OK;
	watch_init(&c.watch);
	ret = stop_catch();
	if (ret)
		message_print("export: cannot wait for signals: %s", strerror(-ret));
	ret = ret ? STATUS_FAILED : export(&c.watch, c.listen);
	watch_free(&c.watch);
	return ret;
}

const struct command cmd_export = {
	.name = "export",
	.summary = "serve the statistics of DPDK applications to Prometheus",
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
