/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/fail.h"
#include "common/status.h"
#include "attach_app.h"
#include "base/json.h"
#include "base/util.h"
#include "inject/inject.h"
#include "inject/process.h"
#include "inject/processes.h"
#include "probe_path.h"
#include "which_app.h"

#define WAKE "/ringtap/attach,wake"

static void choose(struct attach_target *t, size_t i)
{
	t->name = ringtap_apps_name(t->apps, i);
	t->dir = ringtap_apps_dir(t->apps, i);
	t->pid = (pid_t)ringtap_apps_pid(t->apps, i);
}

struct unlisted {
	const struct ringtap_apps *apps;
	void (*f)(uint32_t pid, const char *program, void *arg);
	void *arg;
};

static bool is_unlisted(uint32_t pid, const char *program, void *arg)
{
	const struct unlisted *u = arg;

	for (size_t i = 0; i < ringtap_apps_count(u->apps); i++)
		if (ringtap_apps_pid(u->apps, i) == pid)
			return true;
	u->f(pid, program, u->arg);
	return true;
}

void attach_each_unlisted(const struct ringtap_apps *apps,
	void (*f)(uint32_t pid, const char *program, void *arg), void *arg)
{
	struct unlisted u = {apps, f, arg};

	rt_processes_each(is_unlisted, &u);
}

struct named {
	const char *program;
	struct target_candidates c; /* listed ones, and then others, too */
	uint64_t pid;               /* the last one's that is not listed; 0: none */
};

static void take_named(uint32_t pid, const char *program, void *arg)
{
	struct named *n = arg;
	char text[32];

	if (!rt_process_runs(pid, n->program))
		return;
	snprintf(text, sizeof(text), "pid %u", pid);
	text_list_add(n->c.names, sizeof(n->c.names), text);
	n->pid = pid;
	n->c.count++;
}

/* Processes without telemetry and probe are found by their number or program. */
static int find_unlisted(struct attach_target *t, struct named *n, const char *word, int found)
{
	if (parse_number(word, INT32_MAX, &n->pid) || !n->pid) {
		n->pid = 0;
		attach_each_unlisted(t->apps, take_named, n);
	}
	if (n->c.count > 1)
		return -ENOTUNIQ;
	if (found >= 0 || !n->pid)
		return found;
	snprintf(t->number, sizeof(t->number), "%u", (unsigned)n->pid);
	t->pid = (pid_t)n->pid;
	t->name = t->number;
	return 0;
}

/* 0, -ENOENT, -ENOTUNIQ; *error: the search itself failed. */
static int look(struct attach_target *t, const char *word, struct named *n, int *error)
{
	int ret, found;

	*t = (struct attach_target){0};
	*error = ringtap_apps_find(&t->apps);
	if (*error)
		return -ENOENT;
	found = target_app(t->apps, word, strlen(word), &n->c);
	ret = found < 0 || n->c.count ? find_unlisted(t, n, word, found) : 0;
	if (ret >= 0 && found >= 0)
		choose(t, (size_t)found);
	return ret < 0 ? ret : 0;
}

int attach_target_look(struct attach_target *t, const char *word)
{
	struct named named = {.program = word};
	int error;

	return look(t, word, &named, &error);
}

int attach_target_find(struct attach_target *t, const char *command, const char *word)
{
	struct named named = {.program = word};
	int error, ret = look(t, word, &named, &error);

	if (error)
		return message_fail(
			error, "%s: looking for applications: %s", command, strerror(-error));
	if (ret)
		print_no_app(command, t->apps, word, ret, &named.c);
	return ret ? -ENOENT : 0;
}

void attach_target_free(struct attach_target *t)
{
	ringtap_apps_free(t->apps);
}

/* DPDK's version, by telemetry. False: unknown. */
static bool find_version(const char *dir, char *version, size_t size)
{
	char *answer;
	json_t *j;
	const char *text;

	version[0] = 0;
	if (!dir || ringtap_telemetry(dir, "/info", 0, &answer, NULL))
		return false;
	j = json_loads(answer, 0, NULL);
	text = json_string_value(json_object_get(json_object_get(j, "/info"), "version"));
	snprintf(version, size, "%s", text ? text : "");
	json_decref(j);
	free(answer);
	return version[0];
}

static int answers(const char *dir, char *err, size_t errlen)
{
	struct ringtap_conn *conn;
	int ret = ringtap_conn_open(&conn, dir, NULL, err, errlen);

	if (!ret)
		ringtap_conn_close(conn);
	return ret;
}

