/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include <rte_ether.h>

#include "common/clock.h"
#include "role.h"
#include "base/util.h"

/* Retries refused packets. Returns whether none is held any more. */
static bool try_again(struct role *r, struct counters *c)
{
	const struct tx_full *policy = &r->config->tx_full;
	struct rte_mbuf **m = r->held + r->held_first;
	uint16_t n = r->held_end - r->held_first;
	uint16_t sent = link_tx(r->plane, r->to, m, n);

	trace_tx(r->to, n, sent);
	count_add(c->tx_retried, 1);
	count_add(c->tx_packets, sent);
	count_errors(c, r->plane, r->to);
	r->held_first += sent;
	if (sent == n)
		return true;
	trace_refused(r->to, n - sent);
	if (!policy->tries || ++r->held_tries < policy->tries)
		return false;
	link_free(r->plane, m + sent, n - sent);
	count_add(c->tx_dropped, n - sent);
	trace_drop(r->to, n - sent, FWD_DROP_TX_FULL);
	r->held_first = r->held_end;
	return true;
}

/* Holds or drops packets that the port did not accept. A role that holds packets does not receive
 * and does not wait: other roles of the same thread may have to run to make room. */
static void refused(struct role *r, struct counters *c, uint16_t from, uint16_t to)
{
	trace_refused(r->to, to - from);
	count_add(c->tx_packets, (uint64_t)from - to);
	if (r->config->tx_full.retry) {
		r->held_first = from;
		r->held_end = to;
		r->held_tries = 0;
		return;
	}
	link_free(r->plane, r->held + from, to - from);
	count_add(c->tx_dropped, to - from);
	trace_drop(r->to, to - from, FWD_DROP_TX_FULL);
}

static void swap_macs(struct rte_mbuf **m, uint16_t n)
{
	for (uint16_t i = 0; i < n && i < 8; i++)
		rte_prefetch0(rte_pktmbuf_mtod(m[i], void *));
	for (uint16_t i = 0; i < n; i++) {
		struct rte_ether_hdr *h = rte_pktmbuf_mtod(m[i], struct rte_ether_hdr *);
		struct rte_ether_addr source = h->src_addr;

		if (i + 8 < n)
			rte_prefetch0(rte_pktmbuf_mtod(m[i + 8], void *));
		h->src_addr = h->dst_addr;
		h->dst_addr = source;
	}
}

/* Reads the TSC after all preceding instructions have completed. */
static uint64_t tsc_in_order(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_lfence();
#elif defined(__aarch64__)
	__asm__ __volatile__("isb" ::: "memory");
#endif
	return rt_tsc();
}

/* The minimum overhead of a measurement. */
static uint64_t empty_measurement(void)
{
	uint64_t least = UINT64_MAX;

	for (int i = 0; i < 1000; i++) {
		uint64_t before = tsc_in_order(), took = tsc_in_order() - before;

		least = took < least ? took : least;
	}
	return least;
}

static void work(uint64_t ns)
{
	for (uint64_t end = rt_tsc() + run_ticks(ns); rt_tsc() < end;)
		;
}

static bool measured(struct latency *l)
{
	if (!l || --l->until)
		return false;
	l->until = l->every;
	return true;
}

static void measure(struct latency *l, uint64_t begin, uint64_t got, uint16_t n, uint16_t sent)
{
	uint64_t now = tsc_in_order();

	/* Held packets are not measured. */
	if (sent)
		histogram_add(&l->rx_to_tx, now - got, sent);
	histogram_add_share(&l->per_packet, now - begin, n);
}

/* plain: without options that access packets or the TSC. */
static inline __attribute__((always_inline)) void forward(
	struct role *r, const enum plane_id plane, const bool plain)
{
	struct counters *c = role_counters(r);
	uint64_t begin = 0, got = 0;
	bool timed = false;
	uint16_t n, sent;

	if (rt_unlikely(r->held_first != r->held_end) && !try_again(r, c))
		return;
	if (!plain && r->latency)
		begin = tsc_in_order();
	n = link_rx(plane, r->from, r->held, r->burst);
	trace_rx(r->from, r->burst, n);
	if (!n) {
		count_add(c->rx_empty, 1);
		link_kick(plane, r->to);
		return;
	}
	if (!plain) {
		timed = measured(r->latency);
		got = timed ? tsc_in_order() : 0;
		if (r->samples)
			samples_take(r->samples, r->held, n, rt_load(&run.stage));
		if (r->config->mac_swap)
			swap_macs(r->held, n);
		if (r->config->work_ns)
			work(n * r->config->work_ns);
	}
	sent = link_tx(plane, r->to, r->held, n);
	if (!plain && timed)
		measure(r->latency, begin, got, n, sent);
	trace_tx(r->to, n, sent);
	count_add(c->rx_nonzero, 1);
	count_add(c->rx_packets, n);
	count_errors(c, plane, r->to);
	if (rt_unlikely(sent < n))
		refused(r, c, sent, n);
}

static void forward_dpdk_plain(struct role *r)
{
	forward(r, PLANE_DPDK, true);
}

static void forward_dpdk(struct role *r)
{
	forward(r, PLANE_DPDK, false);
}

static void forward_packet(struct role *r)
{
	forward(r, PLANE_PACKET, false);
}

static void forward_mmap(struct role *r)
{
	forward(r, PLANE_MMAP, false);
}

int forward_prime(struct role *r)
{
	uint64_t left = r->config->tx_first;
	struct counters *c = role_counters(r);
	struct frames frames;
	int ret = frames_make(&frames, r->config, r->to->mac);

	while (left && !ret) {
		uint16_t n = (uint16_t)(left < r->burst ? left : r->burst), sent;

		if (!link_alloc(r->plane, r->to, r->held, n)) {
			message_print("--tx-first: not enough buffers; give a larger --pool-size");
			ret = -ENOMEM;
			break;
		}
		for (uint16_t i = 0; i < n; i++)
			frame_fill(r->held[i], &frames, i % frames.count);
		sent = link_tx(r->plane, r->to, r->held, n);
		trace_tx(r->to, n, sent);
		link_free(r->plane, r->held + sent, n - sent);
		if (sent < n) {
			trace_refused(r->to, n - sent);
			trace_drop(r->to, n - sent, FWD_DROP_TX_FULL);
		}
		count_add(c->tx_packets, sent);
		count_errors(c, r->plane, r->to);
		left -= n;
		if (sent < n) {
			message_print("--tx-first: port %s accepted only %" PRIu64
				      " packets; give a smaller "
				      "number",
				r->to->name, c->tx_packets);
			ret = -ENOBUFS;
		}
	}
	frames_free(&frames);
	return ret;
}

int forward_init(struct role *r)
{
	const struct fwd_config *c = r->config;

	if (c->latency) {
		r->latency = calloc(1, sizeof(*r->latency));
		if (!r->latency)
			return message_fail(-ENOMEM, "--latency-sample: not enough memory");
		r->latency->every = r->latency->until = c->latency;
		r->latency->overhead = empty_measurement();
	}
	if (r->plane == PLANE_PACKET)
		r->poll = forward_packet;
	else if (r->plane == PLANE_MMAP)
		r->poll = forward_mmap;
	else
		r->poll = c->mac_swap || c->work_ns || r->latency || r->samples
				  ? forward_dpdk
				  : forward_dpdk_plain;
	return 0;
}
