/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Log-linear histogram with 2^HISTOGRAM_BITS buckets per octave (common/log_linear.h): the middle
 * of a bucket is within 1/256 (0.4 %) of all values in it. Minimum, maximum and mean are exact.
 */
#ifndef RINGTAP_FWD_HISTOGRAM_H
#define RINGTAP_FWD_HISTOGRAM_H

#include <stdint.h>

#include "common/log_linear.h"

#define HISTOGRAM_BITS    7
#define HISTOGRAM_BUCKETS RT_LOG_BUCKETS(HISTOGRAM_BITS, 64)

struct histogram {
	uint64_t count, min, max;
	unsigned __int128 sum;
	uint64_t buckets[HISTOGRAM_BUCKETS];
};

/* Adds the value n times. An empty histogram is all zero. */
static inline void histogram_add(struct histogram *h, uint64_t v, uint64_t n)
{
	if (!h->count || v < h->min)
		h->min = v;
	if (v > h->max)
		h->max = v;
	h->count += n;
	h->sum += (unsigned __int128)v * n;
	h->buckets[rt_log_bucket(v, HISTOGRAM_BITS)] += n;
}

/* Adds total / n, rounded, n times. The mean stays exact. */
static inline void histogram_add_share(struct histogram *h, uint64_t total, uint64_t n)
{
	uint64_t part = (total + n / 2) / n;

	histogram_add(h, part, n);
	h->sum += total;
	h->sum -= (unsigned __int128)part * n;
}

/* The p-th percentile; 0 if the histogram is empty. */
double histogram_percentile(const struct histogram *h, double p);
double histogram_mean(const struct histogram *h);

#endif
