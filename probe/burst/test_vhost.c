/* SPDX-License-Identifier: BSD-3-Clause */
#include "test_vhost.h"

static uint16_t dequeue(
	int vid, uint16_t queue, struct rte_mempool *pool, struct rte_mbuf **pkts, uint16_t n)
{
	return rte_vhost_dequeue_burst(vid, queue, pool, pkts, n);
}

static uint16_t enqueue(int vid, uint16_t queue, struct rte_mbuf **pkts, uint16_t n)
{
	return rte_vhost_enqueue_burst(vid, queue, pkts, n);
}

static uint16_t try_dequeue(int vid, uint16_t queue, struct rte_mempool *pool,
	struct rte_mbuf **pkts, uint16_t n, int *flying, int16_t dma, uint16_t vchan)
{
	return rte_vhost_async_try_dequeue_burst(vid, queue, pool, pkts, n, flying, dma, vchan);
}

static uint16_t submit(
	int vid, uint16_t queue, struct rte_mbuf **pkts, uint16_t n, int16_t dma, uint16_t vchan)
{
	return rte_vhost_submit_enqueue_burst(vid, queue, pkts, n, dma, vchan);
}

static int name(int vid, char *buf, size_t len)
{
	return rte_vhost_get_ifname(vid, buf, len);
}

static int unregister(const char *path)
{
	return rte_vhost_driver_unregister(path);
}

const struct test_switch test_switch = {dequeue, enqueue, try_dequeue, submit, name, unregister};
