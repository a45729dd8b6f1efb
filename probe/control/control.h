/* SPDX-License-Identifier: BSD-3-Clause */
/* The control thread: it runs only while a reader is attached or a telemetry query was made
 * recently. */
#ifndef RINGTAP_PROBE_CONTROL_CONTROL_H
#define RINGTAP_PROBE_CONTROL_CONTROL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "probe/monitor/stats.h"
#include "probe/capture/session.h"
#include "socket.h"

/* Starts the thread and its socket, or prolongs their time. stay: keep them until
 * rt_control_stop(). Any thread. 0 or -errno. */
int rt_control_start(bool stay);
/* The name of the socket's file in the runtime folder, after rt_control_start(). Any thread but the
 * control thread. */
void rt_control_socket(char name[RT_SOCKET_NAME_MAX]);
/* Ends all sessions and the thread; returns when it has ended. Waits at most
 * rt_probe_limits.patience_ms for threads inside hooks; the next start frees the memory that those
 * use. Afterwards rt_control_start() without stay returns -ESHUTDOWN. */
void rt_control_stop(void);

/* Ends all sessions and the thread soon: rt_control_start() without stay returns -EUNATCH from now
 * on, until rt_control_wake(). Control thread, lock held. */
void rt_control_detach(void);
/* The clock and the ports are followed from now on, until no reader is connected: for its first
 * request, not for its connection, as this takes locks of the primary in a secondary process. 0 or
 * -errno. Control lock held. */
int rt_control_follow(void);
/* Any thread but the control thread. */
void rt_control_wake(void);

/* The version; of a loaded object, whose function replaces the weak one, with the commit. */
const char *rt_probe_version(void);

#define RT_LEASE_MS 10000

/* For queries without a connection: keeps collectors on for RT_LEASE_MS more and passes the
 * statistics to show, under the control lock. collecting_ms: how long all of the collectors have
 * been on. Starts the thread if necessary. Any thread but the control thread. 0 or -errno. */
int rt_control_query(uint32_t collectors,
	void (*show)(struct rt_stats *f, uint64_t collecting_ms, void *arg), void *arg);

/* Tracers have come or gone: hooks follow when it returns, or at the next tick. Any thread but
 * the control thread. */
void rt_control_follow_tracers(void);

/* Takes a first sample for the clock; the earlier before rt_control_start(), the more exact the
 * rate. */
void rt_control_early(void);

/* Connections (conn.c); control lock held. */
struct rt_conn {
	int fd;
	bool greeted;
	uint64_t heard_ms; /* rt_now_ms() of its last message, or of its beginning */
	uint32_t pid;
	char program[RT_NAME_LEN];
	/* At most one of the two is set. */
	struct rt_session *session;
	struct rt_monitor monitor;
	struct rt_filter_job *job; /* that its request waits for; NULL: none */
	struct rt_conn *next;
};

/* Compiles one of the filters that the connection waits for. Control thread, lock not held.
 * True: serve the connection without waiting. */
bool rt_conn_work(struct rt_conn *c);
/* Frees the job. */
void rt_conn_cancel(struct rt_conn *c);

/* Handles one message. False: the connection is over (the caller closes it). */
bool rt_conn_serve(struct rt_conn *c, const struct rt_clock_line *clock);
/* Continues the connection's session: sends its layout, reports that it has stopped. False: the
 * connection is over, as above. */
bool rt_conn_advance(struct rt_conn *c, uint64_t now_ms, const struct rt_clock_line *clock);

#endif
