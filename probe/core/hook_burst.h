/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RINGTAP_PROBE_CORE_HOOK_BURST_H
#define RINGTAP_PROBE_CORE_HOOK_BURST_H

#include <rte_mbuf.h>

#include "probe/capture/clock_latch.h"
#include "hook.h"

extern struct rt_clock_latch rt_hook_clock;

/* rte_rx_callback_fn and rte_tx_callback_fn; the last argument is the struct rt_hook. */
uint16_t rt_hook_rx(uint16_t port, uint16_t queue, struct rte_mbuf **pkts, uint16_t n, uint16_t max,
	void *hook);
uint16_t rt_hook_tx(uint16_t port, uint16_t queue, struct rte_mbuf **pkts, uint16_t n, void *hook);

#endif
