/* SPDX-License-Identifier: BSD-3-Clause */
/* Snapshots of the last minutes, and the conditions that are checked with them. */
#ifndef RINGTAP_CLI_FLIGHT_HISTORY_H
#define RINGTAP_CLI_FLIGHT_HISTORY_H

#include <stdbool.h>
#include <stdint.h>

#include "trigger.h"

struct flight;

/* Between two snapshots of the history. */
struct span history_span(const struct flight *f, unsigned first, unsigned last);
/* Takes a snapshot, checks the triggers with it and keeps one a second. 0; -EPIPE: the application
 * has ended. */
int history_step(struct flight *f);
/* Makes the history reach to this time, if the application still answers: an incident's end may be
 * within a second that is not over. */
void history_reach(struct flight *f, uint64_t ns);
void history_free(struct flight *f);
/* A condition was met: an incident, unless the last one of this trigger was just now, or the
 * recorder is stopping. */
void flight_fire(struct flight *f, const struct trigger *t, const struct event *e);
/* The newest interval of the history that is not shorter than ns, which is not 0. False: there is
 * none yet. */
bool history_last(const struct flight *f, uint64_t ns, struct span *s);
/* The snapshots around an incident: indices into history. False: fewer than two. */
bool history_around(
	const struct flight *f, uint64_t from_ns, uint64_t to_ns, unsigned *first, unsigned *last);
/* Judges an interval. The caller frees; NULL: no interval, or no memory. */
struct diagnosis *history_judge(
	struct flight *f, unsigned first, unsigned last, struct examination *e);

#endif
