/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/signals.h"
#include "base/util.h"
#include "target/app_wait.h"
#include "target/attach_app.h"
#include "target/hidden_vhost.h"
#include "target/which_app.h"
#include "cli/commands.h"
#include "pauses.h"

struct attach_options {
	const char *command, *app;
	bool quiet, json, wait;
};

static const struct option_def options[] = {
	{OPTION_TO(struct attach_options, json), OPTION_FLAG, 0, "json", NULL, NULL, 0, 0,
		"Print JSON: also how long each polling thread was off its CPU"},
	{OPTION_TO(struct attach_options, quiet), OPTION_FLAG, 'q', "quiet", NULL, NULL, 0, 0,
		"Print nothing but errors"},
	{OPTION_TO(struct attach_options, wait), OPTION_FLAG, 0, "wait", NULL, NULL, 0, 0,
		"Wait for the application, attach again after each restart, until Ctrl-C"},
};

static const struct option_def detach_options[] = {
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

/* Returns enum status, -1: go on. */
static int begin(const struct command *self, int argc, char **argv, struct attach_options *c)
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
	return -1;
}

/* "" if the application does not answer. */
static struct ringtap_app_info info_of(const char *dir)
{
	struct ringtap_app_info info = {0};
	struct ringtap_conn *conn;

	if (!dir || ringtap_conn_open(&conn, dir, NULL, NULL, 0))
		return info;
	ringtap_conn_app(conn, &info);
	ringtap_conn_close(conn);
	return info;
}

static int report_json(const struct attach_options *c, const struct attach_target *t, uint64_t ns,
	const struct pauses *p)
{
	struct ringtap_app_info info = info_of(t->dir);
	json_t *app =
		json_application(t->name, (uint32_t)t->pid, *info.program ? info.program : NULL);
	json_t *document;

	json_put(app, "was_there", json_boolean(!ns));
	json_put(app, "attach_ns", ns ? json_count(ns) : json_null());
	json_put(app, "polling_threads", ns ? pauses_json(p) : json_null());
	document = json_document("attach", app);
	return c->wait ? json_print_line(document, stdout) : json_print(document, stdout);
}

static void print_hidden(const struct attach_target *t)
{
	const char *why = hidden_vhost((uint32_t)t->pid, NULL);
	struct ringtap_list *list = why && t->dir ? target_ports(t->dir) : NULL;

	if (why && hidden_vhost((uint32_t)t->pid, list))
		text_wrapf(stdout, 2, "Note: %s", why);
	ringtap_list_free(list);
}

/* Prints the result of an attach. ns: its time; 0: the probe was there. 0 or -errno. */
static int report(const struct attach_options *c, const struct attach_target *t, uint64_t ns,
	const struct pauses *p)
{
	char time[FORMAT_LEN];

	if (c->json)
		return report_json(c, t, ns, p);
	if (!ns) {
		printf("'%s' (pid %d) has the probe already\n", t->name, (int)t->pid);
		return 0;
	}
	printf("The probe is in '%s' (pid %d), after %s%s\n", t->name, (int)t->pid,
		format_ns(time, (double)ns),
		t->dir ? "" : "; its runtime folder is not visible here");
	pauses_print(p, stdout);
	print_hidden(t);
	return 0;
}

/* 0; 1: the probe cannot be loaded; -EIO: the output cannot be written. After printing why. */
static int attach(const struct command *self, const struct attach_options *c,
	struct attach_target *t, uint64_t begin_ns)
{
	struct pauses p;
	char tasks[32];
	int ret, error = 0;

	snprintf(tasks, sizeof(tasks), "/proc/%d/task", (int)t->pid);
	pauses_begin(&p, tasks);
	ret = attach_target(t, self->name);
	if (ret >= 0 && (!c->quiet || c->json)) {
		uint64_t ns = now_ns(CLOCK_MONOTONIC) - begin_ns;

		if (!ret)
			pauses_end(&p, tasks);
		error = report(c, t, ret ? 0 : ns ? ns : 1, &p);
		error = output_end(self->name, error) == STATUS_OK ? 0 : -EIO;
	}
	pauses_free(&p);
	return error ? error : ret < 0;
}

static bool wait_end(struct app_wait *w, const struct attach_target *t)
{
	if (!app_wait_end(w, (uint32_t)t->pid))
		return false;
	if (!w->quiet)
		fprintf(stderr, "'%s' (pid %d) has ended\n", t->name, (int)t->pid);
	return app_wait(w);
}

/* 1: it runs again; 0: a signal came; -EIO. */
static int attach_next(
	const struct command *self, const struct attach_options *c, struct app_wait *w)
{
	uint64_t begin_ns = now_ns(CLOCK_MONOTONIC);
	struct attach_target t;
	int ret = 1;

	if (!attach_target_find(&t, self->name, c->app))
		ret = attach(self, c, &t, begin_ns);
	if (ret >= 0)
		ret = ret ? app_wait_retry(w) : wait_end(w, &t);
	attach_target_free(&t);
	return ret;
}

static int attach_each(const struct command *self, const struct attach_options *c)
{
	struct app_wait w = {.word = c->app, .unlisted = true, .quiet = c->quiet};
	int ret = stop_catch();

	if (ret) {
		message_print("%s: cannot wait for signals: %s", self->name, strerror(-ret));
		return STATUS_FAILED;
	}
	ringtap_break_fd(stop_fd());
	ret = app_wait(&w);
	while (ret > 0)
		ret = attach_next(self, c, &w);
	ringtap_break_fd(-1);
	app_wait_close(&w);
	return ret ? STATUS_FAILED : STATUS_OK;
}

static int run_attach(const struct command *self, int argc, char **argv)
{
	uint64_t begin_ns = now_ns(CLOCK_MONOTONIC);
	struct attach_options c = {0};
	struct attach_target t = {0};
	int status = begin(self, argc, argv, &c);

	if (status < 0 && c.wait)
		return attach_each(self, &c);
	if (status < 0)
		status = attach_target_find(&t, self->name, c.app) || attach(self, &c, &t, begin_ns)
				 ? STATUS_FAILED
				 : STATUS_OK;
	attach_target_free(&t);
	return status;
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
	int status = begin(self, argc, argv, &c), ret;

	if (status < 0 && attach_target_find(&t, self->name, c.app))
		status = STATUS_FAILED;
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
	.options = detach_options,
	.option_count = sizeof(detach_options) / sizeof(detach_options[0]),
	.operands = OPERAND,
	.listed = LIST_APPS,
	.operand = operand,
	.run = run_detach,
};
