/* SPDX-License-Identifier: BSD-3-Clause */
/* Timeouts that unit tests set. They belong to a thread, so that a list of applications can use
 * shorter ones. */
#ifndef RINGTAP_READER_TUNABLES_H
#define RINGTAP_READER_TUNABLES_H

#include <stdint.h>

struct rt_reader_limits {
	int break_fd;  /* ringtap_break_fd() */
	int answer_ms; /* wait for an answer of the probe */
	int open_ms;   /* wait for rings of the probe: populating gigabytes takes long */
	/* A thread that waits for space in a ring delays the probe's answer to another filter, for
	 * up to 5 s. */
	int filter_ms;
	int telemetry_ms;
	int names_ms;    /* wait for the database of a switch */
	int collapse_ms; /* limit of rt_collapse(), and for each GiB again */
	/* A thread that is stopped in a hook delays the merge for this time. */
	uint64_t hold_ns;
	/* When the probe's control thread, which ticks every 50 ms, has certainly taken back what a
	 * ring does not use; if it had no CPU for that long, packets may be lost. */
	uint64_t still_ns;
};

extern _Thread_local struct rt_reader_limits rt_reader_limits;

#endif
