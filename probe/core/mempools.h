/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The application's mempools, which it may create and free meanwhile. rte_mempool_walk() keeps out
 * creators only, rte_mempool_free() takes another lock; so both are held, in the order in which a
 * creator takes them. A pool that has been found cannot be freed until they are released; the
 * thread that frees it spins for the few microseconds that this takes.
 */
#ifndef RINGTAP_PROBE_CORE_MEMPOOLS_H
#define RINGTAP_PROBE_CORE_MEMPOOLS_H

#include <rte_mbuf.h>
#include <rte_mempool.h>

/* Calls f for each pool that has been filled, under DPDK's locks: f must be short. False: not
 * called, as DPDK ends and may have unmapped the list. Control thread. */
bool rt_mempools_each(void (*f)(struct rte_mempool *mp, void *arg), void *arg);

/* The first object, if the pool is one of packet buffers. Within rt_mempools_each(). */
const struct rte_mbuf *rt_mempool_first_mbuf(const struct rte_mempool *mp);

#endif
