/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>

#include "histogram.h"

static double middle(unsigned bucket)
{
	unsigned shift = bucket >> HISTOGRAM_BITS;
	uint64_t mantissa = bucket & ((1 << HISTOGRAM_BITS) - 1);

	if (!shift)
		return (double)bucket;
	shift--;
	mantissa += 1 << HISTOGRAM_BITS;
	return ldexp((double)mantissa, (int)shift) + (ldexp(1, (int)shift) - 1) / 2;
}

double histogram_percentile(const struct histogram *h, double p)
{
	uint64_t rank = (uint64_t)ceil(p / 100 * (double)h->count);
	uint64_t seen = 0;

	if (!h->count)
		return 0;
	if (rank < 1)
		rank = 1;
	for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
		seen += h->buckets[i];
		if (seen >= rank)
			return fmin(fmax(middle(i), (double)h->min), (double)h->max);
	}
	return (double)h->max;
}

double histogram_mean(const struct histogram *h)
{
	return h->count ? (double)h->sum / (double)h->count : 0;
}
