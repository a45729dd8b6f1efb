/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Number of packets that are due. Computed from the start alone, so rounding errors do not add up:
 * packet k (from 0) is due k / rate seconds after the start. A Poisson process has exponential gaps
 * with this mean.
 */
#ifndef RINGTAP_FWD_RATE_H
#define RINGTAP_FWD_RATE_H

#include <stdbool.h>
#include <stdint.h>

/* splitmix64, Steele, Lea, Flood: Fast splittable pseudorandom number generators (2014). */
static inline uint64_t random_next(uint64_t *state)
{
	uint64_t z = *state += 0x9E3779B97F4A7C15;

	z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
	z = (z ^ z >> 27) * 0x94D049BB133111EB;
	return z ^ z >> 31;
}

/* Packets at given times, again and again. */
struct rate_times {
	const uint64_t *ticks; /* since the begin of a round, in order; NULL: there are none */
	uint64_t start;        /* ticks: begin of the round */
	uint64_t round;        /* ticks from one to the next */
	uint32_t count, at;    /* at: the next one */
};

/* When the next packet is due. */
static inline uint64_t rate_next(const struct rate_times *t)
{
	return t->start + t->ticks[t->at];
}

static inline void rate_step(struct rate_times *t)
{
	if (++t->at < t->count)
		return;
	t->at = 0;
	t->start += t->round;
}

struct rate_clock {
	uint64_t hz;    /* ticks per second */
	uint64_t rate;  /* packets per second, at most RATE_MAX; 0: none is due */
	uint64_t start; /* ticks; advanced by whole seconds, base with it */
	uint64_t base;  /* whole packet times since the first start; poisson: see rebase() */
	bool poisson;
	uint64_t random;  /* state of random_next() */
	uint64_t arrived; /* poisson, times: packets due so far */
	uint64_t next;    /* poisson: time of the next one, in packet times * 2^24 */
	struct rate_times times;
};

void rate_start(struct rate_clock *c, uint64_t start, uint64_t rate, uint64_t hz);
/* Makes it a Poisson process. */
void rate_randomize(struct rate_clock *c, uint64_t seed);
/* Makes packets due at given times since the start, whatever the rate is. */
void rate_follow(struct rate_clock *c, const struct rate_times *t);
/* Packets due since the start, complete for a Poisson process, too. The time is not limited: for
 * the end of a stage. */
uint64_t rate_due_all(struct rate_clock *c, uint64_t now);
/* Packets due since the start; 0 before it. now (ticks) must not decrease. A Poisson process, or
 * given times, that are far behind may need several calls to catch up. */
uint64_t rate_due(struct rate_clock *c, uint64_t now);

/* Packets due in a stage of ns, exact. */
uint64_t rate_total(uint64_t rate, uint64_t ns);

#endif
