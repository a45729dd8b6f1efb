/* SPDX-License-Identifier: BSD-3-Clause */
/* The control thread: there only while somebody is attached or has just asked. */
#ifndef RINGTAP_PROBE_CORE_CONTROL_H
#define RINGTAP_PROBE_CORE_CONTROL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "probe/monitor/stats.h"
#include "probe/capture/session.h"
#include "socket.h"

/* Starts the thread and its socket, or keeps them for another while. stay: until
 * rt_control_stop(). Any thread. 0 or -errno. */
int rt_control_start(bool stay);
/* The name of the socket's file in the runtime folder, after rt_control_start(). Any thread but the
 * control thread. */
void rt_control_socket(char name[RT_SOCKET_NAME_MAX]);
/* Ends all sessions and the thread; returns when it is gone. Waits rt_control_patience_ms at most
 * for threads inside of hooks; the next start frees what those hold up. From now on
 * rt_control_start() without stay is -ESHUTDOWN. */
void rt_control_stop(void);

/* A variable for the tests' sake. */
extern unsigned rt_control_patience_ms;

/* The same for good, where DPDK ends: waits until that time (rt_now_ms()) at most, and leaves what
 * is not done then. Does nothing in a child of the process that has the thread. */
void rt_control_end(uint64_t until_ms);

#define RT_LEASE_MS 10000

/* For those who have no connection: keeps collectors on for RT_LEASE_MS more and shows the
 * statistics, under the control lock. since_ms: how long all of the collectors have been on. Starts
 * the thread if need be. Any thread but the control thread. 0 or -errno. */
int rt_control_query(uint32_t collectors,
	void (*show)(struct rt_stats *f, uint64_t since_ms, void *arg), void *arg);

/* Tracers have come or gone: hooks do as they want when it returns, else at the next tick. Any
 * thread but the control thread. */
void rt_control_follow_tracers(void);

/* Takes a first sample for the clock: the longer before rt_control_start(), the better. */
void rt_control_early(void);

/* Connections (conn.c); control lock held. */
struct rt_conn {
	int fd;
	bool greeted;
	uint32_t pid;
	char program[RT_NAME_LEN];
	/* At most one of both. */
	struct rt_session *session;
	struct rt_monitor monitor;
	struct rt_filter_job *job; /* what its request waits for; NULL: nothing */
	struct rt_conn *next;
};

/* Compiles one of the filters that the connection waits for. Control thread, lock not held. True:
 * the connection is to be served without waiting. */
bool rt_conn_work(struct rt_conn *c);
/* Frees the job. */
void rt_conn_cancel(struct rt_conn *c);

/* All sessions, for listing. */
extern struct rt_session *rt_sessions;

/* Takes one message. False: the connection is over (the caller closes it). */
bool rt_conn_serve(struct rt_conn *c, const struct rt_clock_line *clock);
/* Moves the connection's session on: sends its layout, reports that it has stopped. False: the
 * connection is over, as above. */
bool rt_conn_advance(struct rt_conn *c, uint64_t now_ms, const struct rt_clock_line *clock);

#endif
