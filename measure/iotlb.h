/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A model of an IOTLB: the cache in which an IOMMU keeps translations of pages that devices use.
 * Vendors do not document how theirs are organised. A fully associative one that replaces the least
 * recently used page is a bound that a real one hardly beats.
 */
#ifndef RINGTAP_MEASURE_IOTLB_H
#define RINGTAP_MEASURE_IOTLB_H

#include <stddef.h>
#include <stdint.h>

#define IOTLB_SIZES 9
extern const unsigned iotlb_entries[IOTLB_SIZES]; /* 16, 32, … 4096 */

struct iotlb {
	uint64_t accesses;
	uint64_t pages;               /* distinct ones */
	uint64_t misses[IOTLB_SIZES]; /* misses of a cache that is empty at first */
	/* Lower bound, whatever was used before: accesses once the cache is full, or, where it
	 * never is, to pages that have been used. */
	uint64_t known[IOTLB_SIZES], known_misses[IOTLB_SIZES];
};

/* Runs addresses, in their order, through caches of all sizes at once. Pages are of
 * 2^page_shift bytes. 0 or -ENOMEM. */
int iotlb_model(const uint64_t *address, size_t count, unsigned page_shift, struct iotlb *out);

/* Adds what another run of accesses gave, unrelated to those before. */
void iotlb_add(struct iotlb *sum, const struct iotlb *t);

/* Mean number of distinct pages in runs of each addresses, one after the other; a rest is left
 * out. NAN if there are fewer. */
double iotlb_distinct(const uint64_t *address, size_t count, unsigned page_shift, size_t each);

#endif
