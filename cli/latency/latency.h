/* SPDX-License-Identifier: BSD-3-Clause */
/* How long packets stayed in an application: by pair of ports, all threads together. */
#ifndef RINGTAP_CLI_LATENCY_LATENCY_H
#define RINGTAP_CLI_LATENCY_LATENCY_H

#include <stdio.h>

#include "measure/measure.h"

/* Shown percentiles. */
enum { P50, P90, P99, P999, LATENCY_QUANTILES };
extern const double latency_shares[LATENCY_QUANTILES];
extern const char *const latency_names[LATENCY_QUANTILES];  /* in JSON */
extern const char *const latency_labels[LATENCY_QUANTILES]; /* in plots */

struct latency_pair {
	const char *from, *to; /* ports' names; live as long as the snapshot */
	uint32_t rx_port, tx_port;
	bool inferred;                      /* see docs/statistics.md; never mixed with others */
	uint64_t count, sum;                /* packets, cycles */
	uint64_t min, max;                  /* cycles */
	bool exact;                         /* min and max; else they are within 1 % */
	double quantile[LATENCY_QUANTILES]; /* cycles */
	uint64_t *bucket;                   /* ringtap_latency_buckets() of them */
};

/* What a port sent and was not timed. */
struct latency_untimed {
	const char *port;
	uint32_t tx_port;
	uint64_t unstamped, shared;
};

struct latency {
	double ns_per_cycle;
	struct latency_pair *pairs; /* with packets; certain ones first, in order of the ports */
	struct latency_untimed *untimed;
	uint32_t pair_count, untimed_count;
	uint64_t no_room; /* packets that found no block */
	uint64_t timed;   /* packets, all pairs, inferred ones too */
	uint32_t every;   /* one packet in N was timed */
};

/* Sums the difference to first. 0 or -ENOMEM. Free with latency_free() in any case. */
int latency_sum(struct latency *l, const struct one_app *app, const struct ringtap_snapshot *first,
	const struct ringtap_snapshot *since);
void latency_free(struct latency *l);
/* Packets timed between two snapshots, inferred ones too. */
uint64_t latency_timed(const struct one_app *app, const struct ringtap_snapshot *first,
	const struct ringtap_snapshot *now);

/* report.c */
void latency_print(const struct latency *l, const struct measure *m);
void latency_print_histogram(const struct latency *l);
int latency_json(const struct latency *l, const struct measure *m);

/* view.c: for web_page_write(). */
json_t *latency_view(const struct latency *l, const struct measure *m);

#endif
