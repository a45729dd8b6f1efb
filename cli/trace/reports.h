/* SPDX-License-Identifier: BSD-3-Clause */
/* Reports of the canned programs: a JSON document, and its print as text */
#ifndef RINGTAP_CLI_TRACE_REPORTS_H
#define RINGTAP_CLI_TRACE_REPORTS_H

#include "trace.h"

void burst_document(const struct trace *t, json_t *maps, json_t *doc);
void burst_print(const json_t *doc);
void latency_document(const struct trace *t, json_t *maps, json_t *doc);
void latency_bursts_print(const json_t *doc);
void drops_document(const struct trace *t, json_t *maps, json_t *doc);
void drops_print(const json_t *doc);
void gaps_document(const struct trace *t, json_t *maps, json_t *doc);
void gaps_print(const json_t *doc);
void off_cpu_document(const struct trace *t, json_t *maps, json_t *doc);
void off_cpu_print(const json_t *doc);

#endif
