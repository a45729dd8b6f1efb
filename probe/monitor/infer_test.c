/* SPDX-License-Identifier: BSD-3-Clause */
/* Latencies of packets that have lost their flag: separate from the certain ones, and none of
 * packets that cannot have been received. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "probe/burst/test_latency.h"

static void test_packets_without_their_flag_are_inferred(void **state)
{
	struct moment from = take_in(in, BURST), to;
	const struct rt_stat_pair *p;

	set_port(in, BURST);
	reset_flags(BURST);
	test_spin(STAY);
	to = hand_over(out, pkts, BURST);
	assert_int_equal(timed(in, out), 0);
	assert_int_equal(unstamped(out), 0);
	assert_int_equal(inferred(in, out), BURST);
	p = find(test_port_index(in), out, true);
	assert_in_range(p->min, to.before - from.after, to.after - from.before);
	assert_int_equal(p->sum, p->min * BURST);
	assert_int_equal(p->max, p->min);
}

static void test_certain_and_inferred_ones_do_not_mix(void **state)
{
	take_in(in, BURST);
	set_port(in, BURST);
	reset_flags(BURST / 2);
	for (unsigned i = 0; i < BURST / 4; i++) { /* every other one */
		struct rte_mbuf *m = pkts[i];

		pkts[i] = pkts[BURST - 1 - i];
		pkts[BURST - 1 - i] = m;
	}
	hand_over(out, pkts, BURST);
	assert_int_equal(timed(in, out), BURST / 2);
	assert_int_equal(inferred(in, out), BURST / 2);
	assert_int_equal(unstamped(out) + shared(out), 0);
}

static void test_packets_of_another_port_are_not_inferred(void **state)
{
	take_in(in, BURST);
	set_port(RTE_MBUF_PORT_INVALID, BURST); /* net_ring of DPDK 24.11 sets it */
	reset_flags(BURST);
	hand_over(out, pkts, BURST);
	assert_int_equal(test_port_receive(out, pkts, BURST), BURST);
	set_port(in, BURST);
	reset_flags(BURST);
	hand_over(in, pkts, BURST);
	assert_int_equal(inferred(in, out) + inferred(in, in) + inferred(out, in), 0);
	assert_int_equal(unstamped(out), BURST);
	assert_int_equal(unstamped(in), 2 * BURST); /* also where they were created */
}

/* testpmd's flowgen: it must not yield certain times. Once sent, an mbuf is not a candidate. */
static void test_raw_mbufs_are_never_certain(void **state)
{
	take_in(in, BURST);
	set_port(in, BURST);
	rte_pktmbuf_free_bulk(pkts, BURST);
	for (unsigned turn = 0; turn < 2; turn++) {
		for (unsigned i = 0; i < BURST; i++) {
			pkts[i] = rte_mbuf_raw_alloc(test_pool());
			assert_non_null(pkts[i]);
			pkts[i]->pkt_len = pkts[i]->data_len = 60;
		}
		reset_flags(BURST);
		hand_over(out, pkts, BURST);
		test_port_poll(out, BURST); /* frees them */
	}
	assert_int_equal(timed(in, out), 0);
	assert_in_range(inferred(in, out), 0, BURST);
	assert_int_equal(inferred(in, out) + inferred(out, out) + unstamped(out), 2 * BURST);
}

static void test_time_stamps_are_used_once(void **state)
{
	unsigned sent;

	test_port_send(out, 1000);
	take_in(in, BURST);
	set_port(in, BURST);
	sent = rte_eth_tx_burst(out, 0, pkts, BURST);
	assert_true(sent < BURST); /* the ring takes 1023 */
	assert_int_equal(timed(in, out), BURST);
	assert_int_equal(rte_eth_tx_burst(out, 0, pkts + sent, (uint16_t)(BURST - sent)), 0);
	assert_int_equal(timed(in, out) + inferred(in, out), BURST);
	assert_int_equal(unstamped(out), 1000 + BURST - sent);
	rte_pktmbuf_free_bulk(pkts + sent, BURST - sent);
}

/* Samples are inferred only if no flag arrives at all; no time may then be that of an earlier use
 * of the mbuf. */
static void test_samples_are_inferred_if_no_flag_arrives(void **state)
{
	const uint32_t every = 7;
	uint64_t seen = 0, chosen = 0;

	test_monitor(&mon, RT_COLLECT_LATENCY, every);
	test_stats_tick();                           /* no packet was sent */
	for (unsigned turn = 0; turn < 64; turn++) { /* 2,048 packets: 292 chosen */
		take_in(in, BURST);
		set_port(in, BURST);
		reset_flags(BURST);
		hand_over(out, pkts, BURST);
		test_port_poll(out, BURST);
	}
	assert_int_equal(inferred(in, out), 0);
	test_stats_tick();
	assert_int_equal(rt_stat_mode.latency_every, every | RT_STAT_INFER);
	rt_stat_current->rows[rt_thread_self->index].own.countdown = every;
	for (unsigned turn = 0; turn < 50; turn++) {
		bool drop = turn % 2;

		take_in(in, BURST);
		set_port(in, BURST);
		for (unsigned i = 0; i < BURST; i++)
			chosen += ++seen % every == 0 && !drop;
		if (drop) {
			rte_pktmbuf_free_bulk(pkts, BURST);
			continue;
		}
		reset_flags(BURST);
		hand_over(out, pkts, BURST);
		assert_int_equal(inferred(in, out), chosen);
		seen += test_port_poll(out, BURST);
	}
	assert_int_equal(timed(in, out), 0);
}

static void test_samples_with_flags_are_not_inferred(void **state)
{
	test_monitor(&mon, RT_COLLECT_LATENCY, 7);
	for (unsigned turn = 0; turn < 64; turn++) {
		take_in(in, BURST);
		hand_over(out, pkts, BURST);
		test_port_poll(out, BURST);
		test_stats_tick();
	}
	assert_int_equal(rt_stat_mode.latency_every, 7);
}

/* Packets that are not sampled have the time stamps of packets that were dropped before. */
static void test_samples_ignore_earlier_time_stamps(void **state)
{
	test_monitor(&mon, RT_COLLECT_LATENCY, 1);
	take_in(in, BURST);
	test_monitor(&mon, RT_COLLECT_LATENCY, 7);
	test_monitor(&mon, RT_COLLECT_LATENCY, 1);
	set_port(in, BURST);
	reset_flags(BURST);
	hand_over(out, pkts, BURST);
	assert_int_equal(inferred(in, out), 0);
	assert_int_equal(unstamped(out), BURST);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_ports(test_packets_without_their_flag_are_inferred),
		with_ports(test_certain_and_inferred_ones_do_not_mix),
		with_ports(test_packets_of_another_port_are_not_inferred),
		with_ports(test_raw_mbufs_are_never_certain),
		with_ports(test_time_stamps_are_used_once),
		with_ports(test_samples_are_inferred_if_no_flag_arrives),
		with_ports(test_samples_with_flags_are_not_inferred),
		with_ports(test_samples_ignore_earlier_time_stamps),
	};

	test_stats_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
