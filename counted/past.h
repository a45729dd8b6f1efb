/* SPDX-License-Identifier: BSD-3-Clause */
/* An application's own counters over the last minutes, for an interval that is known afterwards. */
#ifndef RINGTAP_COUNTED_PAST_H
#define RINGTAP_COUNTED_PAST_H

#include "counted.h"

#define COUNTED_PAST     32
#define COUNTED_EVERY_NS 5000000000ull

struct counted_past {
	struct counted c; /* the names; its last values */
	unsigned count;   /* readings, all in all: number n is at n modulo COUNTED_PAST */
	struct counted_reading *readings;
	uint64_t due_ns; /* CLOCK_MONOTONIC */
};

/* Reads the counters for the first time. Nothing is read of an application without a source, or
 * that has once not answered within 100 ms. Free with counted_past_free(). */
void counted_past_begin(struct counted_past *p, const char *program, pid_t pid, pid_t own_pid);
/* The same, of a source that is found already. */
void counted_past_start(struct counted_past *p);
/* Reads them if COUNTED_EVERY_NS have passed, or at once. */
void counted_past_read(struct counted_past *p, bool at_once);
void counted_past_free(struct counted_past *p);
/* Counters that have changed between the last reading before from_ns (the first one, if there is
 * none: it was the beginning) and the newest one, the largest first. Free with counted_free().
 * False: there is no source. */
bool counted_past_since(const struct counted_past *p, uint64_t from_ns, struct counted *out);

/* From an object of counted_json(), which may be any JSON and must outlive it. False: it is not
 * one. */
bool counted_from_json(struct counted *c, const json_t *j);

#endif
