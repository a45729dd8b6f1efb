/* SPDX-License-Identifier: BSD-3-Clause */
/* SIGINT, SIGTERM and SIGHUP end a run; the main thread receives them in signals_wait(). They stay
 * blocked until the process ends: a second signal must not interrupt the report or the cleanup.
 * SIGQUIT ends the process at once. */
#ifndef RINGTAP_FWD_SIGNALS_H
#define RINGTAP_FWD_SIGNALS_H

#include <stdint.h>

/* Blocks the signals. Call it before any thread is created: threads inherit the mask. */
void signals_block(void);
/* Waits up to ns for a signal. Returns its number, or 0. */
int signals_wait(uint64_t ns);

#endif
