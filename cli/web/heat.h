/* SPDX-License-Identifier: BSD-3-Clause */
/* Latencies of the last minutes, with the collector latency. */
#ifndef RINGTAP_CLI_WEB_HEAT_H
#define RINGTAP_CLI_WEB_HEAT_H

#include "history.h"
#include "measure/rates.h"

#define HEAT_ROWS   144
#define HEAT_OCTAVE 4   /* rows */
#define HEAT_LOW_NS 1.0 /* lower edge; the highest row, below 69 s, has all that is beyond */

struct heat_step {
	uint64_t next; /* the step, plus one */
	uint32_t packets[HEAT_ROWS];
	double p50_ns, p99_ns; /* NAN without packets */
};

struct heat {
	struct heat_step *ring; /* step i at i % HISTORY_STEPS; NULL: none */
	uint64_t last;          /* step of the newest, plus one */
};

/* Adds the newest step: packets of all pairs of ports that are chosen. */
void heat_add(struct heat *m, const struct history *h, const struct span *s);
/* NULL: unknown. */
const struct heat_step *heat_at(const struct heat *m, uint64_t step);
void heat_free(struct heat *m);

#endif
