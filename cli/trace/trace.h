/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ringtap trace: bpftrace, LTTng and DPDK's tracing on the probe's events.
 *
 *   app.c (a monitor keeps the hooks in) -+- bpf.c: bpftrace -> maps.c
 *                                         |      -> burst.c, latency.c, drops.c, gaps.c
 *                                         +- lttng.c, dpdk.c
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
#include "base/util.h"

enum trace_what {
	TRACE_LIST,
	TRACE_BURST,
	TRACE_LATENCY,
	TRACE_DROPS,
	TRACE_GAPS,
	TRACE_LTTNG,
	TRACE_DPDK,
	TRACE_PROGRAM, /* -e */
};
#define TRACE_NAMES "list|burst|latency|drops|gaps|lttng|dpdk"

struct trace_config {
	enum trace_what what;
	const char *word;    /* what, as the command line has it */
	const char *program; /* of -e */
	const char *name;    /* operand */
	bool attach;         /* load the probe where it is missing */
	const char *output;
	uint64_t duration_ns;  /* 0: no limit */
	uint64_t buffer_bytes; /* LTTng, per CPU */
	uint32_t long_us;
	bool json, quiet, empty, off_cpu;
};

enum trace_end { TRACE_BY_LIMIT, TRACE_BY_SIGNAL, TRACE_BY_APPLICATION, TRACE_BY_ITSELF };

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
/* The name of a port; NULL: unknown. Lives as long as the stats. */
const char *trace_port(const struct trace *t, uint64_t port);
/* The common beginning of each document; the caller decrefs. */
json_t *trace_document(const struct trace *t, const char *what);

/* Prints the document as JSON, or by print(), and frees it. Returns enum status. */
int trace_report(const struct trace *t, json_t *doc, void (*print)(const json_t *doc));

/* Waits for a limit, a signal, the application's or the child's (NULL: none) end. */
enum trace_end trace_wait(struct trace *t, struct child *c, uint64_t until_ns);

/* ---- undo.c: undoes what was switched on in other processes, even if this one is killed */

struct trace_undo {
	pid_t pid;
	int fd;
};

/* Starts a process that calls undo(ctx) on trace_undo_now() or when this process ends. It has no
 * output. 0 or -errno, printed. */
int trace_undo_start(struct trace_undo *u, int (*undo)(void *ctx), void *ctx);
/* Starts undo() and waits for it. 0: it returned 0, or nothing was started; -EIO: it did not;
 * -ETIMEDOUT: it goes on in the background. */
int trace_undo_now(struct trace_undo *u, uint64_t patience_ns);
/* Makes the folder for a trace, or uses an empty one; path becomes its absolute name. Prints what
 * is wrong. */
int trace_folder(const char *name, char path[4096]);

/* ---- bpf.c */

/* Runs the program of -e, or a canned one, to the end; *maps becomes the canned one's maps, by
 * name. For canned ones the hooks are installed only while all probes are attached: all kinds of
 * events begin and end at the same time. enum status. */
int trace_bpf(struct trace *t, unsigned collectors, json_t **maps);
/* Puts usdt:*: before ringtap: where a program names probes. The caller frees. */
char *trace_probe_names(const char *program);

/* ---- maps.c: bpftrace's maps */

/* All maps of its output in JSON lines: {"@name": {"key,key": …}}. NULL: invalid. */
json_t *maps_read(const char *lines);
/* Entries of the map in bpftrace's count: a histogram has one for each bucket. */
size_t maps_size(const json_t *map);
/* Parses count whole numbers at the beginning of a key. Returns the rest, or NULL if there are
 * fewer. */
const char *maps_key(const char *key, uint64_t *n, unsigned count);
/* The value of a key in a map; NULL: none. */
json_t *maps_get(json_t *maps, const char *map, const char *key);
/* A histogram as [[low, end, count], …], bounds multiplied by scale; end is exclusive. */
json_t *maps_histogram(const json_t *buckets, double scale);
/* Prints bars; ns: bounds are times, else whole numbers. */
void maps_print_histogram(const json_t *histogram, bool ns);
/* 12.3 us */
char *maps_ns(char buf[FORMAT_LEN], double ns);
/* The text under a key without control characters: names come from other processes. otherwise: if
 * there is none. */
#define MAPS_TEXT_LEN 64
const char *maps_text(
	char buf[MAPS_TEXT_LEN], const json_t *row, const char *key, const char *otherwise);
/* Sorts an array of objects by number key, largest first. */
void maps_sort(json_t *array, const char *key);

/* ---- reports of the canned programs: a JSON document, and its print as text */

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

/* ---- telemetry.c: the probe's command /ringtap/trace */

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

/* ---- each returns enum status */

int trace_list(struct trace *t);
int trace_lttng(struct trace *t, unsigned collectors);
int trace_dpdk(struct trace *t, unsigned collectors);

#endif
