/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "target/attach_app.h"
#include "cli/commands.h"
#include "measure/collectors.h"
#include "base/signals.h"
#include "base/util.h"
#include "web.h"

#define LISTEN_DEFAULT "127.0.0.1:9475"

enum { OPT_COLLECTORS = 1, OPT_HOST, OPT_USERS };

#define TO(field) OPTION_TO(struct web_options, field)

static const struct option_def options[] = {
	{TO(serve.listen), OPTION_TEXT, 0, "listen", "[HOST:]PORT", NULL, 0, 0,
		"Address to listen at (default: " LISTEN_DEFAULT "). Port 0 selects a free port; "
		":PORT listens at all addresses of the host"},
	{TO(token_file), OPTION_FILE, 0, "token-file", "FILE", NULL, 0, 0,
		"Take the token from FILE, which only its owner may read, and do not print it; the "
		"file is made if it is missing (default: a new token, which is printed)"},
	{TO(history_ns), OPTION_TIME, 0, "history", "TIME", NULL, 10 * NS_PER_S,
		HISTORY_STEPS *NS_PER_S,
		"Collect also while no page is open, and keep TIME, 10s to 10m (default: from the "
		"first page until 2 minutes after the last)"},
	{OPTION_SET(OPT_COLLECTORS), OPTION_TEXT, 0, "collectors", "LIST", "all|" COLLECTOR_NAMES,
		0, 0,
		"What the applications count, separated by commas: polls, bytes, busy, gaps, "
		"latency, pools, xstats, devices, or all (default: polls,busy,pools; gaps reads the "
		"clock at every poll, bytes and latency read every packet, and so cost more)"},
	LATENCY_SAMPLE_OPTION(struct web_options, watch.latency_every),
	{TO(flows), OPTION_NUMBER, 0, "flows", "N", NULL, 1, FLOWS_LIVE_MAX,
		"Show the N largest flows of each application, with their addresses, from headers of "
		"a sample of received packets (default: off; with --allow-actions the page can "
		"switch it)"},
	{TO(allow_actions), OPTION_FLAG, 0, "allow-actions", NULL, NULL, 0, 0,
		"Let the page switch collectors, record packets for download, have flight recorders "
		"write incidents, and show their pages, which have packets (default: it reads "
		"statistics only)"},
	WATCH_USERS_OPTION(OPT_USERS),
	SERVE_HOST_OPTION(OPT_HOST),
	{TO(duration_ns), OPTION_TIME, 0, "duration", "TIME", NULL, SOME_TIME,
		"Stop after TIME (default: at a signal)"},
	ATTACH_OPTION(struct web_options, watch.attach),
};

static int set(void *ctx, int id, const struct option_value *v)
{
	struct web_options *o = ctx;

	if (id == OPT_USERS)
		return watch_add_users(&o->watch, v->text);
	if (id == OPT_HOST)
		return serve_add_host(&o->serve, v->text);
	o->watch.collectors = collectors_parse("web", v->text);
	return o->watch.collectors ? 0 : -EINVAL;
}

/* Loads the probe where it is missing, if that is requested. */
static int attach(const struct web_options *o)
{
	struct watch w = o->watch;
	int ret;

	watch_init(&w);
	ret = watch_attach(&w);
	watch_free(&w);
	return ret;
}

/* Pages come later, and the web's watch with the first: names at the start what is missing. */
static void explain(const struct web_options *o)
{
	struct watch w = o->watch;

	w.attach = false;
	w.collectors = RINGTAP_POLLS;
	watch_init(&w);
	if (!watch_refresh(&w)) {
		watch_step(&w);
		watch_explain_wait(&w);
	}
	watch_free(&w);
}

static int serve(struct web_options *o)
{
	struct web w;
	char url[256];
	int ret = web_start(&w, o, url, sizeof(url));

	if (ret) {
		web_stop(&w);
		return ret == -EINVAL ? STATUS_USAGE : STATUS_FAILED;
	}
	/* Scripts wait for this line. */
	printf("%s\n", url);
	fflush(stdout);
	stop_after(o->duration_ns);
	explain(o);
	while (!stop_wait(WATCH_STEP_NS))
		web_step(&w);
	web_stop(&w);
	return STATUS_OK;
}

static int run(const struct command *self, int argc, char **argv)
{
	struct web_options o = {.serve = {.command = "web", .listen = LISTEN_DEFAULT},
		.recorder = "/proc/self/exe",
		.watch = {.command = "web",
			.by_user = true,
			.collectors = RINGTAP_POLLS | RINGTAP_BUSY | RINGTAP_POOLS,
			.latency_every = 1}};
	int ret = options_parse(self, argc, argv, &o);

	if (ret <= 0)
		return ret ? STATUS_USAGE : STATUS_OK;
	ret = stop_catch();
	if (ret)
		message_print("web: cannot wait for signals: %s", strerror(-ret));
	ret = ret ? STATUS_FAILED : attach(&o);
	return ret == STATUS_OK ? serve(&o) : ret;
}

const struct command cmd_web = {
	.name = "web",
	.summary = "show DPDK applications in a browser, live",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.operands = "[APP[:PORT]]...",
	.listed = LIST_TARGETS,
	.operand = watch_name,
	.set = set,
	.run = run,
};
