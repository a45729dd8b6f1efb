/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A time stamp in the mbuf of a received packet:
 *
 *   63         48 47    42 41                       0
 *   +------------+--------+------------------------+
 *   | generation | port   | TSC, its low 42 bits   |   + place of the mbuf, modulo 2^64
 *   +------------+--------+------------------------+
 *
 * The place is a number made of the mbuf's own address: from the field of a copy, which is another
 * mbuf, another generation results. Packets of one burst have the same stamp when their places are
 * subtracted, and what is valid for the first is valid for the rest.
 */
#ifndef RINGTAP_PROBE_BURST_STAMP_H
#define RINGTAP_PROBE_BURST_STAMP_H

#include <rte_mbuf.h>
#include <rte_mbuf_dyn.h>

#include "common/stats.h"

#define RT_STAMP_TSC_MASK         ((UINT64_C(1) << RT_STAT_LAT_MAX) - 1)
#define RT_STAMP_PORT_SHIFT       RT_STAT_LAT_MAX
#define RT_STAMP_PORT_BITS        6
#define RT_STAMP_PORT_MASK        ((1u << RT_STAMP_PORT_BITS) - 1)
#define RT_STAMP_GENERATION_SHIFT (RT_STAMP_PORT_SHIFT + RT_STAMP_PORT_BITS)

static_assert(RT_STAT_PORTS <= RT_STAMP_PORT_MASK + 1, "the port fits");
static_assert(RT_STAMP_GENERATION_SHIFT == 48, "the places distinguish 16 bits");

/* Cache lines as fractions of the prime 65,141: places of mbufs, which begin at lines, are apart by
 * at least 2^64 / 65141 (modulo 2^64), which is more than 2^48, unless the mbufs lie a multiple of
 * 65,141 lines apart. In one chunk of memory these are 65,141 mbufs. Huge pages below 127 GiB are
 * never that far apart: copies from one pool to another do not collide in lockstep. 2^58 / 65141 is
 * nearly an integer: over 256 TiB the error is less than the 0.6 % by which the distance exceeds
 * 2^48. */
#define RT_STAMP_PRIME  65141u
#define RT_STAMP_FACTOR (((UINT64_C(1) << 58) + RT_STAMP_PRIME / 2) / RT_STAMP_PRIME)

static inline uint64_t rt_stamp_place(const struct rte_mbuf *m)
{
	return (uintptr_t)m * RT_STAMP_FACTOR;
}

/* No generation is 0 (modulo 2^16): without a stamp, a field has only the place. */
static inline uint64_t rt_stamp(uint32_t generation, uint32_t port_index, uint64_t tsc)
{
	return (uint64_t)generation << RT_STAMP_GENERATION_SHIFT |
	       (uint64_t)(port_index & RT_STAMP_PORT_MASK) << RT_STAMP_PORT_SHIFT |
	       (tsc & RT_STAMP_TSC_MASK);
}

static inline uint64_t *rt_stamp_field(struct rte_mbuf *m, int32_t offset)
{
	return RTE_MBUF_DYNFIELD(m, offset, uint64_t *);
}

#endif
