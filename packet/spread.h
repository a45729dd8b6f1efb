/* SPDX-License-Identifier: BSD-3-Clause */
/* Distributions of latencies, in buckets of log-linear histograms. */
#ifndef RINGTAP_PACKET_SPREAD_H
#define RINGTAP_PACKET_SPREAD_H

#include <stddef.h>
#include <stdint.h>

#include "common/log_linear.h"

#define LATENCY_MAX_BITS 40 /* longer ones (18 minutes) are in the last bucket */
#define LATENCY_MAX      ((UINT64_C(1) << LATENCY_MAX_BITS) - 1)

/* A fine one: percentiles are within 1 %. */
#define SPREAD_BITS    6
#define SPREAD_BUCKETS RT_LOG_BUCKETS(SPREAD_BITS, LATENCY_MAX_BITS)
struct spread {
	uint64_t count, sum, min, max; /* ns */
	uint64_t bucket[SPREAD_BUCKETS];
};

/* A spread of zeros is an empty one. */
static inline void spread_add(struct spread *s, uint64_t ns)
{
	if (!s->count || ns < s->min)
		s->min = ns;
	if (ns > s->max)
		s->max = ns;
	s->count++;
	s->sum += ns;
	s->bucket[rt_log_bucket(ns < LATENCY_MAX ? ns : LATENCY_MAX, SPREAD_BITS)]++;
}

/* share: 0 … 1. ns; NAN where it is empty. */
double spread_quantile(const struct spread *s, double share);
double spread_mean(const struct spread *s);

/* The same of coarser buckets, between a minimum and maximum that are known. */
double buckets_quantile(
	const uint32_t *bucket, unsigned bits, double share, double min, double max);

/* Numbers that are printed of each distribution. */
#define QUANTILES 4
extern const double quantile_shares[QUANTILES];
extern const char *const quantile_names[QUANTILES]; /* for people */
extern const char *const quantile_keys[QUANTILES];  /* in JSON */

#endif
