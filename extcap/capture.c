/* SPDX-License-Identifier: BSD-3-Clause */
/* `ringtap record` into Wireshark's pipe. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/record/record.h"
#include "base/util.h"
#include "extcap.h"

#define ARGS_MAX 24

struct args {
	char *argv[ARGS_MAX + 1];
	int argc;
};

static void add(struct args *a, const char *option, const char *value)
{
	if (!value)
		return;
	/* getopt_long() takes them as they are. */
	a->argv[a->argc++] = (char *)(uintptr_t)option;
	a->argv[a->argc++] = (char *)(uintptr_t)value;
}

/* What `ringtap record` makes of the same options, with its words where one is wrong. */
static int configure(struct record_config *cfg, const struct extcap *e, const char *spec)
{
	struct args a = {.argv = {"record"}, .argc = 1};
	bool all_queues = e->queue && !strcmp(e->queue, "all");
	int ret;

	add(&a, "-i", spec);
	add(&a, "-f", e->filter);
	add(&a, "-s", e->snaplen);
	add(&a, "--direction", e->direction);
	add(&a, "--queue", all_queues ? NULL : e->queue);
	add(&a, "--ring-size", e->ring_size);
	add(&a, "--timestamp", e->timestamp);
	add(&a, "-w", e->fifo);
	/* Whatever stands on standard error is shown as an error. */
	a.argv[a.argc++] = (char *)(uintptr_t) "-q";
	config_init(cfg);
	ret = options_parse(&cmd_record, a.argc, a.argv, cfg);
	return ret > 0 ? config_check(cfg) : ret;
}

/* The end that Wireshark makes is the usual one. */
static int verdict(const struct recorder *r, int status)
{
	report_losses(r);
	return r->error == -EPIPE ? STATUS_OK : status;
}

int capture(const struct extcap *e)
{
	struct record_config cfg;
	struct recorder r = {.cfg = &cfg};
	char spec[2 * RINGTAP_NAME_LEN + 2];
	const char *name = e->interface + strlen(EXTCAP_SCHEME);
	int status = STATUS_USAGE;

	snprintf(spec, sizeof(spec), "%s%s", name, strchr(name, ':') ? "" : ":");
	if (!configure(&cfg, e, spec)) {
		status = verdict(&r, recorder_run(&r));
		recorder_free(&r);
	}
	config_free(&cfg);
	return status;
}
