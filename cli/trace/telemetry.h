/* SPDX-License-Identifier: BSD-3-Clause */
/* The probe's command /ringtap/trace */
#ifndef RINGTAP_CLI_TRACE_TELEMETRY_H
#define RINGTAP_CLI_TRACE_TELEMETRY_H

#include "trace.h"

/* Sends a parameter ("": requests the state). The answer, or NULL: no such command, or no answer.
 * Its "status" is 0 or -errno. The caller decrefs. */
json_t *trace_query(const char *dir, const char *parameter);
/* The same with a limit of about ms. 0; -ENOENT, -ECONNREFUSED: no such application;
 * -EPROTONOSUPPORT: no such command; -ETIMEDOUT; -errno. */
int trace_query_within(const char *dir, const char *parameter, int ms, json_t **answer);
/* The same as trace_query(), and prints what went wrong. */
json_t *trace_command(const struct trace *t, const char *parameter);
/* A sentence on why the application does not answer; in why, or static. */
#define TRACE_WHY_LEN 256
const char *trace_why_silent(const struct trace *t, char why[TRACE_WHY_LEN]);
/* Waits until bursts are traced, or no longer: some 50 ms after the request. False: not within
 * seconds. */
bool trace_bursts_are(const struct trace *t, bool traced);

#endif
