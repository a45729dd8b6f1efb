/* SPDX-License-Identifier: BSD-3-Clause */
/* --wait: until an application runs, until it can be attached to again, until it ends. */
#ifndef RINGTAP_TARGET_APP_WAIT_H
#define RINGTAP_TARGET_APP_WAIT_H

#include <stdbool.h>
#include <stdint.h>

struct app_wait {
	/* Set by the caller, the rest zeros. */
	const char *word; /* APP or APP:PORT; NULL: any application */
	bool unlisted;    /* also a process without telemetry and probe */
	bool quiet;

	int events;          /* descriptor of process_events.h; 0: not opened, negative: none */
	uint64_t look_ns;    /* what the last search took */
	uint64_t new_pid;    /* that was seen first at seen_ns */
	uint64_t seen_ns;    /* CLOCK_MONOTONIC */
	uint64_t failed_pid; /* that could not be attached to, and the delay since */
	uint64_t delay_ns;
};

void app_wait_close(struct app_wait *w);

/* Waits until the application runs. False: a signal came. */
bool app_wait(struct app_wait *w);
/* After a failure: waits until it may be attached to again: the delay is over, or it is another
 * process. False: a signal came. */
bool app_wait_retry(struct app_wait *w);
/* Waits until a process has ended. False: a signal came. */
bool app_wait_end(struct app_wait *w, uint32_t pid);

/* Nanoseconds until the next attempt, after a failure with this process: a second after its first
 * one, each time twice as long as before, at most a minute. */
uint64_t app_wait_delay(struct app_wait *w, uint64_t pid);

#endif
