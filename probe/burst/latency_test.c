/* SPDX-License-Identifier: BSD-3-Clause */
/* Latencies compared with the operations of this thread, and packets that must not be timed. */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "probe/control/telemetry.h"
#include "test_latency.h"

static void test_every_packet_is_timed(void **state)
{
	struct moment from = take_in(in, BURST), to;
	const struct rt_stat_pair *p;
	uint64_t least, most, width, low;
	uint32_t bucket = 0;

	test_spin(STAY);
	to = hand_over(out, pkts, BURST);
	assert_int_equal(timed(in, out), BURST);
	p = pair(test_port_index(in), out);
	least = to.before - from.after;
	most = to.after - from.before;
	assert_in_range(p->min, least, most);
	assert_int_equal(p->max, p->min); /* received and sent together */
	assert_int_equal(p->sum, p->min * BURST);
	while (!p->bucket[bucket])
		bucket++;
	low = rt_stat_bucket_low(bucket, &width);
	assert_int_equal(p->bucket[bucket], BURST);
	assert_in_range(p->min, low, low + width - 1);
	assert_int_equal(unstamped(out), 0);
	assert_int_equal(shared(out), 0);
	assert_int_equal(unstamped(in), BURST); /* where they were created */
	assert_int_equal(p->generation, test_thread()->generation);
}

/* Mixed bursts: from two ports, of two ages. */
static void test_runs_of_a_burst_are_distinguished(void **state)
{
	struct rte_mbuf *mix[4];
	uint64_t first, second;

	take_in(in, 2);
	mix[0] = pkts[0];
	mix[2] = pkts[1];
	test_spin(STAY);
	take_in(out, 2);
	mix[1] = pkts[0];
	mix[3] = pkts[1];
	test_spin(STAY);
	hand_over(in, mix, 4);
	assert_int_equal(timed(in, in), 2);
	assert_int_equal(timed(out, in), 2);
	first = pair(test_port_index(in), in)->min;
	second = pair(test_port_index(out), in)->min;
	assert_true(second >= STAY && first >= second + STAY);
	assert_int_equal(pair(test_port_index(in), in)->sum, 2 * first);
	assert_int_equal(pair(test_port_index(out), in)->sum, 2 * second);
}

/* Packets of one burst between packets that are not timed, and after a second burst. */
static void test_runs_are_taken_up_again(void **state)
{
	struct rte_mbuf *mix[9];
	uint64_t first, second;

	take_in(in, 5);
	for (unsigned i = 0; i < 5; i++)
		mix[i] = pkts[i];
	rte_mbuf_refcnt_update(mix[1], 1); /* shared */
	test_spin(STAY);
	take_in(in, 3);
	mix[5] = pkts[0];
	mix[6] = mix[3];
	mix[3] = rte_pktmbuf_alloc(test_pool()); /* created */
	mix[7] = pkts[1];
	mix[8] = pkts[2];
	mix[8]->ol_flags = 0; /* inferred */
	mix[8]->port = in;
	test_spin(STAY);
	hand_over(out, mix, 9);
	assert_int_equal(shared(out), 1);
	assert_int_equal(unstamped(out), 1);
	assert_int_equal(timed(in, out), 6);
	assert_int_equal(inferred(in, out), 1);
	first = pair(test_port_index(in), out)->max;
	second = pair(test_port_index(in), out)->min;
	assert_true(second >= STAY && first >= second + STAY);
	assert_int_equal(pair(test_port_index(in), out)->sum, 4 * first + 2 * second);
	assert_int_equal(find(test_port_index(in), out, true)->sum, second);
	rte_mbuf_refcnt_update(mix[1], -1);
}

static void test_created_packets_are_not_timed(void **state)
{
	test_port_send(out, 10);
	assert_int_equal(unstamped(out), 10);
	assert_int_equal(timed(in, out) + timed(out, out), 0);
}

static void test_reused_mbufs_are_created_packets(void **state)
{
	take_in(in, BURST);
	rte_pktmbuf_free_bulk(pkts, BURST);
	test_port_send(out, BURST); /* the same memory, if the pool's cache is last in, first out */
	assert_int_equal(unstamped(out), BURST);
	assert_int_equal(timed(in, out), 0);
}

