/* SPDX-License-Identifier: BSD-3-Clause */
#include "now.h"

#include "clock.h"

static struct timespec time_of(uint64_t ns)
{
	return (struct timespec){
		.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000)};
}

uint64_t rt_now_ns(clockid_t clock)
{
	return rt_time_ns(clock);
}

void rt_sleep_ns(uint64_t ns)
{
	const struct timespec ts = time_of(ns);

	nanosleep(&ts, NULL);
}

int rt_poll_ns(struct pollfd *p, nfds_t count, uint64_t ns)
{
	const struct timespec ts = time_of(ns);

	return ppoll(p, count, ns == RT_WAIT_ENDLESS ? NULL : &ts, NULL);
}

void rt_cond_wait_ns(pthread_cond_t *c, pthread_mutex_t *m, uint64_t ns)
{
	const struct timespec until = time_of(rt_time_ns(CLOCK_MONOTONIC) + ns);

	pthread_cond_timedwait(c, m, &until);
}
