/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The application's mempools, which it may create and free meanwhile. rte_mempool_walk() keeps out
 * creators only, rte_mempool_free() takes another lock; so both are held, in the order in which a
 * creator takes them. A pool that has been found cannot be freed until they are released; the
 * thread that frees it spins for the few microseconds that this takes.
 */
#ifndef RINGTAP_PROBE_DPDK_MEMPOOLS_H
#define RINGTAP_PROBE_DPDK_MEMPOOLS_H

#include <rte_mbuf.h>
#include <rte_mempool.h>

/* Calls f for each pool that has been filled, by DPDK or by the application, and whose layout is
 * known, under DPDK's locks: f must be short. False: not called, as DPDK ends and may have unmapped
 * the list. Control thread. */
bool rt_mempools_each(void (*f)(struct rte_mempool *mp, void *arg), void *arg);

/* The caches of threads, whose number and size depend on how the application's DPDK was built. */
struct rt_mempool_caches {
	unsigned count; /* 0: the pool has none */
	uint32_t room;  /* objects in each */
	size_t bytes;
};

/* False, and none: the layout of the pool is not that of any build: nothing of it can be used. */
bool rt_mempool_caches(const struct rte_mempool *mp, struct rt_mempool_caches *c);

static inline const struct rte_mempool_cache *rt_mempool_cache(
	const struct rte_mempool *mp, const struct rt_mempool_caches *c, unsigned lcore)
{
	return RTE_PTR_ADD(mp->local_cache, lcore * c->bytes);
}

/* Whether the application has filled the pool itself: pool_data may be a number. */
bool rt_mempool_is_foreign(const struct rte_mempool *mp);

/* Free objects, those in caches included. UINT32_MAX: unknown, as the pool's ops are not DPDK's or
 * VPP's, and may not be called from any thread at any time. */
uint32_t rt_mempool_available(const struct rte_mempool *mp);

/* The lowest address of its memory, and the end of the last chunk. False: unknown. Within
 * rt_mempools_each(). */
bool rt_mempool_place(const struct rte_mempool *mp, uintptr_t *from, uintptr_t *to);

/* Private data of a pool of packet buffers. rte_mempool_get_priv() would use the sizes of this
 * object. */
const struct rte_pktmbuf_pool_private *rt_mempool_private(const struct rte_mempool *mp);

/* The first object, if the pool is one of packet buffers. Within rt_mempools_each(). */
const struct rte_mbuf *rt_mempool_first_mbuf(const struct rte_mempool *mp);

/* Whether an mbuf of this pool is at an address, which may be any. False for a foreign pool. Within
 * rt_mempools_each(). */
bool rt_mempool_has(const struct rte_mempool *mp, uintptr_t mbuf);

#endif
