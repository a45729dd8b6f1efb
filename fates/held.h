/* SPDX-License-Identifier: BSD-3-Clause */
/* Received packets that an application neither sends nor frees: by place, age and group. */
#ifndef RINGTAP_FATES_HELD_H
#define RINGTAP_FATES_HELD_H

#include "groups.h"
#include "view.h"

/* A class of ages: from a tenth of its limit on. */
#define AGES 9
extern const uint64_t age_limits[AGES]; /* ns; the last one: none */
extern const char *const age_names[AGES];

#define PLACES_MAX 1024

/* Where packets were received, or the pool they are of. */
struct held_count {
	uint64_t open, older; /* packets; older than the bound */
	uint64_t before;      /* older, in the reading before */
};

/* Packets of one pool that were received by one queue. */
struct held_place {
	uint32_t pool, queue; /* indices as below */
	struct held_count count;
};

struct held {
	struct fates_view view; /* first, for the rows of fates/view.h */
	uint64_t older_ns;
	const char *pool;            /* only its packets count; NULL: those of all */
	struct packet_groups groups; /* groups of the older packets */
	uint64_t ages[AGES];
	struct held_count all;
	struct held_count queues[PLACES_MAX]; /* by index in the session's fates */
	struct held_count pools[PLACES_MAX];  /* the same; the last one: not known */
	struct keyed places;                  /* struct held_place */
	uint64_t unplaced;                    /* packets of further places */
	uint64_t oldest_ns;
	unsigned grown; /* readings in which older packets became more, since one had fewer */
	uint64_t read_ns, before_ns; /* CLOCK_MONOTONIC of the readings; 0: none yet */
};

/* Zeroed but for what a session needs, and a bound of a second; command: for messages. The caller
 * frees it with held_free(), which also ends the session. NULL: out of memory. */
struct held *held_new(const char *command);
void held_free(struct held *h);
/* Reads the open packets, after fates_read(). 0, or -errno after printing why. */
int held_read(struct held *h);
/* The name of a pool by its index; NULL: not known. */
const char *held_pool(const struct held *h, uint32_t pool);
/* Class of an age. */
unsigned age_class(uint64_t ns);
/* How much a count of older packets grew a second; NAN: there is one reading only. */
double held_growth(const struct held *h, const struct held_count *c);
/* The place with most packets; NULL: nothing is older. */
const struct held_place *held_largest(const struct held *h);
/* Older packets are more than descriptors explain, and became more in several readings: a queue of
 * the application grows, or mbufs leak. */
#define HELD_READINGS 3
bool held_grows(const struct held *h);
/* Takes the counts of a reading into that. */
void held_note_growth(struct held *h);
/* Mbufs that descriptors may explain among the older ones. */
uint64_t held_in_descriptors(const struct held *h);

#endif
