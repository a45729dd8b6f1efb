/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Entries of mbufs in the table of fates: open addressing, linear probing. Readers may write to the
 * table, so what a look costs must not depend on what is in it: a burst has a number of probes to
 * spend, and finds nothing beyond.
 */
#ifndef RINGTAP_PROBE_CAPTURE_FATE_TABLE_H
#define RINGTAP_PROBE_CAPTURE_FATE_TABLE_H

#include "common/atomics.h"
#include "fate.h"

/* Entries that are looked at for an mbuf: in a table that is half full at most, and in one that is
 * too small, where each costs a cache miss. */
#define RT_FATE_PROBES        64u
#define RT_FATE_PROBES_SCARCE 8u

/* Probes beyond the first ones that a burst has, and what each look adds. */
#define RT_FATE_SPARE      64u
#define RT_FATE_SPARE_EACH RT_FATE_PROBES_SCARCE

/* The place of the first probe. Addresses of mbufs are equidistant: one multiplication keeps them
 * so, and some distances fill few regions of the table. */
static inline uint64_t rt_fate_hash(uint64_t mbuf, uint32_t shift)
{
	uint64_t k = (mbuf >> 6) * 0xff51afd7ed558ccdull;

	k ^= k >> 32;
	return k * 0x9e3779b97f4a7c15ull >> shift;
}

static inline uint64_t rt_fate_place(const struct rt_fates *f, uint64_t mbuf)
{
	return rt_fate_hash(mbuf, f->shift);
}

static inline struct rt_seg_fate *rt_fate_at(const struct rt_fates *f, uint64_t i)
{
	return (void *)(f->table + i * f->stride);
}

/* Entry of an mbuf whose first place is not its own. Probes are taken from *spare. NULL: it has no
 * entry, and none was claimed or there is no room for one. */
struct rt_seg_fate *rt_fate_search(
	struct rt_fates *f, const void *mbuf, bool claim, uint32_t *spare);

/* The table's constants, for a copy in registers. */
struct rt_fate_map {
	uint8_t *table;
	uint64_t mask;
	uint32_t shift, stride;
};

static inline struct rt_fate_map rt_fate_map(const struct rt_fates *f)
{
	return (struct rt_fate_map){f->table, f->mask, f->shift, f->stride};
}

/* The first place of an mbuf, and requests its line. */
static inline uint32_t rt_fate_request(const struct rt_fate_map *map, const void *mbuf)
{
	uint32_t i = (uint32_t)rt_fate_hash((uintptr_t)mbuf, map->shift);

	__builtin_prefetch(map->table + (size_t)i * map->stride, 1, 3);
	return i;
}

/* Entries in which rt_fate_near() finds an mbuf. */
#define RT_FATE_NEAR 2u

/* Where an mbuf's entry is from its first place on: exact if it is one of RT_FATE_NEAR, else
 * another entry, or none. Without a branch, as up to a third of the mbufs are not at their first
 * place, and which ones these are cannot be predicted. */
static inline __attribute__((always_inline)) struct rt_seg_fate *rt_fate_near(
	const struct rt_fate_map *map, uint64_t i, const void *mbuf)
{
	const struct rt_seg_fate *e = (const void *)(map->table + i * map->stride);

	for (unsigned n = 1; n < RT_FATE_NEAR; n++) {
		i = (i + (rt_load(&e->mbuf) != (uintptr_t)mbuf)) & map->mask;
		e = (const void *)(map->table + i * map->stride);
	}
	return (struct rt_seg_fate *)(uintptr_t)e;
}

/* The entry of an mbuf. */
static inline struct rt_seg_fate *rt_fate_of(
	struct rt_fates *f, const void *mbuf, bool claim, uint32_t *spare)
{
	struct rt_seg_fate *e = rt_fate_at(f, rt_fate_place(f, (uintptr_t)mbuf));

	if (rt_likely(rt_load(&e->mbuf) == (uintptr_t)mbuf))
		return e;
	return rt_fate_search(f, mbuf, claim, spare);
}

#endif
