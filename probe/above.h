/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The calls that go up, from a room to one above it: docs/architecture.md. Nothing else does. They
 * are functions, not pointers, as the hot path's are the callbacks that ethdev calls.
 */
#ifndef RINGTAP_PROBE_ABOVE_H
#define RINGTAP_PROBE_ABOVE_H

#include <stdint.h>

struct rt_thread;
struct rte_mbuf;
struct rte_mempool;

/* burst/: rte_rx_callback_fn and rte_tx_callback_fn; the last argument is the struct rt_hook. */
uint16_t rt_hook_rx(uint16_t port, uint16_t queue, struct rte_mbuf **pkts, uint16_t n, uint16_t max,
	void *hook);
uint16_t rt_hook_tx(uint16_t port, uint16_t queue, struct rte_mbuf **pkts, uint16_t n, void *hook);

/* burst/: instead of rte_vhost_dequeue_burst() and rte_vhost_enqueue_burst(), and the asynchronous
 * rte_vhost_async_try_dequeue_burst() and rte_vhost_submit_enqueue_burst(). */
uint16_t rt_vhost_dequeue(
	int vid, uint16_t queue, struct rte_mempool *pool, struct rte_mbuf **pkts, uint16_t n);
uint16_t rt_vhost_enqueue(int vid, uint16_t queue, struct rte_mbuf **pkts, uint16_t n);
uint16_t rt_vhost_try_dequeue(int vid, uint16_t queue, struct rte_mempool *pool,
	struct rte_mbuf **pkts, uint16_t n, int *flying, int16_t dma, uint16_t vchan);
uint16_t rt_vhost_submit(int vid, uint16_t queue, struct rte_mbuf **pkts, uint16_t n, uintptr_t dma,
	uintptr_t vchan);

/* burst/: what ringtap_reason() calls while a session has fates; see capture/reason.h. */
void rt_reason_given(struct rte_mbuf *m, const char *reason);

/* burst/: in a thread that ends and still owns t: it must not count any more. */
void rt_stat_thread_ends(struct rt_thread *t);

/* monitor/: call it when a hook has got more to do than counting, or tracers have come or gone. */
void rt_stat_look_again(void);

/* control/: final rt_control_stop(), for the end of DPDK: waits until that time (rt_now_ms()) at
 * most and leaves the rest undone. Does nothing in a child of the process that has the thread. */
void rt_control_end(uint64_t until_ms);
/* control/: EAL has memory, and probes its buses now. */
void rt_probe_buses_begin(void);

#endif
