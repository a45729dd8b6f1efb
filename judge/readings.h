/* SPDX-License-Identifier: BSD-3-Clause */
/* Readings of an application's mempools and rings: what several snapshots show that two do not. */
#ifndef RINGTAP_JUDGE_READINGS_H
#define RINGTAP_JUDGE_READINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "measure/watch.h"

/* How a pool's use changed: readings in order, as many in each part as it takes for all to fit. */
#define USE_PARTS 64
struct pool_use {
	struct {
		uint32_t least, most; /* objects in use */
	} part[USE_PARTS];
	uint32_t parts, each; /* readings in each part; in the last one: */
	uint32_t in_last;
	uint32_t first, last;       /* readings */
	uint64_t first_ns, last_ns; /* CLOCK_MONOTONIC */
};

struct pool_readings {
	/* Snapshots; those in which there was less than a burst; and those in which there was more,
	 * but none that a receiving thread could get. */
	uint32_t count, empty, beyond;
	uint32_t least; /* available, smallest of the snapshots */
	/* A receiving thread takes from it, as objects in its cache show, or nothing could. */
	bool receives;
	struct pool_use use;
};

/* Samples of a ring's level since the mark. */
struct ring_readings {
	uint64_t counted; /* samples so far, as the probe counts them */
	uint32_t samples; /* that are known: a snapshot has the last RINGTAP_RING_RECENT */
	uint32_t full;    /* with no room for a burst */
	uint32_t least, most;
};

/* Zeroed at first. */
struct readings {
	struct pool_readings *pools; /* by pool of the last snapshot */
	uint32_t pool_count;
	struct ring_readings *rings; /* by ring of the last snapshot */
	uint32_t ring_count;
};

/* Adds the last snapshot of an application, and its use of pools. */
void readings_add(struct readings *r, const struct watched *a);
/* Adds the use of pools only: also of snapshots outside the interval that is judged. */
void readings_add_use(struct readings *r, const struct ringtap_snapshot *f);
void readings_free(struct readings *r);
/* Snapshots in which a thread that needed a burst of objects could not get it. */
uint32_t readings_starved(const struct pool_readings *p);
/* The largest burst that threads requested since the mark; LIMIT_BURST if none polled. Larger ones
 * of before, as those by which testpmd empties its queues, do not count. */
unsigned readings_burst(const struct watched *a);
/* Objects for which a ring has to have room, else it is full: a burst, less if it is short. */
uint32_t ring_room(const struct ringtap_ring_stats *s);
/* Adds a reading: objects in use at ns, CLOCK_MONOTONIC. */
void pool_use_add(struct pool_use *u, uint64_t ns, uint32_t in_use);

#endif
