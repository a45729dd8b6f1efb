/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>

#include "rate.h"

#define FRACTION      24   /* bits */
#define ARRIVALS_ONCE 4096 /* limits the time of one call */

/* Time to the next arrival, in units of the mean gap / 2^FRACTION. */
static uint64_t gap(struct rate_clock *c)
{
	double u = ((double)(random_next(&c->random) >> 11) + 0.5) * 0x1p-53; /* 0 < u < 1 */

	return (uint64_t)(-log(u) * (1 << FRACTION) + 0.5);
}

void rate_start(struct rate_clock *c, uint64_t start, uint64_t rate, uint64_t hz)
{
	*c = (struct rate_clock){.hz = hz, .rate = rate, .start = start};
}

void rate_randomize(struct rate_clock *c, uint64_t seed)
{
	c->poisson = true;
	c->random = seed;
	c->next = gap(c);
}

void rate_follow(struct rate_clock *c, const struct rate_times *t)
{
	c->times = *t;
	c->times.start = c->start;
}

static uint64_t due_by_times(struct rate_clock *c, uint64_t now)
{
	for (int i = 0; i < ARRIVALS_ONCE && (int64_t)(now - rate_next(&c->times)) >= 0; i++) {
		c->arrived++;
		rate_step(&c->times);
	}
	return c->arrived;
}

/* Subtracts the whole packet times that base and next have in common: base << FRACTION would
 * overflow after 2^40 packets. */
static void rebase(struct rate_clock *c)
{
	uint64_t whole = c->next >> FRACTION;

	whole = whole < c->base ? whole : c->base;
	c->base -= whole;
	c->next -= whole << FRACTION;
}

uint64_t rate_due(struct rate_clock *c, uint64_t now)
{
	uint64_t ticks = now - c->start, position;

	if (c->times.ticks)
		return due_by_times(c, now);
	if ((int64_t)ticks < 0 || !c->rate)
		return 0;
	/* ticks * rate fits into 64 bits below one second: rate is at most 1e9, hz some 1e9. */
	while (ticks >= c->hz) {
		c->start += c->hz;
		c->base += c->rate;
		ticks -= c->hz;
	}
	if (!c->poisson)
		return c->base + ticks * c->rate / c->hz + 1;
	rebase(c);
	position = (c->base << FRACTION) +
		   (uint64_t)((double)(ticks * c->rate) / (double)c->hz * (1 << FRACTION));
	for (int i = 0; i < ARRIVALS_ONCE && c->next <= position; i++) {
		c->arrived++;
		c->next += gap(c);
	}
	return c->arrived;
}

uint64_t rate_due_all(struct rate_clock *c, uint64_t now)
{
	uint64_t due = rate_due(c, now), before;

	do {
		before = due;
		due = rate_due(c, now);
	} while (due != before);
	return due;
}

uint64_t rate_total(uint64_t rate, uint64_t ns)
{
	/* A packet due exactly at the end belongs to the next stage. */
	return (uint64_t)(((unsigned __int128)rate * ns + 999999999) / 1000000000);
}
