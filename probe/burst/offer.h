/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RINGTAP_PROBE_BURST_OFFER_H
#define RINGTAP_PROBE_BURST_OFFER_H

#include <stdbool.h>
#include <stdint.h>

struct rt_hook;
struct rte_mbuf;

/* The arguments of rte_vhost_enqueue_burst(), or of rte_vhost_submit_enqueue_burst(). */
struct rt_offer {
	int vid;
	uint16_t queue, n;
	struct rte_mbuf **pkts;
	bool submits;
	uintptr_t dma[2]; /* as in struct rt_vhost_calls */
};

/* Calls the library's function in the hook, for the packets that the function accepts: what it
 * refuses stays the application's, and counts when it is accepted. Returns their number. Packets
 * for submit are read before, as accepted ones are the library's. */
uint16_t rt_hook_offer(struct rt_hook *h, const struct rt_offer *o);

#endif
