/* SPDX-License-Identifier: BSD-3-Clause */
/* A recording in progress: the state that loop, blocks and reports share. */
#ifndef RINGTAP_CLI_RECORD_RECORD_H
#define RINGTAP_CLI_RECORD_RECORD_H

#include <stdio.h>

#include "cli/commands.h"
#include "config.h"
#include "fates.h"
#include "sink/files.h"
#include "sink/capture_file.h"
#include "sink/clock.h"
#include "target/targets.h"
#include "ringtap/reader.h"

enum end_reason {
	END_NONE,
	END_SIGNAL,
	END_PACKETS,
	END_DURATION,
	END_FILESIZE,
	END_FILES,
	END_APPLICATION, /* all applications ended by themselves */
	END_OUTPUT,      /* could not write */
	END_CORRUPT,     /* a ring is broken */
	END_ERROR,
};

/* An interface's share, summed over its queues and directions. */
struct share {
	struct ringtap_counts counts;
	uint64_t discarded; /* captured, but after the limit */
};

struct recorder {
	const struct record_config *cfg;
	struct targets targets;
	struct ringtap_capture *cap;
	struct record_fates *fates; /* NULL: without --fates */
	struct capture_file file;   /* the current one */
	struct files files;
	char *path;           /* -w, or our own name */
	char *bad_path;       /* a file that could not be opened */
	struct share *shares; /* of share_count interfaces */
	unsigned share_count;

	enum end_reason end;
	int error;        /* -errno with END_OUTPUT, END_CORRUPT, END_ERROR */
	char *error_text; /* its message */
	bool stopping;    /* capture shall end, or has ended, at its source */
	bool stopped;
	bool discarding;  /* packets that still come are only counted */
	int newcomers_fd; /* inotify; -1: none */

	uint64_t emitted_ns; /* since the epoch: all packets before it were taken */
	uint64_t written;    /* packets, in files that are closed */
	uint64_t dead;       /* applications reported as ended */
	struct host_clock clock;
	/* CLOCK_REALTIME. file_ns names the file, and its interval: not time(), which is up to a
	 * tick of the kernel behind. */
	uint64_t start_ns, end_ns, file_ns;
	/* CLOCK_MONOTONIC */
	uint64_t start_mono_ns, end_mono_ns, file_mono_ns;
	uint64_t next_tick_ns, next_isb_ns, next_report_ns;
	/* of the last live report */
	uint64_t report_ns, report_captured;
	/* Time that this thread was runnable without a CPU: before the recording, until the last
	 * tick, and the most from a tick to the next. */
	uint64_t waited_before_ns, waited_ns, longest_wait_ns;
};

/* ---- command.c */

/* Attaches, records and reports as configured in r->cfg. Returns enum status; prints what is wrong.
 */
int recorder_run(struct recorder *r);
void recorder_free(struct recorder *r);

/* ---- newcomers.c */
/* From now on secondary processes that start are noticed, and reported by newcomers_check(). */
void newcomers_begin(struct recorder *r);
void newcomers_check(struct recorder *r);
void newcomers_end(struct recorder *r);

/* ---- signals.c */
/* SIGINT, SIGTERM and SIGHUP end the capture; a second one discards what is not yet written, and so
 * does, after the first one, a pipe whose reader takes nothing for seconds. */
void signals_catch(struct ringtap_capture *cap);
void signals_release(void);
int signals_count(void);
/* SIGUSR1 and SIGUSR2: whether one came since the last call. */
bool signals_want_counts(void);
bool signals_want_file(void);
extern struct sink_patience signals_patience;

/* ---- file.c: files, and the blocks around the packets. 0 or -errno. */
int file_open_first(struct recorder *r); /* prints what is wrong */
int file_begin(struct recorder *r);      /* opens where it is not yet open; headers */
int file_end(struct recorder *r, bool final);
/* Ends the file, and the recording if -a files demands it, else begins the next one. */
int file_next(struct recorder *r);
/* Interface statistics; final: the capture is over, counts are exact. */
int file_statistics(struct recorder *r, bool final);

/* ---- counts.c */
/* Brings shares up to date. */
int shares_update(struct recorder *r);
/* Counts the packets of a run as discarded, by interface. 0, -ENOMEM, -EBADMSG. */
int shares_discard(struct recorder *r, const struct ringtap_run *run);
uint64_t counts_lost(const struct ringtap_counts *c);
/* Ends the recording at its source; discard: packets that still come are only counted. The first
 * reason stays. */
void recorder_end(struct recorder *r, enum end_reason why, bool discard);
/* Packets in all files, the current one included. */
uint64_t recorder_written(const struct recorder *r);
/* Duration of a recording that is over, and packets written a second. */
double recorder_seconds(const struct recorder *r);
double recorder_rate(const struct recorder *r);

/* ---- packets.c: splits a run at the limits. 0 or -errno. */
int packets_put(struct recorder *r, const struct ringtap_run *run);

/* ---- loop.c: runs until the end; result in end and error. */
void recorder_loop(struct recorder *r);

/* ---- report.c, json.c */
void report_live(struct recorder *r, uint64_t now_ns);
/* The counts so far. */
void report_counts(struct recorder *r, FILE *f);
void report_summary(const struct recorder *r, FILE *f);
void report_json(const struct recorder *r, FILE *f);
/* Reports lost packets, and returns whether there are any. */
bool report_losses(const struct recorder *r);
/* The same of fates. */
bool report_fates_lost(const struct recorder *r);
const char *end_name(enum end_reason why);

/* ---- loss.c */
/* Nanoseconds that this thread has been runnable without a CPU so far; 0: unknown. */
uint64_t thread_waited_ns(void);
/* Why the buffer was full, and what would have saved the packets. */
void explain_full_buffer(const struct recorder *r, char *out, size_t size);

/* ---- statistics.c: -S. Returns enum status. */
int statistics_run(struct recorder *r);

#endif