static void test_clones_are_not_timed(void **state)
{
	struct rte_mbuf *clone;

	take_in(in, 1);
	clone = rte_pktmbuf_clone(pkts[0], test_pool());
	assert_non_null(clone);
	hand_over(out, &clone, 1);
	assert_int_equal(shared(out), 1);
	assert_int_equal(timed(in, out), 0);
	/* The clone on the ring still references the original. */
	hand_over(out, pkts, 1);
	assert_int_equal(shared(out), 2);
	assert_int_equal(timed(in, out), 0);
}

static void test_original_is_timed_after_its_clone_was_freed(void **state)
{
	struct rte_mbuf *clone;

	take_in(in, 1);
	clone = rte_pktmbuf_clone(pkts[0], test_pool());
	rte_pktmbuf_free(clone);
	hand_over(out, pkts, 1);
	assert_int_equal(timed(in, out), 1);
	assert_int_equal(shared(out), 0);
}

static void test_packets_held_twice_are_not_written(void **state)
{
	uint64_t flags;

	take_in(in, 1);
	rte_mbuf_refcnt_update(pkts[0], 1);
	flags = pkts[0]->ol_flags;
	hand_over(out, pkts, 1);
	assert_int_equal(pkts[0]->ol_flags, flags);
	assert_int_equal(shared(out), 1);
	/* Nor when received, still shared. */
	assert_int_equal(test_port_receive(out, pkts, 32), 1);
	assert_int_equal(pkts[0]->ol_flags, flags);
	rte_mbuf_refcnt_update(pkts[0], -1);
	rte_pktmbuf_free(pkts[0]);
	assert_int_equal(timed(in, out), 0);
}

static void test_copies_are_not_timed(void **state)
{
	unsigned copies = 0;

	for (unsigned round = 0; round < 20; round++) {
		struct rte_mbuf *copy[BURST];

		take_in(in, BURST);
		for (unsigned i = 0; i < BURST; i++) {
			copy[i] = rte_pktmbuf_copy(pkts[i], test_pool(), 0, UINT32_MAX);
			assert_non_null(copy[i]);
			assert_true(copy[i]->ol_flags & rt_stat_mode.latency_flag);
		}
		hand_over(out, copy, BURST);
		rte_pktmbuf_free_bulk(pkts, BURST);
		copies += BURST;
		assert_int_equal(test_port_poll(out, 64), BURST);
	}
	assert_int_equal(timed(in, out), 0);
	assert_int_equal(unstamped(out), copies);
}

/* net_ring passes the same mbufs on, with their fields. */
static void test_circulating_packets_are_timed_once_a_turn(void **state)
{
	take_in(in, BURST);
	for (unsigned turn = 1; turn <= 10; turn++) {
		hand_over(out, pkts, BURST);
		assert_int_equal(timed(in, out), BURST);
		assert_int_equal(timed(out, out), (turn - 1) * BURST);
		assert_int_equal(test_port_receive(out, pkts, BURST), BURST);
	}
	rte_pktmbuf_free_bulk(pkts, BURST);
	assert_int_equal(unstamped(out), 0);
}

/* Refused by the driver and offered again: the first offer is timed. */
static void test_packets_offered_again_are_timed_once(void **state)
{
	unsigned sent = 0;

	test_port_send(out, 1000);
	take_in(in, BURST);
	sent = rte_eth_tx_burst(out, 0, pkts, BURST);
	assert_true(sent < BURST); /* the ring takes 1023 */
	assert_int_equal(timed(in, out), BURST);
	assert_int_equal(rte_eth_tx_burst(out, 0, pkts + sent, (uint16_t)(BURST - sent)), 0);
	assert_int_equal(timed(in, out), BURST);
	assert_int_equal(unstamped(out), 1000 + BURST - sent);
	rte_pktmbuf_free_bulk(pkts + sent, BURST - sent);
}

static void test_time_stamps_of_an_earlier_monitoring_do_not_count(void **state)
{
	static struct rt_monitor keep;

	test_monitor(&keep, RT_COLLECT_POLLS, 1);
	take_in(in, BURST);
	test_monitor(&mon, 0, 1);
	test_monitor(&mon, RT_COLLECT_LATENCY, 1);
	hand_over(out, pkts, BURST);
	assert_int_equal(timed(in, out), 0);
	assert_int_equal(unstamped(out), BURST);
}

