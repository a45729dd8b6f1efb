/* SPDX-License-Identifier: BSD-3-Clause */
/* How long packets stayed in an application: by pair of ports, and of these by thread, sending
 * queue or length. */
#ifndef RINGTAP_CLI_LATENCY_LATENCY_H
#define RINGTAP_CLI_LATENCY_LATENCY_H

#include <stdio.h>

#include "measure/measure.h"
#include "measure/rates.h"

/* Shown percentiles. */
enum { P50, P90, P99, P999, LATENCY_QUANTILES };
extern const double latency_shares[LATENCY_QUANTILES];
extern const char *const latency_names[LATENCY_QUANTILES];  /* in JSON */
extern const char *const latency_labels[LATENCY_QUANTILES]; /* in plots */

enum latency_by { BY_PORT, BY_QUEUE, BY_THREAD, BY_SIZE };

/* Packets that took longer than a percentile, at least: with fewer it is hardly one. */
#define LATENCY_BEYOND 10

#define LATENCY_PART_LEN (THREAD_NAME_LEN + 16)

struct latency_pair {
	const char *from, *to; /* ports' names; live as long as the snapshot */
	uint32_t rx_port, tx_port;
	/* The part of the pair; RINGTAP_NO_INDEX, and 0 and UINT32_MAX: all of it. */
	uint32_t thread, tx_queue, bytes_from, bytes_to;
	bool inferred;                      /* see docs/statistics.md; never mixed with others */
	uint64_t count, sum;                /* packets, cycles */
	uint64_t min, max;                  /* cycles */
	bool exact;                         /* min and max; else they are within 1 % */
	double quantile[LATENCY_QUANTILES]; /* cycles */
	uint64_t *bucket;                   /* ringtap_latency_buckets() of them */
};

/* Packets that a port sent without a time. */
struct latency_untimed {
	const char *port;
	uint32_t tx_port;
	uint64_t unstamped, shared;
};

struct latency {
	enum latency_by by;
	const struct ringtap_snapshot *f; /* that it is of */
	uint64_t from_ns, to_ns;          /* since the epoch */
	double ns_per_cycle;
	struct latency_pair *pairs; /* with packets; certain ones first, in order of the ports */
	struct latency_untimed *untimed;
	uint32_t pair_count, untimed_count;
	uint64_t no_room; /* packets that found no block */
	uint64_t timed;   /* packets, all pairs, inferred ones too */
	uint32_t every;   /* one packet in N was timed */
};

/* Sums the difference to first. 0 or -ENOMEM. Free with latency_free() in any case. */
int latency_sum(struct latency *l, enum latency_by by, const struct one_app *app,
	const struct ringtap_snapshot *first, const struct ringtap_snapshot *since);
void latency_free(struct latency *l);
/* Subtracts an earlier sum of the same measurement. Pairs without packets since then go. */
void latency_since(struct latency *l, const struct latency *before);
/* Packets timed between two snapshots, inferred ones too. */
uint64_t latency_timed(const struct one_app *app, const struct ringtap_snapshot *first,
	const struct ringtap_snapshot *now);

/* Whether so few packets took longer than this percentile that it says little. */
bool latency_few(const struct latency_pair *p, int quantile);
/* ", queue 1": the part of a pair; "": all of it. */
char *latency_part(
	char buf[LATENCY_PART_LEN], const struct latency *l, const struct latency_pair *p);

/* over_time.c: cuts a measurement into intervals. */
struct latency_clock {
	uint64_t interval_ns;
	uint64_t next_ns; /* when the current one ends; 0: not begun */
	struct latency base,
		before; /* sums at the beginning; since then, until the last interval */
};
/* 1: an interval is over, and *out is of it, to be freed; 0: not yet; -ENOMEM. */
int latency_clock_next(struct latency_clock *c, struct latency *out, enum latency_by by,
	const struct one_app *app, const struct ringtap_snapshot *first,
	const struct ringtap_snapshot *now);
/* The rest, of all that was measured, which is measure's last at the end. As above; 0: there is
 * none. */
int latency_clock_end(
	struct latency_clock *c, struct latency *out, enum latency_by by, const struct measure *m);
void latency_clock_free(struct latency_clock *c);

/* All pairs together, moment by moment, for the page. */
struct latency_moments {
	struct latency_clock clock;
	uint32_t count;
	struct latency_moment {
		uint64_t from_ns, to_ns;
		uint64_t *bucket;
	} * list;
};
/* Moments become longer, rather than too many. 0 or -ENOMEM; takes of l what it needs. */
int latency_moments_add(struct latency_moments *t, const struct latency *l);
void latency_moments_free(struct latency_moments *t);

/* report.c */
void latency_print(const struct latency *l, const struct measure *m);
void latency_print_histogram(const struct latency *l);
int latency_json(const struct latency *l, const struct measure *m, bool line);

/* view.c: for web_page_write(). */
json_t *latency_view(
	const struct latency *l, const struct measure *m, const struct latency_moments *t);

#endif
