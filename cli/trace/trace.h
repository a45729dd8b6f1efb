/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ringtap trace: other people's tracers on the probe's events.
 *
 *   trace_app (a monitor keeps the hooks in) -+- trace_bpf: bpftrace -> trace_maps
 *                                             |      -> trace_burst, _latency, _drops, _gaps
 *                                             +- trace_lttng, trace_dpdk
 *   trace_elf -> trace_list
 */
#ifndef RINGTAP_CLI_TRACE_TRACE_H
#define RINGTAP_CLI_TRACE_TRACE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "cli/monitor/one_app.h"
#include "base/util.h"

enum trace_what {
	TRACE_LIST,
	TRACE_BURST,
	TRACE_LATENCY,
	TRACE_DROPS,
	TRACE_GAPS,
	TRACE_LTTNG,
	TRACE_DPDK,
	TRACE_PROGRAM, /* one's own */
};
#define TRACE_NAMES "list|burst|latency|drops|gaps|lttng|dpdk"

struct trace_config {
	enum trace_what what;
	const char *word;    /* what, as the command line has it */
	const char *program; /* one's own */
	const char *name;    /* operand */
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
	pid_t pid; /* as we see it */
	struct ringtap_monitor *mon;
	struct ringtap_snapshot *stats; /* at the end: names of ports, clock, threads */
	uint64_t start_ns, end_ns;      /* monotonic, between which events were taken */
	enum trace_end end;
};

/* ---- app.c: all return enum status, and say what is wrong */

/* Finds the application that is meant, and who it is. From here on signals only end the waiting. */
int trace_meet(struct trace *t);
/* Puts the hooks in, for as long as t->mon is open: they are out whatever becomes of us. */
int trace_attach(struct trace *t, unsigned collectors);
/* Tells that events are taken from now on; scripts wait for this line. */
void trace_started(struct trace *t);
/* Are our numbers of processes those of the kernel and its tracepoints? Not in most containers. */
bool trace_in_first_pid_namespace(void);
/* The last snapshot, and hooks out. */
int trace_detach(struct trace *t);
void trace_free(struct trace *t);
/* The name of a port; NULL: unknown. Lives as long as the stats. */
const char *trace_port(const struct trace *t, uint64_t port);
/* What every document begins with; the caller decrefs. */
json_t *trace_document(const struct trace *t, const char *what);

/* Was all of it written? enum status. */
int trace_printed(int error);

/* ---- child.c: programs that we start. None outlives us, even if we are killed. */

#define TRACE_TEXT_MAX (64u << 20)
struct trace_text {
	char *data; /* zero-terminated; NULL: nothing yet */
	size_t len, room;
};

struct trace_child {
	const char *name;
	pid_t pid;
	unsigned flags;
	int pid_fd, fd[2];         /* fd: standard output and error; -1: ours */
	struct trace_text text[2]; /* what came from them */
	const char *notice; /* a line of its messages that is for us; NULL: none, or it came */
	bool ended;
	int status; /* of waitpid(), once ended */
};

enum {
	CHILD_READ_OUT = 1,
	CHILD_READ_ERR = 2,
	CHILD_TRACEFS = 4,  /* has tracefs where it looks for it, though the system has not */
	CHILD_PASS_ERR = 8, /* what is read of standard error goes to ours, but for the notice */
};

/* argv[0] is looked for in PATH. signal: what it gets if we die. It reads nothing from the
 * terminal, and may write to it. 0 or -errno. */
int child_start(struct trace_child *c, const char *const argv[], unsigned flags, int signal);
/* Takes in what it said and whether it has ended, waiting for it or for one of the descriptors
 * (-1: none) at most so long. */
void child_look(struct trace_child *c, int fd1, int fd2, uint64_t ns);
/* Sends the signal, again and again: bpftrace misses one that does not find it waiting. Kills it if
 * it does not end within patience; true if that was not needed. */
bool child_end(struct trace_child *c, int signal, uint64_t patience_ns);
void child_free(struct trace_child *c);
/* Waits for a limit, a signal, the application's or the child's (NULL: none) end. */
enum trace_end trace_wait(struct trace *t, struct trace_child *c, uint64_t until_ns);
/* Runs a program to its end, at most 30 s; out: its standard output, NULL: not wanted; its messages
 * become a say() if it fails. Its exit status, or -errno. */
int child_run(const char *const argv[], struct trace_text *out);
/* Is there such a program in PATH? */
bool child_found(const char *program);
/* The same, and says which Debian package has it. */
bool child_needs(const char *program, const char *package);
void text_free(struct trace_text *t);

