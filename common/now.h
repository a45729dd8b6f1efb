/* SPDX-License-Identifier: BSD-3-Clause */
/* Clocks and waiting, of everything but the hooks. The tests that set the time link test_now.c in
 * place of now.c. */
#ifndef RINGTAP_COMMON_NOW_H
#define RINGTAP_COMMON_NOW_H

#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <time.h>

#define RT_WAIT_ENDLESS UINT64_MAX

uint64_t rt_now_ns(clockid_t clock);
/* Returns early after a signal. */
void rt_sleep_ns(uint64_t ns);
/* poll(), with a limit in ns or RT_WAIT_ENDLESS. */
int rt_poll_ns(struct pollfd *p, nfds_t count, uint64_t ns);
/* Waits for a condition of CLOCK_MONOTONIC, ns at most. */
void rt_cond_wait_ns(pthread_cond_t *c, pthread_mutex_t *m, uint64_t ns);

#endif
