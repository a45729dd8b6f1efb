/* SPDX-License-Identifier: BSD-3-Clause */
/* Intervals of polling threads, one by one: kept like packets, and written behind them. */
#ifndef RINGTAP_CLI_FLIGHT_INTERVALS_H
#define RINGTAP_CLI_FLIGHT_INTERVALS_H

#include <stdbool.h>
#include <stdint.h>

#include "ringtap/monitor.h"

#define INTERVALS_KEPT   (1u << 19)
#define INTERVALS_LOSSES 64
#define INTERVALS_SHOWN  20000 /* on a page, at most */

struct flight;
struct incident;

/* The application was faster than the recorder. */
struct interval_loss {
	uint64_t from_ns, to_ns, count;
};

struct intervals {
	struct ringtap_interval *kept; /* number n at n modulo INTERVALS_KEPT; NULL: none yet */
	uint64_t count;                /* ever */
	struct interval_loss losses[INTERVALS_LOSSES]; /* number n at n modulo INTERVALS_LOSSES */
	uint64_t loss_count, read_ns;
};

/* Intervals of a window that a page shows: none shorter than least_ns. */
struct interval_choice {
	uint64_t all, shown, least_ns;
};

/* Takes what threads have logged up to the last snapshot. */
void intervals_read(struct flight *f);
void intervals_free(struct flight *f);

/* Whether they were logged throughout, as a snapshot says. */
static inline bool intervals_on(const struct ringtap_snapshot *s)
{
	return s->collectors & RINGTAP_INTERVALS;
}

struct interval_choice intervals_choose(const struct incident *i);
/* Calls fn for each that touches the window and has least_ns or more. */
void intervals_walk(const struct incident *i, uint64_t least_ns,
	void (*fn)(void *ctx, const struct ringtap_interval *v), void *ctx);
/* Calls fn for the times of the window of which some are missing. */
void intervals_missing(const struct incident *i,
	void (*fn)(void *ctx, const struct interval_loss *loss), void *ctx);

/* Appends them to the file of packets, which is cut again if it fails. last: a snapshot of the
 * history that has their threads. 0 or -errno. */
int intervals_write(struct incident *i, unsigned last);

#endif
