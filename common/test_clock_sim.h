/* SPDX-License-Identifier: BSD-3-Clause */
/* A machine with exactly known clocks, for the tests of the clock. */
#ifndef RINGTAP_COMMON_TEST_CLOCK_SIM_H
#define RINGTAP_COMMON_TEST_CLOCK_SIM_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "clock.h"

#define US          1000ull
#define MS          1000000ull
#define S           1000000000ull
#define HOUR        (3600 * S)
#define EPOCH       (1700000000ull * S)
#define INTERVAL_NS (50 * MS) /* interval of the control thread */
#define COARSE_NS   (4 * MS)  /* the kernel's timer interrupt */

static const uint64_t clock_hz[] = {
	1000000, 25000000, 1000000000, 1999999999, 2400000000, 2893202000, 3333333333, 5000000000};
#define HZ_COUNT (sizeof(clock_hz) / sizeof(clock_hz[0]))

/* Counts ticks exactly, in fractions. */
struct sim {
	long double ticks, mono, real, asleep; /* ns; real: since the epoch */
	long double hz;
	double ppm; /* the kernel's clocks against the TSC: what NTP does */
	uint64_t jitter_ns;
	uint64_t seed;
	struct rt_clock clock;
	uint64_t shown;   /* the last time that a ring has shown */
	uint64_t by_line; /* the last time that the line has given */
	bool jumped;      /* the TSC, since the last update */
};

static inline uint64_t rnd(struct sim *m)
{
	m->seed = m->seed * 6364136223846793005ull + 1442695040888963407ull;
	return m->seed >> 33;
}

static inline uint64_t ticks(const struct sim *m)
{
	return (uint64_t)m->ticks;
}

static inline void pass(struct sim *m, uint64_t ns)
{
	long double kernel = (long double)ns * (1 + (long double)m->ppm * 1e-6L);

	m->ticks += (long double)ns * m->hz / 1e9L;
	m->mono += kernel;
	m->real += kernel;
}

static inline struct rt_clock_point sample(struct sim *m)
{
	uint64_t jitter = m->jitter_ns ? rnd(m) % (2 * m->jitter_ns + 1) : 0;

	return (struct rt_clock_point){.tsc = ticks(m),
		.mono_ns = (uint64_t)m->mono + jitter - m->jitter_ns,
		.real_ns = (uint64_t)m->real + jitter - m->jitter_ns,
		.asleep_ns = (uint64_t)m->asleep};
}

static inline void update(struct sim *m)
{
	struct rt_clock_point p = sample(m);

	rt_clock_follow(&m->clock, &p);
	m->jumped = false;
}

/* Reads the clock as hooks do, except that the coarse clock is the machine's. What a ring shows
 * never goes back; what the line gives does so only where the TSC has jumped, until the next
 * update. Returns how far the shown time is ahead of CLOCK_REALTIME. */
static inline int64_t look(struct sim *m)
{
	int64_t delta = rt_clock_delta(&m->clock.line, ticks(m));
	uint64_t real = (uint64_t)m->real, ns = real - real % COARSE_NS;

	if (rt_clock_is_near(delta)) {
		ns = m->clock.line.ns_base + (uint64_t)delta;
		assert_true(ns >= m->by_line || m->jumped);
		m->by_line = ns > m->by_line ? ns : m->by_line;
	}
	m->shown = ns > m->shown ? ns : m->shown;
	return (int64_t)(m->shown - real);
}

static inline int64_t worse(int64_t a, int64_t b)
{
	return llabs(b) > llabs(a) ? b : a;
}

/* One interval with reads on the way, and an update. Returns the largest error. */
static inline int64_t tick(struct sim *m, uint64_t interval_ns)
{
	int64_t worst = 0;

	for (int i = 0; i < 4; i++) {
		pass(m, interval_ns / 4);
		worst = worse(worst, look(m));
	}
	update(m);
	return worse(worst, look(m));
}

static inline int64_t run_for(struct sim *m, uint64_t ns, uint64_t interval_ns)
{
	int64_t worst = 0;

	for (uint64_t t = 0; t < ns; t += interval_ns)
		worst = worse(worst, tick(m, interval_ns));
	return worst;
}

static inline struct sim machine(uint64_t hz)
{
	return (struct sim){
		.ticks = 1e15L, .mono = 1e12L, .real = EPOCH, .hz = (long double)hz, .seed = 1};
}

/* A clock that has run for a minute. */
static inline struct sim settled(uint64_t hz)
{
	struct sim m = machine(hz);
	struct rt_clock_point early = sample(&m), now;

	pass(&m, INTERVAL_NS);
	now = sample(&m);
	rt_clock_begin(&m.clock, &early, &now, hz);
	m.jitter_ns = 200;
	run_for(&m, 60 * S, INTERVAL_NS);
	return m;
}

/* The resolution of a slow counter. */
static inline uint64_t tick_ns(const struct sim *m)
{
	return (uint64_t)(1e9L / m->hz) + 1;
}

#define assert_within(error, limit) assert_in_range(llabs(error), 0, limit)

#endif
