/* SPDX-License-Identifier: BSD-3-Clause */
/* TSC to CLOCK_REALTIME: conversion (both sides) and discipline (probe). docs/format.md, "Time". */
#ifndef RINGTAP_COMMON_CLOCK_H
#define RINGTAP_COMMON_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "atomics.h"
#include "segment.h"

/* The counter that producers stamp with; the same one as rte_rdtsc(). */
static inline uint64_t rt_tsc(void)
{
#if defined(__x86_64__) || defined(__i386__)
	return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
	uint64_t v;
	__asm__ __volatile__("mrs %0, cntvct_el0" : "=r"(v));
	return v;
#else
#error "no time stamp counter known for this architecture"
#endif
}

static inline uint64_t rt_time_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* One straight line; see struct rt_seg_clock. */
struct rt_clock_line {
	uint64_t tsc_base; /* ticks */
	uint64_t ns_base;  /* ns since the epoch */
	uint64_t mult;     /* ns per tick * 2^RT_CLOCK_SHIFT */
};

/* How far tsc is from the line's base, in ns. The delta is signed (a thread may have read the
 * TSC just before the line was rebased) and the product 128 bits wide: 64 bits overflow after
 * seconds. */
static inline int64_t rt_clock_delta(const struct rt_clock_line *l, uint64_t tsc)
{
	__int128 d = (__int128)(int64_t)(tsc - l->tsc_base) * (int64_t)l->mult;

	return (int64_t)(d >> RT_CLOCK_SHIFT);
}

static inline uint64_t rt_clock_ns(const struct rt_clock_line *l, uint64_t tsc)
{
	return l->ns_base + (uint64_t)rt_clock_delta(l, tsc);
}

/* A line is rebased many times a second. When it is this old, its writer does not run or the TSC
 * has jumped (suspend, a guest that was restored). The TSC has also jumped when it is before the
 * line's base by more than the TSCs of CPUs differ. Then the line must not be used. */
#define RT_CLOCK_SPAN_NS 10000000000ll
#define RT_CLOCK_SKEW_NS 1000000ll

/* CLOCK_REALTIME as of the last timer interrupt: no system call, whatever the kernel's clock is. */
uint64_t rt_clock_coarse(void);

static inline bool rt_clock_is_near(int64_t delta_ns)
{
	return (uint64_t)delta_ns + RT_CLOCK_SKEW_NS <= RT_CLOCK_SPAN_NS + RT_CLOCK_SKEW_NS;
}

/* The time at a TSC of just now. After a jump it is the coarse time until the line follows. */
static inline uint64_t rt_clock_at(const struct rt_clock_line *l, uint64_t tsc)
{
	int64_t d = rt_clock_delta(l, tsc);

	return rt_likely(rt_clock_is_near(d)) ? l->ns_base + (uint64_t)d : rt_clock_coarse();
}

/* The time now, for hooks and readers. */
static inline uint64_t rt_clock_now(const struct rt_clock_line *l)
{
	return rt_clock_at(l, rt_tsc());
}

/* Reads a line that another thread or process publishes with rt_clock_publish(). Gives up after
 * a bounded number of tries and returns -EAGAIN: a dead or lying writer may leave seq odd
 * forever. */
int rt_clock_read(const struct rt_seg_clock *c, struct rt_clock_line *out);
/* The same, for a second at most: the writer may have lost its CPU. */
int rt_clock_wait(const struct rt_seg_clock *c, struct rt_clock_line *out);

/* Single writer. */
void rt_clock_publish(struct rt_seg_clock *c, const struct rt_clock_line *line);

/* One moment, read on all clocks. */
struct rt_clock_point {
	uint64_t tsc;       /* ticks */
	uint64_t mono_ns;   /* CLOCK_MONOTONIC: slewed as CLOCK_REALTIME is, but never set */
	uint64_t real_ns;   /* CLOCK_REALTIME */
	uint64_t asleep_ns; /* total sleep of the machine up to now */
};

void rt_clock_take(struct rt_clock_point *p);

/* State of the discipline: a line that follows CLOCK_REALTIME without ever going back. The rate is
 * measured against CLOCK_MONOTONIC, so that setting CLOCK_REALTIME does not disturb it. */
struct rt_clock {
	struct rt_clock_line line;
	uint64_t first_tsc, first_ns; /* oldest sample of the current baseline */
	uint64_t mid_tsc, mid_ns;     /* where the baseline begins when it has become too long */
	uint64_t last_tsc, last_ns;   /* newest sample */
	double rate;                  /* measured, ns per tick, before correction */
	double other_rate; /* the last interval's rate, if it disagreed with rate, else 0 */
	bool guessed;      /* rate may be off by percents */
};

/* Corrections: errors up to RT_CLOCK_JUMP_NS are slewed away within about a second (or until the
 * next update, where that is later), at most at RT_CLOCK_SLEW_PPM. Larger ones are a step of
 * CLOCK_REALTIME, or of the TSC: the line follows a step forward at once; after a step backward
 * it runs RT_CLOCK_SLOW times slower than real time until it has caught up. */
#define RT_CLOCK_JUMP_NS  1000000
#define RT_CLOCK_SLEW_PPM 500
#define RT_CLOCK_SLOW     8

/* Starts a line at now. Its slope is measured from early to now, if they are a millisecond or
 * more apart and agree with hz_guess (ticks per second) within 10 %; otherwise it is hz_guess
 * until it has been measured. With hz_guess 0 the measured slope is taken whatever it is. */
void rt_clock_begin(struct rt_clock *c, const struct rt_clock_point *early,
	const struct rt_clock_point *now, uint64_t hz_guess);

/* Takes a sample, 10 ms or more after the one before; c->line is rebased to it and never gives
 * an earlier time than before, whatever the TSC has done meanwhile. */
void rt_clock_follow(struct rt_clock *c, const struct rt_clock_point *p);

/* The same for a counter with one reference, which stands for both clocks. */
void rt_clock_init(struct rt_clock *c, uint64_t tsc0, uint64_t ns0, uint64_t tsc1, uint64_t ns1,
	uint64_t hz_guess);
void rt_clock_update(struct rt_clock *c, uint64_t tsc, uint64_t ns);

/* Samples the TSC and CLOCK_REALTIME together, best of a few tries. */
void rt_clock_sample(uint64_t *tsc, uint64_t *ns);
/* The same with CLOCK_MONOTONIC. */
void rt_clock_sample_mono(uint64_t *tsc, uint64_t *ns);

#endif
