/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads that sleep in a system call and hold no lock. */
#ifndef RINGTAP_INJECT_IDLE_H
#define RINGTAP_INJECT_IDLE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct rt_idle {
	pid_t tid;
	long nr; /* number of its system call */
	uint64_t args[6], sp, pc;
};

#define RT_IDLE_MAX 8

/* Finds threads of DPDK that sleep without a time limit: first the telemetry server in accept(),
 * then EAL's interrupt thread in epoll_wait(). Their number, at most RT_IDLE_MAX;
 * -EPERM: this user may not know. */
int rt_idle_find(pid_t pid, struct rt_idle out[RT_IDLE_MAX]);

/* Whether the thread sleeps where it slept. -ESRCH: it has ended. */
int rt_idle_again(pid_t pid, const struct rt_idle *idle);

/* Whether a thread of this process has the name of DPDK's telemetry server, or of any thread that
 * EAL makes. */
bool rt_has_telemetry(pid_t pid);
bool rt_has_eal(pid_t pid);
/* Whether a thread has the name of the one that the vhost library starts with its first socket. */
bool rt_has_vhost(pid_t pid);

#endif
