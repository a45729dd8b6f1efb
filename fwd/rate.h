/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How many packets are due by now. Each answer follows from the start alone, so nothing adds up:
 * the k-th packet (from 0) is due k / rate seconds after it. At random, the gaps are exponential
 * with that mean: a Poisson process.
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

struct rate_clock {
	uint64_t hz;    /* ticks per second */
	uint64_t rate;  /* packets per second, at most RATE_MAX; 0: none is ever due */
	uint64_t start; /* ticks; goes on by whole seconds, base with it */
	uint64_t base;  /* whole packet times since the first start; poisson: less those in next */
	bool poisson;
	uint64_t random;
	uint64_t arrived,
		next; /* poisson: how many, and the next, in packet times * 2^24 from base */
};

void rate_start(struct rate_clock *c, uint64_t start, uint64_t rate, uint64_t hz);
/* Makes it a Poisson process. */
void rate_randomize(struct rate_clock *c, uint64_t seed);
/* Packets due since the start, all of them also of a Poisson process that is far behind. For when a
 * time is over: it may take long. */
uint64_t rate_due_all(struct rate_clock *c, uint64_t now);
/* Packets due since the start. now (ticks) never goes back; before the start none is due. When far
 * behind, a Poisson process may need several calls to catch up. */
uint64_t rate_due(struct rate_clock *c, uint64_t now);

/* Packets of a whole stage: exact. */
uint64_t rate_total(uint64_t rate, uint64_t ns);

#endif
