/* SPDX-License-Identifier: BSD-3-Clause */
/* An application that polls vhost devices itself: a library, whose calls pass the loader's slots.
 */
#ifndef RINGTAP_PROBE_BURST_TEST_VHOST_H
#define RINGTAP_PROBE_BURST_TEST_VHOST_H

#include <stddef.h>
#include <stdint.h>

#define TEST_EXPORT __attribute__((visibility("default")))

struct rte_mbuf;
struct rte_mempool;

TEST_EXPORT uint16_t rte_vhost_dequeue_burst(
	int vid, uint16_t queue, struct rte_mempool *pool, struct rte_mbuf **pkts, uint16_t n);
TEST_EXPORT uint16_t rte_vhost_enqueue_burst(
	int vid, uint16_t queue, struct rte_mbuf **pkts, uint16_t n);
TEST_EXPORT uint16_t rte_vhost_async_try_dequeue_burst(int vid, uint16_t queue,
	struct rte_mempool *pool, struct rte_mbuf **pkts, uint16_t n, int *flying, int16_t dma,
	uint16_t vchan);
TEST_EXPORT uint16_t rte_vhost_submit_enqueue_burst(
	int vid, uint16_t queue, struct rte_mbuf **pkts, uint16_t n, int16_t dma, uint16_t vchan);
TEST_EXPORT int rte_vhost_get_ifname(int vid, char *buf, size_t len);
TEST_EXPORT uint16_t rte_vhost_get_vring_num(int vid);
TEST_EXPORT int rte_vhost_driver_unregister(const char *path);

/* Its exported functions. */
struct test_switch {
	uint16_t (*dequeue)(int vid, uint16_t queue, struct rte_mempool *pool,
		struct rte_mbuf **pkts, uint16_t n);
	uint16_t (*enqueue)(int vid, uint16_t queue, struct rte_mbuf **pkts, uint16_t n);
	uint16_t (*try_dequeue)(int vid, uint16_t queue, struct rte_mempool *pool,
		struct rte_mbuf **pkts, uint16_t n, int *flying, int16_t dma, uint16_t vchan);
	uint16_t (*submit)(int vid, uint16_t queue, struct rte_mbuf **pkts, uint16_t n, int16_t dma,
		uint16_t vchan);
	int (*name)(int vid, char *buf, size_t len);
	int (*unregister)(const char *path);
};
TEST_EXPORT extern const struct test_switch test_switch;

#endif
