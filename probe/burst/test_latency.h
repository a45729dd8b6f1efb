/* SPDX-License-Identifier: BSD-3-Clause */
/* Two ports, packets from one to the other, and what was counted of them. For tests of latencies;
 * include it after cmocka.h. */
#ifndef RINGTAP_PROBE_BURST_TEST_LATENCY_H
#define RINGTAP_PROBE_BURST_TEST_LATENCY_H

#include <rte_ethdev.h>

#include "stamp.h"
#include "probe/hook/hook.h"
#include "probe/test_eal.h"
#include "probe/test_ports.h"

#define BURST 32u
#define STAY  200000 /* cycles */

static uint16_t in, out;
static struct rt_monitor mon;

static inline int make_ports(void **state)
{
	in = test_port_make("net_ring_0");
	out = test_port_make("net_ring_1");
	test_monitor(&mon, RT_COLLECT_LATENCY, 1);
	return 0;
}

static inline int remove_ports(void **state)
{
	test_monitors_drop();
	test_port_remove(in);
	test_port_remove(out);
	return 0;
}

static struct rte_mbuf *pkts[1024];

struct moment {
	uint64_t before, after;
};

/* n packets that have been received at a port. */
static inline struct moment take_in(uint16_t port, unsigned n)
{
	struct moment m;

	test_port_send(port, n);
	m.before = rt_tsc();
	assert_int_equal(test_port_receive(port, pkts, 1024), n);
	m.after = rt_tsc();
	return m;
}

static inline struct moment hand_over(uint16_t port, struct rte_mbuf **p, unsigned n)
{
	struct moment m = {.before = rt_tsc()};

	assert_int_equal(rte_eth_tx_burst(port, 0, p, (uint16_t)n), n);
	m.after = rt_tsc();
	return m;
}

/* NULL: there is none. rx RT_STAT_PORTS: the block of packets that were not timed. */
static inline const struct rt_stat_pair *find(uint32_t rx, uint16_t tx_port, bool inferred)
{
	const struct rt_stats *f = rt_stat_current;
	uint32_t n = RTE_MIN(rt_load(&f->header->pair_count), (uint32_t)RT_STAT_PAIRS);

	for (uint32_t i = 0; i < n; i++) {
		/* Pairs with the release in claim_pair(). */
		if (rt_load_acquire(&f->pairs[i].generation) &&
			f->pairs[i].rx_index == (rx == RT_STAT_PORTS ? UINT16_MAX : rx) &&
			f->pairs[i].tx_index == test_port_index(tx_port) &&
			f->pairs[i].inferred == inferred)
			return &f->pairs[i];
	}
	return NULL;
}

static inline const struct rt_stat_pair *pair(uint32_t rx, uint16_t tx_port)
{
	return find(rx, tx_port, false);
}

static inline uint64_t count_of(const struct rt_stat_pair *p)
{
	uint64_t n = 0;

	if (!p)
		return 0;
	for (uint32_t i = 0; i < RT_STAT_BUCKETS; i++)
		n += p->bucket[i];
	assert_int_equal(n, p->count);
	return n;
}

static inline uint64_t timed(uint16_t rx_port, uint16_t tx_port)
{
	return count_of(pair(test_port_index(rx_port), tx_port));
}

static inline uint64_t inferred(uint16_t rx_port, uint16_t tx_port)
{
	return count_of(find(test_port_index(rx_port), tx_port, true));
}

static inline uint64_t unstamped(uint16_t tx_port)
{
	const struct rt_stat_pair *p = pair(RT_STAT_PORTS, tx_port);

	return p ? p->unstamped : 0;
}

static inline uint64_t shared(uint16_t tx_port)
{
	const struct rt_stat_pair *p = pair(RT_STAT_PORTS, tx_port);

	return p ? p->shared : 0;
}

static inline uint64_t *test_field(struct rte_mbuf *m)
{
	return rt_stamp_field(m, rt_stat_mode.latency_field);
}

/* As drivers of NICs set it; net_ring leaves it unchanged. */
static inline void set_port(uint16_t port, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		pkts[i]->port = port;
}

/* As testpmd's mac, macswap, csum, icmpecho and 5tswap do. */
static inline void reset_flags(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		pkts[i]->ol_flags = 0;
}

#define with_ports(f) cmocka_unit_test_setup_teardown(f, make_ports, remove_ports)

#endif
