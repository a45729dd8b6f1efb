/* SPDX-License-Identifier: BSD-3-Clause */
/* ringtap held: received packets that an application neither sends nor frees. */
#ifndef RINGTAP_CLI_HELD_HELD_H
#define RINGTAP_CLI_HELD_HELD_H

#include "cli/fates/kinds.h"
#include "cli/fates/tables.h"
#include "cli/fates/view.h"

/* A class of ages: from a tenth of its limit on. */
#define AGES 9
extern const uint64_t age_limits[AGES]; /* ns; the last one: none */
extern const char *const age_names[AGES];

#define PLACES_MAX 1024

/* Older packets of one pool that were received by one queue. */
struct held_group {
	uint32_t pool, queue; /* indices as below */
	uint64_t older, before;
};

/* Where packets were received, or the pool they are of. */
struct held_count {
	uint64_t open, older; /* packets; older than the bound */
	uint64_t before;      /* older, in the reading before */
};

struct held {
	struct fates_view view; /* first, for fates_set() */
	uint64_t older_ns;
	struct kinds kinds; /* of the older ones */
	uint64_t ages[AGES];
	struct held_count all;
	struct held_count queues[PLACES_MAX]; /* by index in the session's fates */
	struct held_count pools[PLACES_MAX];  /* likewise; the last one: not known */
	struct keyed groups;                  /* struct held_group */
	uint64_t oldest_ns;
	unsigned grown; /* readings in which older packets became more, since one had fewer */
	uint64_t read_ns, before_ns; /* CLOCK_MONOTONIC of the readings; 0: none yet */
};

/* Class of an age. */
unsigned age_class(uint64_t ns);
/* How much a count of older packets grew a second; NAN: there is one reading only. */
double held_growth(const struct held *h, const struct held_count *c);
/* The group with most packets; NULL: nothing is older. */
const struct held_group *held_largest(const struct held *h);
/* Older packets are more than descriptors explain, and became more in several readings: a queue of
 * the application grows, or mbufs leak. */
#define HELD_READINGS 3
bool held_grows(const struct held *h);
/* Takes the counts of a reading into that. */
void held_note_growth(struct held *h);
/* Mbufs that descriptors may explain among the older ones. */
uint64_t held_in_descriptors(const struct held *h);

/* ---- report.c, json.c: as struct fates_view has them */
int held_text(void *ctx, FILE *f);
json_t *held_json(void *ctx);

#endif
