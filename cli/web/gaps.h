/* SPDX-License-Identifier: BSD-3-Clause */
/* Polling gaps of the last minutes, with the collector gaps. */
#ifndef RINGTAP_CLI_WEB_GAPS_H
#define RINGTAP_CLI_WEB_GAPS_H

#include "history.h"
#include "measure/rates.h"

#define GAPS_KEPT 4096 /* limit for an application */

struct polling_gap {
	uint64_t step;     /* in which it was found */
	uint64_t start_ns; /* since the epoch */
	uint64_t ns;
	bool idle; /* after an empty poll */
	char thread[THREAD_NAME_LEN];
	char text[128]; /* port, queue and packets of the poll before it; "": unknown */
};

struct gaps {
	struct polling_gap *ring; /* gap i at i % GAPS_KEPT; NULL: none */
	uint64_t count;
};

/* Adds those of a snapshot that are new, or that last. */
void gaps_add(struct gaps *g, const struct history *h, const struct ringtap_snapshot *f);
void gaps_free(struct gaps *g);
/* The oldest one that is kept. */
uint64_t gaps_first(const struct gaps *g);
const struct polling_gap *gaps_at(const struct gaps *g, uint64_t i);

#endif
