/* SPDX-License-Identifier: BSD-3-Clause */
/* The tracers. All return enum status. */
#ifndef RINGTAP_CLI_TRACE_TRACERS_H
#define RINGTAP_CLI_TRACE_TRACERS_H

#include "trace.h"

int trace_list(struct trace *t);
int trace_timeline(struct trace *t);
int trace_lttng(struct trace *t, unsigned collectors);
int trace_dpdk(struct trace *t, unsigned collectors);

/* Runs the program of -e, or a canned one, to the end; *maps becomes the canned one's maps, by
 * name. For canned ones the hooks are installed only while all probes are attached: all kinds of
 * events begin and end at the same time. */
int trace_bpf(struct trace *t, unsigned collectors, json_t **maps);
/* Puts usdt:*: before ringtap: where a program names probes. The caller frees. */
char *trace_probe_names(const char *program);

/* Makes the folder for a trace, or uses an empty one; path becomes its absolute name. Prints what
 * is wrong. */
int trace_folder(const char *name, char path[4096]);

#endif
