/* SPDX-License-Identifier: BSD-3-Clause */
/* A recording in progress: the state that loop, blocks and reports share. */
#ifndef RINGTAP_CLI_RECORD_RECORD_H
#define RINGTAP_CLI_RECORD_RECORD_H

#include <stdio.h>

#include "cli/commands.h"
#include "config.h"
#include "fates.h"
#include "page.h"
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

/* A file that is being written, and its place in files.list. */
struct part {
	struct capture_file file;
	size_t listed;
};

struct recorder {
	const struct record_config *cfg;
	struct targets targets;
	struct ringtap_capture *cap;
	struct record_fates *fates; /* NULL: without --fates */
	/* Files being written: one, and with --split one for each interface, by its index, or for
	 * each direction. */
	struct part *parts;
	unsigned part_count;
	struct ringtap_packets *walk; /* for what reads the packets themselves */
	struct files files;
	char *path;     /* -w, or our own name */
	char *bad_path; /* a file that could not be opened */
	struct record_page page;
	struct share *shares; /* share_count entries, one for each interface */
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
	/* The last live report. */
	uint64_t report_ns, report_captured;
	/* Time that this thread was runnable without a CPU: before the recording, until the last
	 * tick, and the most from a tick to the next. */
	uint64_t waited_before_ns, waited_ns, longest_wait_ns;
};

/* Attaches, records and reports as configured in r->cfg. Returns enum status; prints what is wrong.
 */
int recorder_run(struct recorder *r);
void recorder_free(struct recorder *r);

/* Before the capture starts: no packet is older than the recording. */
void recorder_start_clocks(struct recorder *r);
/* Runs until the end; the result is in end and error. */
void recorder_loop(struct recorder *r);
/* record -S. Returns enum status. */
int statistics_run(struct recorder *r);

#endif
