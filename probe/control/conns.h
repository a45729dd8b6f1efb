/* SPDX-License-Identifier: BSD-3-Clause */
/* The connections of readers: a bounded table. Control thread, control lock held. */
#ifndef RINGTAP_PROBE_CONTROL_CONNS_H
#define RINGTAP_PROBE_CONTROL_CONNS_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

#include "control.h"

#define RT_CONNS_MAX 32

extern struct rt_conn *rt_conns;

/* Takes over a socket that was accepted. Where the table is full, the connection makes room that
 * was silent longest, of those without session and monitor; if all have one, the new one is
 * refused. */
void rt_conns_add(int fd, uint64_t now_ms);

/* Serves those of order whose fds have events, and continues all. */
void rt_conns_serve(const struct pollfd *fds, const struct rt_conn *const *order, unsigned n,
	const struct rt_clock_line *clock);

/* A reader that looks for applications connects to each, and leaves without a word: 'ringtap top'
 * of another application does so every second. */
bool rt_conns_greeted(void);

/* Ends all, or all without a session. */
void rt_conns_abandon(bool sessions, const struct rt_clock_line *clock);

#endif
