/* SPDX-License-Identifier: BSD-3-Clause */
/* The list of sessions: what the control thread does with all of them. Control lock held. */
#ifndef RINGTAP_PROBE_CONTROL_SESSIONS_H
#define RINGTAP_PROBE_CONTROL_SESSIONS_H

#include <stdbool.h>
#include <stdint.h>

/* Frees sessions without a connection that no thread uses any more. */
void rt_sessions_free_abandoned(void);
/* Whether a session needs to be served again soon. */
bool rt_sessions_in_motion(void);
/* Between ticks: notes where packets may be sent unseen. True: a port was created, started or
 * stopped, and sessions and statistics have to look at ports now. */
bool rt_sessions_watch(void);
/* Whether that is to be called often: a session has fates, or a port may get queues or start. */
bool rt_sessions_restless(void);
/* The line by which their readers, and hooks of NIC time stamps, convert the TSC. */
struct rt_clock_line;
void rt_sessions_set_clock(const struct rt_clock_line *line);
/* Threads that poll leave a hook within microseconds: tries that before the caller sleeps. */
void rt_sessions_settle(void);
/* Stops all, and waits until that time (rt_now_ms()) at most. Readers take the end of their
 * connection for the end of what is in the rings. */
void rt_sessions_stop(uint64_t until_ms);

#endif
