/* SPDX-License-Identifier: BSD-3-Clause */
#include "test_now.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "atomics.h"
#include "now.h"

#define PLANS 16

struct plan {
	uint64_t ns; /* 0: free */
	void (*f)(void *arg);
	void *arg;
};

/* Threads read the time, and one lets it pass. */
static uint64_t mono = TEST_NOW_MONO_NS, real = TEST_NOW_REAL_NS;
static struct plan plans[PLANS];

void test_now_set(uint64_t mono_ns, uint64_t real_ns)
{
	rt_store(&mono, mono_ns);
	rt_store(&real, real_ns);
	for (unsigned i = 0; i < PLANS; i++)
		plans[i] = (struct plan){0};
}

void test_now_step_real(int64_t ns)
{
	rt_store(&real, real + (uint64_t)ns);
}

void test_now_after(uint64_t ns, void (*f)(void *arg), void *arg)
{
	for (unsigned i = 0; i < PLANS; i++) {
		if (plans[i].ns)
			continue;
		plans[i] = (struct plan){mono + ns, f, arg};
		return;
	}
	fprintf(stderr, "test_now_after: more than %d\n", PLANS);
	abort();
}

/* The first one until then; NULL: none. */
static struct plan *next_until(uint64_t ns)
{
	struct plan *first = NULL;

	for (unsigned i = 0; i < PLANS; i++)
		if (plans[i].ns && plans[i].ns <= ns && (!first || plans[i].ns < first->ns))
			first = &plans[i];
	return first;
}

static void move_to(uint64_t ns)
{
	rt_store(&real, real + (ns - mono));
	rt_store(&mono, ns);
}

/* Up to the next plan, which it executes, or to that time. Whether the time is reached. */
static bool go_on(uint64_t until)
{
	struct plan *p = next_until(until), now;

	if (!p) {
		move_to(until);
		return true;
	}
	now = *p;
	*p = (struct plan){0};
	move_to(now.ns);
	now.f(now.arg);
	return false;
}

void test_now_pass(uint64_t ns)
{
	const uint64_t until = mono + ns;

	while (!go_on(until))
		;
}

uint64_t rt_now_ns(clockid_t clock)
{
	return clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE ? rt_load(&real)
									 : rt_load(&mono);
}

void rt_sleep_ns(uint64_t ns)
{
	test_now_pass(ns);
}

int rt_poll_ns(struct pollfd *p, nfds_t count, uint64_t ns)
{
	const uint64_t until = mono + ns;
	bool over = false;
	int ret;

	if (ns == RT_WAIT_ENDLESS)
		return poll(p, count, -1);
	while (!(ret = poll(p, count, 0)) && !over)
		over = go_on(until);
	return ret;
}

/* Threads that wait for their next turn have none. */
void rt_cond_wait_ns(pthread_cond_t *c, pthread_mutex_t *m, uint64_t ns)
{
	pthread_cond_wait(c, m);
}

/* In place of the C library's: JSON documents have it beside the time. */
int gethostname(char *name, size_t len)
{
	snprintf(name, len, "host");
	return 0;
}
