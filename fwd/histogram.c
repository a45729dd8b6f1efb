/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>

#include "histogram.h"

static double middle(uint32_t bucket)
{
	uint64_t width, low = rt_log_bucket_low(bucket, HISTOGRAM_BITS, &width);

	return (double)low + (double)(width - 1) / 2;
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
