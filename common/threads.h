/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads beside those of a program. */
#ifndef RINGTAP_COMMON_THREADS_H
#define RINGTAP_COMMON_THREADS_H

#include <pthread.h>
#include <signal.h>
#include <time.h>

/* Starts a thread that runs no handlers of signals: those are for the program's own threads. 0 or
 * -errno. */
static inline int rt_thread_start(pthread_t *thread, void *(*run)(void *), void *arg)
{
	sigset_t all, before;
	int ret;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	ret = -pthread_create(thread, NULL, run, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return ret;
}

/* A condition for rt_cond_wait_ns(). */
static inline void rt_cond_init(pthread_cond_t *c)
{
	pthread_condattr_t monotonic;

	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(c, &monotonic);
	pthread_condattr_destroy(&monotonic);
}

#endif
