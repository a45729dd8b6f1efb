/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/signals.h"
#include "telemetry.h"
#include "trace.h"

#define COMMAND     "/ringtap/trace"
#define PATIENCE_MS 20000 /* loading LTTng takes seconds */
/* An application that has lost a daemon waits for five seconds before it asks the next one, and
 * again where that had only begun. */
#define SETTLE_NS (12 * NS_PER_S)

/* A path longer than a string of DPDK's telemetry comes as an array of pieces. */
static void join_directory(json_t *answer)
{
	const json_t *pieces = json_object_get(answer, "directory"), *piece;
	char path[PATH_MAX] = "";
	size_t i, len = 0;

	if (!json_is_array(pieces))
		return;
	json_array_foreach((json_t *)pieces, i, piece)
	{
		const char *text = json_string_value(piece);
		int n = snprintf(path + len, sizeof(path) - len, "%s", text ? text : "");

		if (!text || n < 0 || (size_t)n >= sizeof(path) - len) {
			json_object_del(answer, "directory");
			return;
		}
		len += (size_t)n;
	}
	json_object_set_new(answer, "directory", json_string(path));
}

int trace_query_within(const char *dir, const char *parameter, int ms, json_t **answer)
{
	char command[128], *text;
	json_t *all, *own;
	int ret;

	*answer = NULL;
	snprintf(command, sizeof(command), COMMAND "%s%s", *parameter ? "," : "", parameter);
	ret = ringtap_telemetry(dir, command, ms, &text, NULL);
	if (ret)
		return ret;
	all = json_loads(text, 0, NULL);
	free(text);
	own = json_object_get(all, COMMAND);
	*answer = json_is_object(own) ? json_incref(own) : NULL;
	json_decref(all);
	if (*answer)
		join_directory(*answer);
	return *answer ? 0 : -EPROTONOSUPPORT;
}

json_t *trace_query(const char *dir, const char *parameter)
{
	json_t *answer;

	(void)trace_query_within(dir, parameter, PATIENCE_MS, &answer);
	return answer;
}

const char *trace_why_silent(const struct trace *t, char why[TRACE_WHY_LEN])
{
	return ringtap_process_halted((uint32_t)t->pid, why, TRACE_WHY_LEN) ? why
									    : "it does not answer";
}

json_t *trace_command(const struct trace *t, const char *parameter)
{
	json_t *answer;
	int ret = trace_query_within(t->app.dir, parameter, PATIENCE_MS, &answer);
	const char *error = json_string_value(json_object_get(answer, "error"));
	char why[TRACE_WHY_LEN];

	if (ret == -EBUSY)
		message_print(
			"trace: %s: its telemetry serves ten clients already; end one of them",
			t->app.name);
	else if (ret == -ETIMEDOUT || ret == -ECONNRESET || ret == -EAGAIN || ret == -EHOSTDOWN)
		message_print("trace: %s: %s", t->app.name, trace_why_silent(t, why));
	else if (!answer)
		message_print("trace: %s: its telemetry has no " COMMAND
			      "; the probe is too old, or the application runs without telemetry",
			t->app.name);
	else if (!json_integer_value(json_object_get(answer, "status")))
		return answer;
	else
		message_print("trace: %s: its telemetry refuses '%s': %s", t->app.name, parameter,
			error ? error : "refused");
	json_decref(answer);
	return NULL;
}

bool trace_bursts_are(const struct trace *t, bool traced)
{
	uint64_t until = now_ns(CLOCK_MONOTONIC) + SETTLE_NS;

	do {
		json_t *answer = trace_query(t->app.dir, "");
		json_int_t now = json_integer_value(json_object_get(answer, "bursts_traced"));
		bool there = answer;

		json_decref(answer);
		if (!there)
			return false;
		if (!now == !traced)
			return true;
	} while (now_ns(CLOCK_MONOTONIC) < until && !stop_wait(NS_PER_S / 100));
	return false;
}