/* Nor do packets that passed while the collector was off, with the flag still set. */
static void test_flags_of_an_earlier_monitoring_are_replaced(void **state)
{
	static struct rt_monitor keep;
	uint64_t most;

	test_monitor(&keep, RT_COLLECT_POLLS, 1);
	take_in(in, BURST);
	test_monitor(&mon, 0, 1);
	hand_over(out, pkts, BURST);
	test_spin(STAY);
	test_monitor(&mon, RT_COLLECT_LATENCY, 1);
	most = rt_tsc();
	assert_int_equal(test_port_receive(out, pkts, BURST), BURST);
	hand_over(in, pkts, BURST);
	most = rt_tsc() - most;
	assert_int_equal(timed(out, in), BURST);
	assert_in_range(pair(test_port_index(out), in)->max, 0, most);
}

static void test_extremes_are_since_the_collector_is_on(void **state)
{
	static struct rt_monitor keep;
	const struct rt_stat_pair *p;
	uint64_t max;

	test_monitor(&keep, RT_COLLECT_POLLS, 1);
	take_in(in, 1);
	test_spin(STAY);
	hand_over(out, pkts, 1);
	p = pair(test_port_index(in), out);
	max = p->max;
	assert_true(max >= STAY);
	test_monitor(&mon, 0, 1);
	test_monitor(&mon, RT_COLLECT_LATENCY, 1);
	take_in(in, 1);
	test_spin(2 * max);
	hand_over(out, pkts, 1);
	assert_int_equal(p->count, 2); /* the sums continue */
	assert_true(p->min >= 2 * max);
	assert_int_equal(p->min, p->max);
}

/* N counts the packets that the thread receives on any port. */
static void test_one_packet_in_n_is_timed(void **state)
{
	uint64_t received = 0, chosen = 0;

	test_monitor(&mon, RT_COLLECT_LATENCY, 7);
	rt_stat_current->rows[rt_thread_self->index].own.countdown = 7;
	for (unsigned turn = 1; turn <= 50; turn++) {
		take_in(in, BURST);
		for (unsigned i = 0; i < BURST; i++)
			chosen += ++received % 7 == 0;
		hand_over(out, pkts, BURST);
		assert_int_equal(timed(in, out), chosen);
		assert_int_equal(unstamped(out), turn * BURST - chosen);
		received += test_port_poll(out, 64);
	}
}

/* Unsampled packets have a stale flag cleared. */
static void test_sampling_ignores_old_flags(void **state)
{
	take_in(in, BURST);
	for (unsigned i = 0; i < BURST; i++)
		rte_mbuf_refcnt_update(pkts[i], 1);
	hand_over(out, pkts, BURST);
	for (unsigned i = 0; i < BURST; i++)
		rte_mbuf_refcnt_update(pkts[i], -1);
	test_monitor(&mon, RT_COLLECT_LATENCY, 1000000);
	assert_int_equal(test_port_receive(out, pkts, BURST), BURST);
	for (unsigned i = 1; i < BURST; i++)
		assert_false(pkts[i]->ol_flags & rt_stat_mode.latency_flag);
	hand_over(in, pkts, BURST);
	assert_int_equal(timed(in, in), 0);
	assert_int_equal(timed(out, in), 1); /* the first one was sampled */
}

/* The blocks of a class of lengths, 0: of all. */
static uint64_t of_size(uint32_t size)
{
	const struct rt_stats *f = rt_stat_current;
	uint64_t n = 0;

	for (uint32_t i = 0; i < f->header->pair_count; i++)
		if (f->pairs[i].size == size && f->pairs[i].rx_index != UINT16_MAX) {
			assert_int_equal(f->pairs[i].rx_index, test_port_index(in));
			assert_int_equal(f->pairs[i].tx_index, test_port_index(out));
			assert_int_equal(f->pairs[i].tx_queue, 0);
			n += count_of(&f->pairs[i]);
		}
	return n;
}

static void test_lengths_are_distinguished_on_request(void **state)
{
	/* The first and the last length of each class, in a burst. */
	static const uint32_t lengths[] = {
		0, 64, 65, 127, 128, 255, 256, 511, 512, 1023, 1024, 1518, 1519, UINT32_MAX};
	const unsigned n = RTE_DIM(lengths);

	take_in(in, n);
	hand_over(out, pkts, n);
	assert_int_equal(of_size(0), n);
	test_port_poll(out, n);
	test_monitor(&mon, RT_COLLECT_LATENCY | RT_COLLECT_SPLIT, 1);
	take_in(in, n);
	for (unsigned i = 0; i < n; i++)
		pkts[i]->pkt_len = lengths[i];
	hand_over(out, pkts, n);
	assert_int_equal(of_size(0), n);
	for (uint32_t size = 1; size <= RT_STAT_SIZES; size++)
		assert_int_equal(of_size(size), 2);
	test_monitor(&mon, RT_COLLECT_LATENCY, 1);
	test_port_poll(out, n);
	take_in(in, 1);
	hand_over(out, pkts, 1);
	assert_int_equal(of_size(0), n + 1);
}

