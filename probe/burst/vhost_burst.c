/* SPDX-License-Identifier: BSD-3-Clause */
/* Called by the application instead of the vhost library's functions: see probe/dpdk/vhost.h. As
 * in hook_burst.c there is no lock, allocation, log or system call. */
#include "offer.h"
#include "probe/above.h"
#include "probe/dpdk/vhost.h"
#include "probe/hook/hook.h"

/* Queue n is the pair of virtqueues 2n, to the guest, and 2n + 1. The library checks that. */
static inline struct rt_hook *hook_of(int vid, uint16_t queue, enum rt_direction dir)
{
	uint16_t port;

	if (rt_unlikely((unsigned)vid >= RT_VHOST_DEVICES || queue >= RT_VHOST_RINGS))
		return NULL;
	/* Pairs with the release in rt_vhost_resolve(). */
	port = rt_load_acquire(&rt_vhost_ids[vid]);
	if (rt_unlikely(!port))
		port = rt_vhost_resolve(vid);
	return rt_likely(port != RT_VHOST_NONE) ? rt_hook_find(port, queue / 2, dir) : NULL;
}

uint16_t rt_vhost_dequeue(
	int vid, uint16_t queue, struct rte_mempool *pool, struct rte_mbuf **pkts, uint16_t n)
{
	uint16_t got = rt_vhost_calls.dequeue(vid, queue, pool, pkts, n);
	struct rt_hook *h = hook_of(vid, queue, RT_DIR_RX);

	return h ? rt_hook_rx(h->port, h->queue, pkts, got, n, h) : got;
}

uint16_t rt_vhost_enqueue(int vid, uint16_t queue, struct rte_mbuf **pkts, uint16_t n)
{
	struct rt_hook *h = hook_of(vid, queue, RT_DIR_TX);

	return h ? rt_hook_offer(h, &(struct rt_offer){vid, queue, n, pkts, false, {0, 0}})
		 : rt_vhost_calls.enqueue(vid, queue, pkts, n);
}

uint16_t rt_vhost_try_dequeue(int vid, uint16_t queue, struct rte_mempool *pool,
	struct rte_mbuf **pkts, uint16_t n, int *flying, int16_t dma, uint16_t vchan)
{
	uint16_t got = rt_vhost_calls.try_dequeue(vid, queue, pool, pkts, n, flying, dma, vchan);
	struct rt_hook *h = hook_of(vid, queue, RT_DIR_RX);

	return h ? rt_hook_rx(h->port, h->queue, pkts, got, n, h) : got;
}

uint16_t rt_vhost_submit(
	int vid, uint16_t queue, struct rte_mbuf **pkts, uint16_t n, uintptr_t dma, uintptr_t vchan)
{
	struct rt_hook *h = hook_of(vid, queue, RT_DIR_TX);

	return h ? rt_hook_offer(h, &(struct rt_offer){vid, queue, n, pkts, true, {dma, vchan}})
		 : rt_vhost_calls.submit(vid, queue, pkts, n, dma, vchan);
}
