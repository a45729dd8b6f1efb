/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What an application itself counts of the packets that it drops, by name and over an interval,
 * beside what ringtap has seen. A source reads the counters of one kind of application.
 */
#ifndef RINGTAP_COUNTED_COUNTED_H
#define RINGTAP_COUNTED_COUNTED_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#define COUNTED_MAX      256 /* counters of an application */
#define COUNTED_NAME_LEN 128 /* VPP's are as long */
#define COUNTED_TIME_LEN 40
#define COUNTED_THREADS  128 /* that an application may have */

struct counted_value {
	char name[COUNTED_NAME_LEN]; /* the application's, printable ASCII */
	const char *meaning;         /* in plain words; NULL: not known */
	bool mixed;                  /* also of packets that were never received, or were refused */
	bool apart; /* packets not dropped, never received, or with a counter for the reason */
	uint64_t begin, end; /* packets */
};

/* Packets of a polling thread. */
enum counted_of_thread {
	COUNTED_RECEIVED,
	COUNTED_SENT,
	COUNTED_SLOW,
	COUNTED_LOST,
	COUNTED_OF_THREAD
};

struct counted_thread {
	char name[COUNTED_NAME_LEN]; /* the application's, printable ASCII */
	uint64_t begin[COUNTED_OF_THREAD], end[COUNTED_OF_THREAD];
};

struct counted_threads {
	bool begun; /* they have the values of the beginning */
	size_t count;
	struct counted_thread list[COUNTED_THREADS];
};

struct counted_source;

struct counted {
	const struct counted_source *source; /* NULL: none for this application */
	pid_t pid, own_pid;                  /* the latter as the application sees itself */
	struct counted_value *list;          /* COUNTED_MAX; in the order of the source */
	size_t count;
	bool begun;    /* the list has the values of the beginning */
	bool more;     /* and those that the source may lack: see struct counted_source */
	bool slow;     /* did not answer in time: is not read again before the end */
	char why[192]; /* why there are no values; "": there are */
	struct counted_threads *threads; /* NULL: not read */
	/* When they were read, of values of the past; "": begin and end of what ringtap counts. */
	char from[COUNTED_TIME_LEN], to[COUNTED_TIME_LEN];
};

/* The packets of counters that add up to a number of packets. */
struct counted_match {
	uint64_t packets;       /* 0: nothing adds up */
	bool used[COUNTED_MAX]; /* by counter */
};

/* Finds the source of a program, and makes its list. False: there is none. */
bool counted_find(struct counted *c, const char *program, pid_t pid, pid_t own_pid);
/* The same, by the name of the source. */
bool counted_find_named(struct counted *c, const char *source);
/* Reads the counters, which begins with the first time. 0 or -errno; why is set then. */
int counted_read_within(struct counted *c, int within_ms);
/* Finds the source of a program, and reads its counters. pid: in our PID namespace, 0: not visible;
 * own_pid: in that of the application. Waits two seconds at most. Free with counted_free(). */
void counted_begin(struct counted *c, const char *program, pid_t pid, pid_t own_pid);
/* Reads the counters again; waits 100 ms at most. */
void counted_read(struct counted *c);
/* Reads them at the end. Threads may add to them late, see struct counted_source: if counters do
 * not yet add up to this number of packets, they are read once more after that time, and these
 * values are taken unless they are more than the packets. Waits four seconds at most. */
void counted_end(struct counted *c, uint64_t packets);
void counted_free(struct counted *c);

/* Packets counted since the beginning. A counter that has become less: 0. */
uint64_t counted_since(const struct counted_value *v);
uint64_t counted_thread_since(const struct counted_thread *t, enum counted_of_thread what);
/* Which counters account for packets, without those apart: all that are not mixed, if they have
 * this sum; else the only subset of at most 16 that has it; else all that are not mixed, if their
 * sum is less. Where the source has others, only the subset counts. */
struct counted_match counted_match(const struct counted *c, uint64_t packets);

/* Counts of ringtap for the same time. */
struct counted_fates {
	uint64_t not_offered, open;
	bool whole; /* all ports are in them: else the numbers are not compared */
};

/* A table, and how many of the packets that were not offered the counters account for; where the
 * source frees them unseen, of the open ones as well. Nothing without a source. 0 or -errno. */
int counted_print(const struct counted *c, struct counted_fates fates, FILE *f);
/* The table as a panel of a page, if there are packets in it. */
struct view;
void counted_view(const struct counted *c, struct view *v);
/* The same; null without a source. */
json_t *counted_json(const struct counted *c, struct counted_fates fates);

/* ---- sources */

struct counted_source {
	const char *name;    /* the application's, for texts */
	const char *program; /* its file's name begins so */
	/* Until a packet that a thread has dropped is in the counters; 0: at once. */
	uint64_t late_ns;
	/* Dropped packets stay open until their mbufs are received again: it frees without DPDK. */
	bool frees_unseen;
	bool has_others;  /* counters of packets that are not dropped */
	const char *note; /* what to know about the counters */
	/* Calls counted_put() for each counter; those that are 0 may be missing. 0, or -errno after
	 * writing why. Counters that it could not read at the beginning begin when it can. */
	int (*read)(struct counted *c, int within_ms);
	bool has_threads; /* and reads those of counted.threads */
};

extern const struct counted_source counted_open_vswitch, counted_vpp;

/* A value that the application reports. Names of other characters, and counters beyond COUNTED_MAX,
 * are ignored: NULL. meaning: static or NULL. */
struct counted_value *counted_put(
	struct counted *c, const char *name, size_t len, const char *meaning, uint64_t value);

/* Whether a name is printable ASCII, and fits. */
bool counted_is_name(const char *name, size_t len);

/* A counter that was put; NULL: there is none of this name. */
struct counted_value *counted_get(const struct counted *c, const char *name, size_t len);

/* The user of the process. 0 or -ESRCH. */
int counted_uid(const struct counted *c, uid_t *uid);
/* Writes why the socket of this path gave no counters. Returns the error. */
int counted_failed(struct counted *c, const char *path, int error, int within_ms);

/* Takes VPP's error counters, and its interfaces' counts of dropped packets, from its statistics
 * segment, a file that may have any content, and be written meanwhile. 0; -EAGAIN: VPP changes its
 * directory just now; -EPROTO: it cannot be read; -EPROTONOSUPPORT: another version; -errno. */
int counted_take_segment(void *counted, int fd);
/* The same, of its interfaces, as they are now: struct counted_interfaces. */
int counted_take_interfaces(void *interfaces, int fd);
/* Calls take with VPP's segment until it is not -EAGAIN. 0, or -errno after writing why. */
int counted_read_segment(
	struct counted *c, int within_ms, int (*take)(void *ctx, int fd), void *ctx);

/* Takes the counters of dropped packets from the answer to coverage/show, which may be any text. */
void counted_take_coverage(struct counted *c, const char *text);
/* The same, of the ports of DPDK in the answer to dpctl/show -s. */
void counted_take_ports(struct counted *c, const char *text);
/* Takes the threads of the answer to dpif-netdev/pmd-perf-show, which may be any text. */
void counted_take_threads(struct counted *c, const char *text);

#endif
