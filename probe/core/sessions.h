/* SPDX-License-Identifier: BSD-3-Clause */
/* The list of sessions: what the control thread does with all of them. Control lock held. */
#ifndef RINGTAP_PROBE_CORE_SESSIONS_H
#define RINGTAP_PROBE_CORE_SESSIONS_H

#include <stdbool.h>
#include <stdint.h>

/* Those without a connection that no thread uses any more. */
void rt_sessions_free_abandoned(void);
/* Whether a session needs to be served again soon. */
bool rt_sessions_in_motion(void);
/* Threads that poll leave a hook within microseconds: tries that before the caller sleeps. */
void rt_sessions_settle(void);
/* Stops all, and waits until that time (rt_now_ms()) at most. Readers take the end of their
 * connection for the end of what is in the rings. */
void rt_sessions_stop(uint64_t until_ms);

#endif
