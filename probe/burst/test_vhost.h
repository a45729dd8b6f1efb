/* SPDX-License-Identifier: BSD-3-Clause */
/* An application that polls vhost devices itself: a library, whose calls pass the loader's slots.
 * The functions that it calls are those of the test. */
#ifndef RINGTAP_PROBE_BURST_TEST_VHOST_H
#define RINGTAP_PROBE_BURST_TEST_VHOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TEST_EXPORT __attribute__((visibility("default")))

struct rte_mbuf;
struct rte_mempool;
struct rt_insn;
struct rt_msg_open;
struct rt_ring;
struct rt_session;

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

/* The behaviour of the library's functions. */
struct test_library {
	const char *path[8]; /* by device; NULL: none */
	uint16_t rings;
	uint16_t most; /* that it accepts, or has */
	uint32_t hold; /* enqueue waits; atomic */
	uint32_t held;
	void (*meanwhile)(void); /* happens during dequeue */
	bool ticks;              /* the clock's line is replaced during enqueue */
	uint64_t tsc;            /* at the last enqueue */
	uint32_t ring_at;        /* how busy the ring was at that time */
	const struct rt_ring *ring;
	void (*leaves)(void); /* submit does not return */
};
extern struct test_library lib;

extern const struct test_switch *app;
int test_load_app(void);

/* Around each test. */
int test_watch(void **state);
int test_unwatch(void **state);

#define BURST 8
#define TO    0 /* virtqueues of a pair */
#define FROM  1

/* Receives a burst, and frees it. */
uint16_t test_vhost_poll(int vid, uint16_t queue);
/* All ports, up to 64 bytes of each packet. */
struct rt_session *test_vhost_capture(const struct rt_msg_open *open, const struct rt_insn *insns);

#define TEST_DMA   (-2)
#define TEST_VCHAN 0xfedc

#endif
