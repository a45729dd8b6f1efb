/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ringtap trace: bpftrace, LTTng and DPDK's tracing on the probe's events.
 *
 *   app.c (a monitor keeps the hooks in) -+- bpf.c: bpftrace -> maps.c
 *                                         |      -> burst.c, latency.c, drops.c, gaps.c
 *                                         +- timeline.c, lttng.c, dpdk.c
 *   usdt/ -> list.c, bpf.c
 */
#ifndef RINGTAP_CLI_TRACE_TRACE_H
#define RINGTAP_CLI_TRACE_TRACE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/child.h"
#include "measure/one_app.h"
#include "measure/rates.h"
#include "base/util.h"

enum trace_what {
	TRACE_LIST,
	TRACE_BURST,
	TRACE_LATENCY,
	TRACE_DROPS,
	TRACE_GAPS,
	TRACE_TIMELINE,
	TRACE_LTTNG,
	TRACE_DPDK,
	TRACE_PROGRAM, /* -e */
};
#define TRACE_NAMES "list|burst|latency|drops|gaps|timeline|lttng|dpdk"

struct trace_config {
	enum trace_what what;
	const char *word;    /* what, as the command line has it */
	const char *program; /* argument of -e */
	const char *name;    /* operand */
	bool attach;         /* load the probe where it is missing */
	const char *output, *html;
	uint64_t duration_ns;  /* 0: no limit */
	uint64_t buffer_bytes; /* LTTng, per CPU; timeline: for packets; 0: the default */
	uint64_t max_bytes;    /* timeline's file */
	uint64_t long_ns;
	bool json, quiet, empty, off_cpu, latency, fates;
};

enum trace_end {
	TRACE_BY_LIMIT,
	TRACE_BY_SIGNAL,
	TRACE_BY_APPLICATION,
	TRACE_BY_ITSELF,
	TRACE_BY_SIZE
};

struct trace {
	const struct trace_config *cfg;
	struct one_app app;
	struct ringtap_app_info info;
	pid_t pid; /* in our PID namespace */
	struct ringtap_monitor *mon;
	struct ringtap_snapshot *stats; /* the last: names of ports, clock, threads */
	uint64_t start_ns, end_ns;      /* CLOCK_MONOTONIC, of the trace */
	enum trace_end end;
};

/* ---- app.c: all return enum status and print what is wrong */

/* Finds the application and its process. From here on signals only end the waiting. */
int trace_meet(struct trace *t);
/* Installs the hooks for as long as t->mon is open: they go with this process. */
int trace_attach(struct trace *t, unsigned collectors);
/* Prints that the trace begins; scripts wait for this line. */
void trace_started(struct trace *t);
/* True if process numbers here are those of the kernel's tracepoints: not in most containers. */
bool trace_in_first_pid_namespace(void);
/* Takes the last snapshot and removes the hooks. */
int trace_detach(struct trace *t);
void trace_free(struct trace *t);
/* Whether a port is meant, by its number, and a thread, which polls one that is, by its id as the
 * tracer sees it. */
bool trace_wants_port(const struct trace *t, uint64_t port);
bool trace_wants_thread(const struct trace *t, uint64_t tid);
/* A port as {index, name}. */
json_t *trace_port_json(const struct trace *t, uint64_t port);
/* The number in our PID namespace of the application's thread tid; 0: it is gone. */
uint64_t trace_our_tid(const struct trace *t, uint64_t tid);
/* A thread, by its number in our PID namespace. */
json_t *trace_thread_json(const struct trace *t, uint64_t tid, const char *name);
char *trace_thread_text(char buf[THREAD_NAME_LEN], const json_t *thread);
/* Begins the application's object of each document; the caller decrefs. */
json_t *trace_document(const struct trace *t);
double trace_seconds(const json_t *doc);

/* Prints the application's object as a JSON document, or by print(), and frees it. Returns enum
 * status. */
int trace_report(const struct trace *t, json_t *doc, void (*print)(const json_t *doc));

/* Waits for a limit, a signal, the application's or the child's (NULL: none) end. */
enum trace_end trace_wait(struct trace *t, struct child *c, uint64_t until_ns);

#endif
