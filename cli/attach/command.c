/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "target/attach_app.h"
#include "cli/commands.h"

struct attach_options {
	const char *command, *app;
	bool quiet;
};

static const struct option_def options[] = {
	{OPTION_TO(struct attach_options, quiet), OPTION_FLAG, 'q', "quiet", NULL, NULL, 0, 0,
		"Print nothing but errors"},
};

static int operand(void *ctx, const char *text)
{
	struct attach_options *c = ctx;

	if (c->app) {
		message_print(
			"%s: %s: one application only; name it by PID or NAME", c->command, text);
		return -EINVAL;
	}
	c->app = text;
	return 0;
}

/* Finds the application. Returns enum status, -1: go on. */
static int begin(const struct command *self, int argc, char **argv, struct attach_options *c,
	struct attach_target *t)
{
	int ret;

	c->command = self->name;
	ret = options_parse(self, argc, argv, c);
	if (ret <= 0)
		return ret ? STATUS_USAGE : STATUS_OK;
	if (!c->app) {
		message_print("%s: no application is given; 'ringtap list' shows what there is",
			self->name);
		return STATUS_USAGE;
	}
	return attach_target_find(t, self->name, c->app) ? STATUS_FAILED : -1;
}

static int run_attach(const struct command *self, int argc, char **argv)
{
	uint64_t begin_ns = now_ns(CLOCK_MONOTONIC);
	struct attach_target t = {0};
	struct attach_options c = {0};
	int status = begin(self, argc, argv, &c, &t), ret;

	if (status < 0) {
		ret = attach_target(&t, self->name);
		status = ret < 0 ? STATUS_FAILED : STATUS_OK;
		if (ret == 1 && !c.quiet)
			printf("'%s' (pid %d) has the probe already\n", t.name, (int)t.pid);
		else if (!ret && !c.quiet)
			printf("The probe is in '%s' (pid %d), after %.0f ms%s\n", t.name,
				(int)t.pid, (double)(now_ns(CLOCK_MONOTONIC) - begin_ns) / 1e6,
				t.dir ? "" : "; its runtime folder is not visible here");
	}
	attach_target_free(&t);
	return output_end(self->name, 0) ? STATUS_FAILED : status;
}

static int detach(const struct attach_target *t, const char *command)
{
	struct ringtap_conn *conn;
	char err[512] = "";
	int ret;

	if (!t->dir) {
		message_print("%s: '%s': its runtime folder is not visible here; run ringtap where "
			      "it is",
			command, t->name);
		return -ENOENT;
	}
	ret = ringtap_conn_open(&conn, t->dir, NULL, err, sizeof(err));
	if (ret == -EUNATCH || ret == -EPROTONOSUPPORT)
		return 1;
	if (!ret) {
		ret = ringtap_conn_detach(conn, err, sizeof(err));
		ringtap_conn_close(conn);
	}
	if (ret)
		message_print("%s: cannot detach from '%s' (pid %d): %s", command, t->name,
			(int)t->pid, err[0] ? err : strerror(-ret));
	return ret;
}

static int run_detach(const struct command *self, int argc, char **argv)
{
	struct attach_target t = {0};
	struct attach_options c = {0};
	int status = begin(self, argc, argv, &c, &t), ret;

	if (status < 0) {
		ret = detach(&t, self->name);
		status = ret < 0 ? STATUS_FAILED : STATUS_OK;
		if (ret >= 0 && !c.quiet)
			printf(ret ? "'%s' (pid %d) has no probe that is awake\n"
				   : "The probe in '%s' (pid %d) sleeps\n",
				t.name, (int)t.pid);
	}
	attach_target_free(&t);
	return output_end(self->name, 0) ? STATUS_FAILED : status;
}

#define OPERAND "PID|APP"

const struct command cmd_attach = {
	.name = "attach",
	.summary = "load the probe into a running DPDK application",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.operands = OPERAND,
	.listed = LIST_ALL_APPS,
	.operand = operand,
	.run = run_attach,
};

const struct command cmd_detach = {
	.name = "detach",
	.summary = "end all captures of an application and put its probe to sleep",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.operands = OPERAND,
	.listed = LIST_APPS,
	.operand = operand,
	.run = run_detach,
};
