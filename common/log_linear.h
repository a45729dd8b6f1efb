/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Buckets of a log-linear histogram: 2^bits of them in each octave. A value v below 2^bits has
 * bucket v. Else, with e = floor(log2(v)): (e - bits + 1) * 2^bits + ((v >> (e - bits)) - 2^bits).
 * A bucket's middle is off by less than 1/2^(bits + 1) of the value. bits is a constant where these
 * are called on a hot path: nothing is left of it then but a shift and additions.
 */
#ifndef RINGTAP_COMMON_LOG_LINEAR_H
#define RINGTAP_COMMON_LOG_LINEAR_H

#include <stdint.h>

/* Number of buckets for values below 2^max_bits. */
#define RT_LOG_BUCKETS(bits, max_bits) (((max_bits) - (bits) + 1) << (bits))

static inline __attribute__((always_inline)) uint32_t rt_log_bucket(uint64_t v, unsigned bits)
{
	uint32_t e;

	if (v < UINT64_C(1) << bits)
		return (uint32_t)v;
	e = 63 - (uint32_t)__builtin_clzll(v);
	return ((e - bits + 1) << bits) + (uint32_t)((v >> (e - bits)) - (UINT64_C(1) << bits));
}

/* Lowest value of a bucket, and how many values it covers. */
static inline uint64_t rt_log_bucket_low(uint32_t bucket, unsigned bits, uint64_t *width)
{
	uint32_t octave = bucket >> bits, sub = bucket & ((1u << bits) - 1);

	*width = octave ? UINT64_C(1) << (octave - 1) : 1;
	return octave ? ((UINT64_C(1) << bits) + sub) << (octave - 1) : sub;
}

#endif
