/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>

#include "spread.h"

const double quantile_shares[QUANTILES] = {0.5, 0.9, 0.99, 0.999};
const char *const quantile_names[QUANTILES] = {"p50", "p90", "p99", "p99.9"};
const char *const quantile_keys[QUANTILES] = {"p50", "p90", "p99", "p999"};

/* Buckets' middles; the first and last may lie beyond minimum and maximum. */
static double middle(uint32_t bucket, unsigned bits, double min, double max)
{
	uint64_t width, low = rt_log_bucket_low(bucket, bits, &width);

	return fmax(fmin((double)low + ((double)width - 1) / 2, max), min);
}

/* The number of the value that has this share of count values at or below it, from 1. */
static uint64_t rank(uint64_t count, double share)
{
	double r = ceil(share * (double)count);

	return r < 1 ? 1 : r > (double)count ? count : (uint64_t)r;
}

double spread_quantile(const struct spread *s, double share)
{
	uint64_t left = rank(s->count, share);

	for (uint32_t b = 0; s->count && b < SPREAD_BUCKETS; b++) {
		if (s->bucket[b] >= left)
			return middle(b, SPREAD_BITS, (double)s->min, (double)s->max);
		left -= s->bucket[b];
	}
	return NAN;
}

double spread_mean(const struct spread *s)
{
	return s->count ? (double)s->sum / (double)s->count : NAN;
}

double buckets_quantile(const uint32_t *bucket, unsigned bits, double share, double min, double max)
{
	uint32_t n = RT_LOG_BUCKETS(bits, LATENCY_MAX_BITS);
	uint64_t count = 0, left;

	for (uint32_t b = 0; b < n; b++)
		count += bucket[b];
	left = rank(count, share);
	for (uint32_t b = 0; count && b < n; b++) {
		if (bucket[b] >= left)
			return middle(b, bits, min, max);
		left -= bucket[b];
	}
	return NAN;
}
