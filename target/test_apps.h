/* SPDX-License-Identifier: BSD-3-Clause */
/* Applications that a unit test makes, instead of those that libringtap finds: these functions
 * replace the library's. Static: for one file of tests. */
#ifndef RINGTAP_TARGET_TEST_APPS_H
#define RINGTAP_TARGET_TEST_APPS_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/test_util.h"
#include "common/test_now.h"
#include "inject/inject.h"
#include "inject/processes.h"
#include "ringtap/reader.h"

#define TEST_APPS_MAX 4

struct test_app {
	const char *name, *dir;
	uint32_t pid;
	bool secondary, foreign;
	size_t primary;     /* index, of secondary processes */
	int error;          /* -errno of connections to its probe; 0: they work */
	const char *why;    /* the sentence of the error */
	uint64_t answer_ns; /* passes until it answers */
	int detach_error;
	struct ringtap_app_info info;
	const struct ringtap_port_info *ports;
	size_t port_count;
	const struct ringtap_session_info *sessions;
	size_t session_count;
};

/* State that the tests set, and calls of the commands. */
static struct {
	struct test_app app[TEST_APPS_MAX];
	size_t count, notes;
	int find_error, inject_error;
	const char *telemetry;     /* answer; NULL: none */
	unsigned opened, detached; /* calls */
	char asked[64];            /* the last telemetry command */
	pid_t injected;            /* 0: no process */
	char dpdk[32];             /* the version that rt_inject() was told; "-": none */
	struct test_app appears;   /* with the injection, if it has a name */
	struct {
		uint32_t pid;
		const char *program;
	} process[TEST_APPS_MAX]; /* that run a DPDK */
	unsigned process_count;
} test_apps;

static void test_apps_answer(void)
{
	for (size_t i = 0; i < test_apps.count; i++)
		test_apps.app[i].error = 0;
	if (test_apps.appears.name)
		test_apps.app[test_apps.count++] = test_apps.appears;
}

int ringtap_apps_find(struct ringtap_apps **out)
{
	*out = test_apps.find_error ? NULL : malloc(1);
	return test_apps.find_error;
}

void ringtap_apps_free(struct ringtap_apps *apps)
{
	free(apps);
}

size_t ringtap_apps_count(const struct ringtap_apps *apps)
{
	return test_apps.count;
}

const char *ringtap_apps_name(const struct ringtap_apps *apps, size_t i)
{
	return test_apps.app[i].name;
}

const char *ringtap_apps_dir(const struct ringtap_apps *apps, size_t i)
{
	return test_apps.app[i].dir;
}

uint32_t ringtap_apps_pid(const struct ringtap_apps *apps, size_t i)
{
	return test_apps.app[i].pid;
}

bool ringtap_apps_foreign(const struct ringtap_apps *apps, size_t i)
{
	return test_apps.app[i].foreign;
}

bool ringtap_apps_secondary(const struct ringtap_apps *apps, size_t i)
{
	return test_apps.app[i].secondary;
}

size_t ringtap_apps_primary(const struct ringtap_apps *apps, size_t i)
{
	return test_apps.app[i].secondary ? test_apps.app[i].primary : i;
}

size_t ringtap_apps_notes(const struct ringtap_apps *apps)
{
	return test_apps.notes;
}

const char *ringtap_apps_note(const struct ringtap_apps *apps, size_t i)
{
	static const char *const notes[] = {
		"/run/dpdk/x belongs to user 7, not to user 0", "/tmp/y"};

	return notes[i];
}

/* A connection is the application. */
int ringtap_conn_open(struct ringtap_conn **out, const char *dir,
	const struct ringtap_conn_options *opts, char *err, size_t errlen)
{
	struct test_app *app = NULL;

	for (size_t i = 0; i < test_apps.count; i++)
		if (test_apps.app[i].dir && !strcmp(test_apps.app[i].dir, dir))
			app = &test_apps.app[i];
	test_apps.opened++;
	assert_non_null(app);
	test_now_pass(app->answer_ns);
	*out = app->error ? NULL : (void *)app;
	snprintf(err, errlen, "%s", app->why ? app->why : "");
	return app->error;
}

void ringtap_conn_close(struct ringtap_conn *conn)
{
}

int ringtap_conn_app(const struct ringtap_conn *conn, struct ringtap_app_info *out)
{
	*out = ((const struct test_app *)(const void *)conn)->info;
	return 0;
}

int ringtap_conn_list(struct ringtap_conn *conn, struct ringtap_list **out)
{
	const struct test_app *app = (const void *)conn;

	*out = calloc(1, sizeof(**out));
	**out = (struct ringtap_list){.port_count = app->port_count,
		.session_count = app->session_count,
		.ports = {(void *)(uintptr_t)app->ports, sizeof(*app->ports)},
		.sessions = {(void *)(uintptr_t)app->sessions, sizeof(*app->sessions)}};
	return 0;
}

void ringtap_list_free(struct ringtap_list *list)
{
	free(list);
}

int ringtap_conn_detach(struct ringtap_conn *conn, char *err, size_t errlen)
{
	const struct test_app *app = (const void *)conn;

	test_apps.detached++;
	snprintf(err, errlen, "%s", app->why ? app->why : "");
	return app->detach_error;
}

int ringtap_telemetry(
	const char *dir, const char *command, int timeout_ms, char **answer, uint32_t *pid)
{
	snprintf(test_apps.asked, sizeof(test_apps.asked), "%s", command);
	*answer = NULL;
	if (!test_apps.telemetry)
		return -ECONNREFUSED;
	*answer = strdup(test_apps.telemetry);
	if (strstr(command, "wake"))
		test_apps_answer();
	return 0;
}

void rt_processes_each(bool (*f)(uint32_t pid, const char *program, void *arg), void *arg)
{
	for (unsigned i = 0; i < test_apps.process_count; i++)
		f(test_apps.process[i].pid, test_apps.process[i].program, arg);
}

bool rt_process_runs(uint32_t pid, const char *program)
{
	for (unsigned i = 0; i < test_apps.process_count; i++)
		if (test_apps.process[i].pid == pid &&
			!strcmp(test_apps.process[i].program, program))
			return true;
	return false;
}

int rt_inject(pid_t pid, const struct rt_inject_options *opts, char *err, size_t errlen)
{
	test_apps.injected = pid;
	snprintf(test_apps.dpdk, sizeof(test_apps.dpdk), "%s", opts->dpdk ? opts->dpdk : "-");
	assert_non_null(strstr(opts->probe, "libringtap-probe.so"));
	if (!test_apps.inject_error)
		test_apps_answer();
	else
		snprintf(err, errlen, "the kernel says no");
	return test_apps.inject_error;
}

#endif
