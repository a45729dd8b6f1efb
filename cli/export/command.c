/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "target/attach_app.h"
#include "cli/commands.h"
#include "server.h"
#include "measure/collectors.h"
#include "base/signals.h"
#include "base/util.h"

#define LISTEN_DEFAULT "127.0.0.1:9777"
#define SAMPLES_OF_APP 50000
#define SAMPLES_IN_ALL 200000
#define SAMPLES_MAX    10000000

enum { OPT_COLLECTORS = 1, OPT_ALLOW_TRIGGER, OPT_TRIGGER_FROM, OPT_HOST, OPT_USERS };

struct export_options {
	struct watch watch; /* first, for watch_name() */
	struct export_config config;
	uint64_t duration_ns; /* 0: until a signal */
};

#define TO(field) OPTION_TO(struct export_options, field)

static const struct option_def options[] = {
	{TO(config.serve.listen), OPTION_TEXT, 0, "listen", "[HOST:]PORT", NULL, 0, 0,
		"Address to listen at (default: " LISTEN_DEFAULT "). Port 0 selects a free port; "
		":PORT listens at all addresses "
		"of the host, for all clients"},
	{OPTION_SET(OPT_COLLECTORS), OPTION_TEXT, 0, "collectors", "LIST", "all|" COLLECTOR_NAMES,
		0, 0,
		"What the applications count, separated by commas: polls, bytes, busy, gaps, "
		"latency, pools, xstats, devices, or all (default: polls,busy,pools; gaps reads the "
		"clock at every poll, bytes and latency read every packet, and so cost more)"},
	LATENCY_SAMPLE_OPTION(struct export_options, watch.latency_every),
	{OPTION_SET(OPT_ALLOW_TRIGGER), OPTION_FILE, 0, "allow-trigger", "DIR", NULL, 0, 0,
		"Let clients on this host make 'ringtap flight' write an incident to DIR (its --write) "
		"by POST /flight/NAME/trigger?comment=TEXT, where NAME is the last part of DIR's "
		"name; may be given several times (default: none)"},
	{OPTION_SET(OPT_TRIGGER_FROM), OPTION_CHOICE, 0, "trigger-from", "loopback|any",
		"loopback|any", 0, 0,
		"Clients that may do so: those of this host (the default), or all that reach the "
		"address of --listen"},
	WATCH_USERS_OPTION(OPT_USERS),
	SERVE_HOST_OPTION(OPT_HOST),
	{TO(config.limits.of_app), OPTION_NUMBER, 0, "max-samples", "N", NULL, 1, SAMPLES_MAX,
		"Samples of an application in an answer (default: 50000); "
		"ringtap_samples_left_out counts the others"},
	{TO(config.limits.in_all), OPTION_NUMBER, 0, "max-samples-in-all", "N", NULL, 1,
		SAMPLES_MAX,
		"Samples of all applications (default: 200000), of which those of other users "
		"share a quarter, and the others the rest, in equal parts"},
	{TO(config.top_flows), OPTION_NUMBER, 0, "flows", "N", NULL, 1, FLOWS_LIVE_MAX,
		"Export packets/s and bit/s of the N largest received flows of each application, from "
		"a sample of at most 500,000 packets/s (default: none)"},
	{TO(duration_ns), OPTION_TIME, 0, "duration", "TIME", NULL, SOME_TIME,
		"Stop after TIME (default: at a signal)"},
	ATTACH_OPTION(struct export_options, watch.attach),
};

static int set(void *ctx, int id, const struct option_value *v)
{
	struct export_options *c = ctx;
	struct watch *w = &c->watch;

	if (id == OPT_ALLOW_TRIGGER)
		return export_trigger_add(&c->config.triggers, v->text);
	if (id == OPT_USERS)
		return watch_add_users(w, v->text);
	if (id == OPT_HOST)
		return serve_add_host(&c->config.serve, v->text);
	if (id == OPT_TRIGGER_FROM) {
		c->config.triggers.from_any = v->number;
		return 0;
	}
	w->collectors = collectors_parse("export", v->text);
	return w->collectors ? 0 : -EINVAL;
}

static int export(struct export_options *c)
{
	struct watch *w = &c->watch;
	struct export_server *s;
	char url[128];
	int ret = export_serve(&s, w, &c->config, url, sizeof(url));

	if (ret)
		return ret == -EINVAL ? STATUS_USAGE : STATUS_FAILED;
	ret = watch_start(w);
	if (ret) {
		message_print("export: cannot start a thread that finds applications: %s",
			start_error(ret));
		export_stop(s);
		return STATUS_FAILED;
	}
	/* Scripts wait for this line. */
	fprintf(stderr, "Exporting at %s/metrics\n", url);
	stop_after(c->duration_ns);
	/* Scrapes take snapshots of their own; these notice that applications have ended. */
	for (bool first = true; !stop_wait(WATCH_STEP_NS); first = false) {
		watch_step(w);
		export_expire(s);
		if (first)
			watch_explain_wait(w);
		else
			watch_check_ports(w);
	}
	export_stop(s);
	return STATUS_OK;
}

static int run(const struct command *self, int argc, char **argv)
{
	struct export_options c = {
		.config = {.serve = {.command = "export", .listen = LISTEN_DEFAULT},
			.limits = {SAMPLES_OF_APP, SAMPLES_IN_ALL}},
		.watch = {.command = "export",
			.by_user = true,
			.collectors = RINGTAP_POLLS | RINGTAP_BUSY | RINGTAP_POOLS,
			.latency_every = 1}};
	int ret = options_parse(self, argc, argv, &c);

	if (ret <= 0)
		return ret ? STATUS_USAGE : STATUS_OK;
	watch_init(&c.watch);
	ret = stop_catch();
	if (ret)
		message_print("export: cannot wait for signals: %s", strerror(-ret));
	ret = ret ? STATUS_FAILED : watch_attach(&c.watch);
	if (ret == STATUS_OK)
		ret = export(&c);
	watch_free(&c.watch);
	return ret;
}

const struct command cmd_export = {
	.name = "export",
	.summary = "serve the statistics of DPDK applications to Prometheus",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.operands = "[APP[:PORT]]...",
	.listed = LIST_TARGETS,
	.operand = watch_name,
	.set = set,
	.run = run,
};
