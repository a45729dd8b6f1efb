/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>

#include "reader/telemetry.h"
#include "stop.h"
#include "trace.h"

#define COMMAND     "/ringtap/trace"
#define PATIENCE_MS 20000 /* loading LTTng may take its time */
#define SETTLE_NS   (5 * NS_PER_S)

json_t *trace_ask(const char *dir, const char *parameter)
{
	char command[128], answer[RT_TELEMETRY_MAX];
	json_t *all, *own;

	snprintf(command, sizeof(command), COMMAND "%s%s", *parameter ? "," : "", parameter);
	rt_telemetry_ms = PATIENCE_MS;
	if (rt_telemetry_ask(dir, command, answer))
		return NULL;
	all = json_loads(answer, 0, NULL);
	own = json_object_get(all, COMMAND);
	own = json_is_object(own) ? json_incref(own) : NULL;
	json_decref(all);
	return own;
}

json_t *trace_tell(const struct trace *t, const char *parameter)
{
	json_t *answer = trace_ask(t->app.dir, parameter);
	const char *error = json_string_value(json_object_get(answer, "error"));

	if (!answer)
		say("trace: %s: its telemetry does not know " COMMAND
		    "; the probe is too old, or the application runs without telemetry",
			t->app.name);
	else if (!json_integer_value(json_object_get(answer, "status")))
		return answer;
	else
		say("trace: %s: %s: %s", t->app.name, parameter, error ? error : "refused");
	json_decref(answer);
	return NULL;
}

bool trace_bursts_are(const struct trace *t, bool traced)
{
	uint64_t until = now_ns(CLOCK_MONOTONIC) + SETTLE_NS;

	do {
		json_t *answer = trace_ask(t->app.dir, "");
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