/* ---- undo.c: puts right what we switched on in others, even if we are killed */

struct trace_undo {
	pid_t pid;
	int fd;
};

/* Starts a process that calls undo(ctx) when trace_undo_now() is called or we are gone; nothing
 * that it says is heard. 0 or -errno, and says so. */
int trace_undo_start(struct trace_undo *u, int (*undo)(void *ctx), void *ctx);
/* Has it done and waits for it. 0: undo() returned 0, or nothing was started; -EIO: it did not;
 * -ETIMEDOUT: it takes longer, and goes on without us. */
int trace_undo_now(struct trace_undo *u, uint64_t patience_ns);
/* Makes the folder for a trace, or takes an empty one; path becomes its absolute name. Says what is
 * wrong. */
int trace_folder(const char *name, char path[4096]);

/* ---- bpf.c */

/* Runs one's own program, or a canned one, to the end; *maps becomes what canned ones counted, by
 * name. Of canned ones the hooks are in only while all probes are attached: events of all kinds
 * begin and end at the same time, though attaching and detaching takes its time. enum status. */
int trace_bpf(struct trace *t, unsigned collectors, json_t **maps);
/* Adds usdt:*: in front of ringtap:, where a program names probes. The caller frees. */
char *trace_probe_names(const char *program);

/* ---- maps.c: what bpftrace counted */

/* All maps of its output in JSON lines: {"@name": {"key,key": …}}. NULL: nonsense. */
json_t *maps_read(const char *lines);
/* What the map takes of bpftrace's room: a histogram a place for each bucket. */
size_t maps_size(const json_t *map);
/* Parses the whole numbers that a key begins with; the rest of it, or NULL if there are fewer. */
const char *maps_key(const char *key, uint64_t *n, unsigned count);
/* Something under the same key in another map; NULL: nothing. */
json_t *maps_get(json_t *maps, const char *map, const char *key);
/* A histogram as [[low, end, count], …], bounds multiplied by scale; end is exclusive. */
json_t *maps_histogram(const json_t *buckets, double scale);
/* Prints it as bars; ns: of times, else of whole numbers. */
void maps_print_histogram(const json_t *histogram, bool ns);
/* 12.3 us */
char *maps_ns(char buf[FORMAT_LEN], double ns);
/* The text under a key, which an application or its neighbours gave, fit for terminals; otherwise:
 * if there is none. */
#define MAPS_TEXT_LEN 64
const char *maps_text(
	char buf[MAPS_TEXT_LEN], const json_t *row, const char *key, const char *otherwise);
/* Sorts an array of objects by number key, largest first. */
void maps_sort(json_t *array, const char *key);

/* ---- what the canned programs make of it: a document, printed as it is or for people */

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

/* ---- elf.c */

struct trace_event {
	char name[64];
	char arguments[256]; /* as the note has them, "2@%di 4@%esi" */
	unsigned count;      /* places with these arguments */
};

struct trace_events {
	struct trace_event *list;
	size_t count;
};

/* Adds the USDT events of provider ringtap that the file has. 0; -ENOEXEC: no ELF file, or a broken
 * one; -E2BIG: more than any program has; -errno. The file may be anybody's. */
int elf_events(const char *path, struct trace_events *events);
void elf_events_free(struct trace_events *events);

/* ---- telemetry.c: the probe's command /ringtap/trace */

/* Asks with a parameter ("": for its state); the answer, or NULL: it knows no such command, or did
 * not answer. Its "status" is 0 or -errno. The caller decrefs. */
json_t *trace_ask(const char *dir, const char *parameter);
/* The same, waiting at most about so long. 0; -ENOENT, -ECONNREFUSED: no such application;
 * -EPROTONOSUPPORT: it knows no such command; -ETIMEDOUT; -errno. */
int trace_ask_within(const char *dir, const char *parameter, int ms, json_t **answer);
/* The same as trace_ask(), and says what went wrong. */
json_t *trace_tell(const struct trace *t, const char *parameter);
/* Why the application does not answer: it is stopped, or unknown. In why or static. */
#define TRACE_WHY_LEN 256
const char *trace_why_silent(const struct trace *t, char why[TRACE_WHY_LEN]);
/* Waits until bursts are traced, or not any more: some 50 ms after it was asked for. False: not
 * within some seconds. */
bool trace_bursts_are(const struct trace *t, bool traced);

/* ---- each returns enum status */

int trace_list(struct trace *t);
int trace_lttng(struct trace *t, unsigned collectors);
int trace_dpdk(struct trace *t, unsigned collectors);

#endif