static void test_pairs_that_find_no_block_are_counted(void **state)
{
	rt_store(&rt_stat_current->header->pair_count, RT_STAT_PAIRS);
	take_in(in, BURST);
	hand_over(out, pkts, BURST);
	test_stats_tick();
	/* Also those that were created. */
	assert_int_equal(rt_stat_current->header->no_pair_packets, 2 * BURST);
	assert_null(pair(test_port_index(in), out));
}

static void test_nothing_is_written_when_it_is_off(void **state)
{
	static struct rt_monitor keep;

	test_monitor(&keep, RT_COLLECT_POLLS, 1);
	test_monitor(&mon, 0, 1);
	take_in(in, BURST);
	for (unsigned i = 0; i < BURST; i++)
		assert_false(pkts[i]->ol_flags & rt_stat_mode.latency_flag);
	rte_pktmbuf_free_bulk(pkts, BURST);
}

/* The sender's counter is behind the receiver's. The collector has been on for so long that no time
 * is before its start. */
static void test_negative_times_are_none(void **state)
{
	uint32_t generation;

	take_in(in, 2);
	rt_store(&rt_stat_mode.latency_on_tsc, rt_tsc() - (1ull << 43));
	generation = rt_stat_mode.latency_generation;
	*test_field(pkts[0]) = rt_stamp(generation, test_port_index(in), rt_tsc() + (1ull << 40)) +
			       rt_stamp_place(pkts[0]);
	hand_over(out, pkts, 2);
	assert_int_equal(unstamped(out), 1);
	assert_int_equal(timed(in, out), 1);
	assert_in_range(pair(test_port_index(in), out)->max, 0, 1ull << 40);
}

static bool forwarding_ends;

static void forward(uint16_t from, uint16_t to)
{
	struct rte_mbuf *m[BURST];
	uint16_t n = rte_eth_rx_burst(from, 0, m, BURST);
	uint16_t sent = rte_eth_tx_burst(to, 0, m, n);

	rte_pktmbuf_free_bulk(m + sent, n - sent);
}

/* Packets that go round through both ports, while another CPU attaches the monitor. */
static void *forward_both_ways(void *arg)
{
	test_any_cpu();
	while (!rt_load_acquire(&forwarding_ends)) {
		forward(in, out);
		forward(out, in);
	}
	return NULL;
}

/* While the other thread counts. */
static uint64_t timed_now(uint16_t rx_port, uint16_t tx_port)
{
	const struct rt_stat_pair *p = pair(test_port_index(rx_port), tx_port);

	return p ? rt_load(&p->count) : 0;
}

/* net_ring hands on the mbuf as it is: what is received at a port with a hook, and passes the other
 * one before this has its hooks, would be timed from the first port to itself. */
static void test_no_packet_is_timed_before_all_hooks_are_in(void **state)
{
	uint64_t wrong = 0;
	pthread_t thread;

	test_monitor_end(&mon);
	test_port_send(in, 8);
	rt_store(&forwarding_ends, false);
	assert_int_equal(pthread_create(&thread, NULL, forward_both_ways, NULL), 0);
	for (int i = 0; i < 100; i++) {
		test_monitor(&mon, RT_COLLECT_LATENCY, 1);
		while (!timed_now(in, out) || !timed_now(out, in))
			sched_yield();
		wrong += timed_now(in, in) + timed_now(out, out);
		test_monitor_end(&mon);
	}
	rt_store_release(&forwarding_ends, true);
	pthread_join(thread, NULL);
	assert_int_equal(wrong, 0);
}

/* The same for a port that is added later: the packet passes it both ways, as in a ring. */
static void test_no_packet_is_timed_across_a_port_before_its_hooks_are_in(void **state)
{
	uint64_t before = timed_now(in, in);
	struct rte_mbuf *m;
	uint16_t late;

	test_port_send(in, 1);
	assert_int_equal(rte_eth_rx_burst(in, 0, &m, 1), 1);
	late = test_port_make("net_ring_late");
	assert_int_equal(rte_eth_tx_burst(late, 0, &m, 1), 1);
	assert_int_equal(rte_eth_rx_burst(late, 0, &m, 1), 1);
	test_stats_tick();
	assert_int_equal(rte_eth_tx_burst(in, 0, &m, 1), 1);
	assert_int_equal(timed_now(in, in), before);
	test_port_forward(in); /* what is received from now on is timed */
	assert_int_equal(timed_now(in, in), before + 1);
	test_port_remove(late);
	test_stats_tick();
}

