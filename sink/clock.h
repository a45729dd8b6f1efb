/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the file says about the clock of its time stamps: comments of the interfaces and of the
 * statistics of the first one, see docs/format.md, "The clock in files". Time stamps follow
 * CLOCK_REALTIME of this host.
 */
#ifndef RINGTAP_SINK_CLOCK_H
#define RINGTAP_SINK_CLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CLOCK_TEXT_LEN 160

struct host_clock {
	bool known;        /* offset_ns is valid */
	int64_t offset_ns; /* CLOCK_REALTIME less CLOCK_BOOTTIME, when they were last read */
	int64_t set_ns;    /* by how much CLOCK_REALTIME was set since the last report */
};

/* Reads both clocks. True: CLOCK_REALTIME was set since the last call. */
bool clock_check(struct host_clock *c);
/* The same of an offset that was read. */
bool clock_note(struct host_clock *c, int64_t offset_ns);
/* Clock of an interface. source: of its time stamps; tsc_hz 0: unknown. */
void clock_of_interface(char text[CLOCK_TEXT_LEN], const char *source, uint64_t tsc_hz);
/* A report, with what was set until now. */
void clock_report(char text[CLOCK_TEXT_LEN], const struct host_clock *c);

#endif
