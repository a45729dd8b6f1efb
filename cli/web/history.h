/* SPDX-License-Identifier: BSD-3-Clause */
/* Values of the last ten minutes, one for each second. */
#ifndef RINGTAP_CLI_WEB_HISTORY_H
#define RINGTAP_CLI_WEB_HISTORY_H

#include <stddef.h>
#include <stdint.h>

#define HISTORY_STEPS  600
#define HISTORY_SERIES 512 /* limit for an application */
#define SERIES_NAME    160 /* names of two ports */

/* Times are ns after the origin: by CLOCK_MONOTONIC, so that a clock that is set moves nothing. */
struct history {
	uint64_t origin_ns;                 /* since the epoch */
	uint64_t mono_ns;                   /* the origin, CLOCK_MONOTONIC */
	uint64_t keep;                      /* steps, at most HISTORY_STEPS */
	uint64_t steps;                     /* since the origin */
	uint64_t end_ns[HISTORY_STEPS + 1]; /* end of step i, at i % (HISTORY_STEPS + 1) */
};

/* Keeps so much time; 0: all that fits. */
void history_begin(struct history *h, uint64_t keep_ns);
/* Ends a step now. A longer pause before it is a step of its own, of which nothing is known. */
void history_step(struct history *h);
/* The oldest step that is kept. */
uint64_t history_first(const struct history *h);
uint64_t history_from(const struct history *h, uint64_t step);
uint64_t history_to(const struct history *h, uint64_t step);

/* Panels that have series. */
enum series_group {
	SERIES_RECEIVED,
	SERIES_SENT,
	SERIES_LOST,
	SERIES_BUSY,
	SERIES_LATENCY,
	SERIES_POOL,
	SERIES_RING,
	SERIES_QUEUE,
	SERIES_APP_RECEIVED,
	SERIES_APP_LOST,
};

struct series {
	enum series_group group;
	char name[SERIES_NAME];
	char port[SERIES_NAME], thread[SERIES_NAME]; /* that it belongs to; "": none */
	uint64_t last;                               /* step of the newest value, plus one */
	float values[HISTORY_STEPS];                 /* by step % HISTORY_STEPS */
};

struct series_list {
	struct series **list;
	size_t count;
};

/* Sets the value of the newest step of a series, which is made where it is missing; at most
 * HISTORY_SERIES are. NAN: unknown. */
struct series *series_set(struct series_list *l, const struct history *h, enum series_group group,
	const char *name, double value);
double series_at(const struct series *s, const struct history *h, uint64_t step);
/* Forgets those without a value in the steps that are kept. */
void series_prune(struct series_list *l, const struct history *h);
void series_free(struct series_list *l);

#endif
