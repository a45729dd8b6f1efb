/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Log-linear histogram: values below 2^HISTOGRAM_BITS are exact; above, each power of two is cut
 * into 2^HISTOGRAM_BITS equal buckets, so that a bucket's middle is within 1/256 (0.4 %) of all
 * values in it. Least, greatest and mean are exact.
 */
#ifndef RINGTAP_FWD_HISTOGRAM_H
#define RINGTAP_FWD_HISTOGRAM_H

#include <stdint.h>

#define HISTOGRAM_BITS    7
#define HISTOGRAM_BUCKETS ((64 - HISTOGRAM_BITS + 1) << HISTOGRAM_BITS)

struct histogram {
	uint64_t count, min, max;
	unsigned __int128 sum;
	uint64_t buckets[HISTOGRAM_BUCKETS];
};

static inline unsigned histogram_bucket(uint64_t v)
{
	unsigned shift;

	if (v < 1 << HISTOGRAM_BITS)
		return (unsigned)v;
	shift = 63 - (unsigned)__builtin_clzll(v) - HISTOGRAM_BITS;
	return ((shift + 1) << HISTOGRAM_BITS) + (unsigned)(v >> shift) - (1 << HISTOGRAM_BITS);
}

/* Adds the value n times. A histogram begins as zeroes. */
static inline void histogram_add(struct histogram *h, uint64_t v, uint64_t n)
{
	if (!h->count || v < h->min)
		h->min = v;
	if (v > h->max)
		h->max = v;
	h->count += n;
	h->sum += (unsigned __int128)v * n;
	h->buckets[histogram_bucket(v)] += n;
}

/* A total that n things share: n times its n-th part, rounded, but for the mean, which stays exact.
 */
static inline void histogram_add_share(struct histogram *h, uint64_t total, uint64_t n)
{
	uint64_t part = (total + n / 2) / n;

	histogram_add(h, part, n);
	h->sum += total;
	h->sum -= (unsigned __int128)part * n;
}

/* The value below or at which p percent of all are; 0 if there is none. */
double histogram_percentile(const struct histogram *h, double p);
double histogram_mean(const struct histogram *h);

#endif
