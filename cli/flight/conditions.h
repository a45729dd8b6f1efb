/* SPDX-License-Identifier: BSD-3-Clause */
/* Conditions that are met, and conditions that are checked with snapshots. */
#ifndef RINGTAP_CLI_FLIGHT_CONDITIONS_H
#define RINGTAP_CLI_FLIGHT_CONDITIONS_H

#include <stdint.h>

#include "trigger.h"

struct flight;

/* A condition was met: an incident, unless the last one of this trigger was just now, or the
 * recorder is stopping. */
void condition_met(struct flight *f, const struct trigger *t, const struct event *e);
/* Takes a snapshot, checks conditions with it and keeps one a second. 0; -EPIPE: the application
 * has ended. */
int conditions_step(struct flight *f);
/* Writes the number of incidents, and of events that made none, to text. Returns text. */
#define FLIGHT_SUMMARY 96
const char *conditions_summary(const struct flight *f, char text[FLIGHT_SUMMARY]);
/* Prints conditions that nothing in the application can meet yet. */
void conditions_warn(const struct flight *f);
/* Makes the history reach to this time, if the application still answers: an incident's end may be
 * within a second that is not over. */
void conditions_reach(struct flight *f, uint64_t ns);

#endif