static int wake(const char *dir, char *err, size_t errlen)
{
	char *answer;
	int ret = ringtap_telemetry(dir, WAKE, 0, &answer, NULL);

	free(answer);
	return ret ? rt_fail(ret, err, errlen,
			     "its probe is detached, and its telemetry socket does not answer: %s",
			     ret == -EBUSY ? "it serves ten clients already; end one of them"
			     : ret == -ETIMEDOUT || ret == -EAGAIN
				     ? "its telemetry thread gets no CPU; give control threads one"
				     : strerror(-ret))
		   : 0;
}

/* Any user may make a folder that names the process of another one; root's are trusted, as a
 * process may have given up its rights since. */
static bool is_its_folder(const struct attach_target *t)
{
	char value[64], *next = value;
	struct stat st;

	if (address_stat(t->dir, &st) || !st.st_uid)
		return true;
	rt_process_status(t->pid, "Uid", value, sizeof(value));
	/* Real, effective, saved, of files */
	while (*next) {
		if (strtoul(next, &next, 10) == st.st_uid)
			return true;
		next += strspn(next, " \t");
	}
	return !value[0];
}

static int inject(const struct attach_target *t, char *err, size_t errlen)
{
	char version[64];
	const struct rt_inject_options opts = {.probe = probe_path(),
		.dpdk = find_version(t->dir, version, sizeof(version)) ? version : NULL};

	if (t->pid <= 0)
		return rt_fail(-ESRCH, err, errlen,
			"its process is not visible here, in this PID namespace; run ringtap on the "
			"host, or share the PID namespace");
	if (t->dir && !is_its_folder(t))
		return rt_fail(-EACCES, err, errlen,
			"its runtime folder %s belongs to another user than the process; remove "
			"the folder",
			t->dir);
	return rt_inject(t->pid, &opts, err, errlen);
}

/* Without telemetry and in a container, nothing but the probe shows that it is there. */
static void find_again(struct attach_target *t)
{
	struct ringtap_apps *apps;

	if (ringtap_apps_find(&apps))
		return;
	ringtap_apps_free(t->apps);
	t->apps = apps;
	t->name = t->number;
	for (size_t i = 0; i < ringtap_apps_count(apps) && !t->dir; i++)
		if (ringtap_apps_pid(apps, i) == (uint32_t)t->pid)
			choose(t, i);
}

static int attach(struct attach_target *t, char *err, size_t errlen)
{
	int ret = t->dir ? answers(t->dir, err, errlen) : -ENOENT;

	if (!ret)
		return 1;
	if (ret == -EHOSTDOWN || ret == -EPROTOTYPE || ret == -EACCES)
		return ret;
	if (ret == -EUNATCH)
		ret = wake(t->dir, err, errlen);
	else
		ret = inject(t, err, errlen);
	if (!ret && !t->dir)
		find_again(t);
	return ret || !t->dir ? ret : answers(t->dir, err, errlen);
}

int attach_target(struct attach_target *t, const char *command)
{
	char err[512] = "", pid[32] = "";
	int ret = attach(t, err, sizeof(err));

	if (t->pid > 0)
		snprintf(pid, sizeof(pid), " (pid %d)", (int)t->pid);
	if (ret < 0)
		message_print("%s: cannot load the probe into '%s'%s: %s", command, t->name, pid,
			err[0] ? err : strerror(-ret));
	return ret;
}

/* At a terminal. */
static bool agrees(const struct attach_target *t)
{
	char line[16] = "";

	if (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO))
		return false;
	fprintf(stderr, "'%s' (pid %d) runs without the probe. Load it now? [y/N] ", t->name,
		(int)t->pid);
	return fgets(line, sizeof(line), stdin) && (line[0] == 'y' || line[0] == 'Y');
}

int attach_missing(const char *command, const struct ringtap_apps *apps, size_t i, bool agreed)
{
	struct attach_target t = {.name = ringtap_apps_name(apps, i),
		.dir = ringtap_apps_dir(apps, i),
		.pid = (pid_t)ringtap_apps_pid(apps, i)};
	char err[512];
	int ret;

	if (!agreed && (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO)))
		return 0;
	ret = answers(t.dir, err, sizeof(err));
	/* -ENOENT: it has neither telemetry nor the probe; -EAGAIN: not yet, which is waited for.
	 */
	if (ret != -EPROTONOSUPPORT && ret != -EUNATCH && ret != -ENOENT && ret != -EAGAIN)
		return 0;
	if (!agreed && !agrees(&t))
		return 0;
	ret = attach_target(&t, command);
	return ret < 0 ? ret : 0;
}