#define MORE 8
static uint16_t more[MORE];

/* Further ports between the two, so that hooking takes longer. */
static int make_ports_apart(void **state)
{
	char name[16];

	in = test_port_make("net_ring_0");
	for (int i = 0; i < MORE; i++) {
		snprintf(name, sizeof(name), "net_ring_%d", i + 2);
		more[i] = test_port_make(name);
	}
	out = test_port_make("net_ring_1");
	test_monitor(&mon, RT_COLLECT_LATENCY, 1);
	return 0;
}

static int remove_ports_apart(void **state)
{
	remove_ports(state);
	for (int i = 0; i < MORE; i++)
		test_port_remove(more[i]);
	return 0;
}

static void test_buckets(void **state)
{
	uint32_t last = 0;
	uint64_t width;

	for (uint64_t v = 0; v < 1ull << RT_STAT_LAT_MAX; v += v / 1000 + 1) {
		uint32_t b = rt_stat_bucket(v);
		uint64_t low = rt_stat_bucket_low(b, &width);

		assert_in_range(b, last, RT_STAT_BUCKETS - 1);
		assert_in_range(v, low, low + width - 1);
		assert_true(width == 1 || width * 64 <= low);
		last = b;
	}
	assert_int_equal(rt_stat_bucket(UINT64_MAX), RT_STAT_BUCKETS - 1);
}

static void test_quantiles(void **state)
{
	static uint64_t bucket[RT_STAT_BUCKETS];

	assert_int_equal(rt_telemetry_quantile(bucket, 0, 5000), 0);
	for (uint64_t v = 1; v <= 50; v++) /* below 64 buckets are exact */
		bucket[rt_stat_bucket(v)] = 2;
	assert_int_equal(rt_telemetry_quantile(bucket, 100, 0), 1);
	assert_int_equal(rt_telemetry_quantile(bucket, 100, 5000), 25);
	assert_int_equal(rt_telemetry_quantile(bucket, 100, 5001), 26);
	assert_int_equal(rt_telemetry_quantile(bucket, 100, 9800), 49);
	assert_int_equal(rt_telemetry_quantile(bucket, 100, 9990), 50);
	assert_int_equal(rt_telemetry_quantile(bucket, 100, 10000), 50);
	bucket[rt_stat_bucket(1000000)] = UINT32_MAX;
	assert_in_range(rt_telemetry_quantile(bucket, 100ull + UINT32_MAX, 5000), 992188, 1007812);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_ports(test_every_packet_is_timed),
		with_ports(test_runs_of_a_burst_are_distinguished),
		with_ports(test_runs_are_taken_up_again),
		with_ports(test_created_packets_are_not_timed),
		with_ports(test_reused_mbufs_are_created_packets),
		with_ports(test_clones_are_not_timed),
		with_ports(test_original_is_timed_after_its_clone_was_freed),
		with_ports(test_packets_held_twice_are_not_written),
		with_ports(test_copies_are_not_timed),
		with_ports(test_circulating_packets_are_timed_once_a_turn),
		with_ports(test_packets_offered_again_are_timed_once),
		with_ports(test_time_stamps_of_an_earlier_monitoring_do_not_count),
		with_ports(test_flags_of_an_earlier_monitoring_are_replaced),
		with_ports(test_extremes_are_since_the_collector_is_on),
		with_ports(test_one_packet_in_n_is_timed),
		with_ports(test_sampling_ignores_old_flags),
		with_ports(test_lengths_are_distinguished_on_request),
		with_ports(test_pairs_that_find_no_block_are_counted),
		with_ports(test_nothing_is_written_when_it_is_off),
		with_ports(test_negative_times_are_none),
		with_ports(test_no_packet_is_timed_across_a_port_before_its_hooks_are_in),
		cmocka_unit_test_setup_teardown(test_no_packet_is_timed_before_all_hooks_are_in,
			make_ports_apart, remove_ports_apart),
		cmocka_unit_test(test_buckets),
		cmocka_unit_test(test_quantiles),
	};

	test_stats_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
