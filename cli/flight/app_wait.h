/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RINGTAP_CLI_FLIGHT_APP_WAIT_H
#define RINGTAP_CLI_FLIGHT_APP_WAIT_H

#include <stdbool.h>
#include <stdint.h>

#include "config.h"

/* Failures to attach to one process; begins with zeros. */
struct retry {
	uint64_t pid;
	uint64_t delay_ns;
};

/* Nanoseconds until the next attempt, after a failure with this process: a second after its first
 * one, each time twice as long as before, at most a minute. */
uint64_t retry_delay(struct retry *a, uint64_t pid);

/* Waits until the application runs. False: a signal came. */
bool app_wait(const struct flight_config *c);
/* Waits until it may be attached to again: this time is over, or it is another process. False: a
 * signal came. */
bool app_wait_retry(const struct flight_config *c, struct retry *a);

#endif
