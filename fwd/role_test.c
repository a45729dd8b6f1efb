/* SPDX-License-Identifier: BSD-3-Clause */
/* Forwarders and sinks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "test_plane.h"
#include "common/clock.h"

/* As role_read(): tx_packets of forwarders lacks rx_packets. */
static uint64_t sent_packets(void)
{
	return r.counters[0].rx_packets + r.counters[0].tx_packets;
}

static void forwards(void)
{
	r.kind = ROLE_ONEWAY;
	assert_int_equal(forward_init(&r), 0);
}

static void frames_are_not_changed(void **state)
{
	(void)state;
	forwards();
	receives(0, 11, 0);
	r.poll(&r);
	r.poll(&r);
	r.poll(&r);
	assert_int_equal(out_end, 11);
	for (unsigned i = 0; i < 11; i++) {
		assert_memory_equal(sent_frame(i), "dstMACsrcMAC", 12);
		assert_int_equal(sent_frame(i)[20], i + 1);
		assert_int_equal(sent_number(i), i);
	}
	assert_int_equal(r.counters[0].rx_packets, 11);
	assert_int_equal(sent_packets(), 11);
	assert_int_equal(r.counters[0].rx_nonzero, 2);
	assert_int_equal(r.counters[0].rx_empty, 1);
	assert_int_equal(rx_bursts(&r.counters[0]), 3);
}

static void addresses_are_swapped(void **state)
{
	(void)state;
	config.mac_swap = true;
	config.burst = r.burst = 32;
	forwards();
	receives(0, 20, 0);
	r.poll(&r);
	assert_int_equal(out_end, 20);
	for (unsigned i = 0; i < out_end; i++) {
		assert_memory_equal(sent_frame(i), "srcMACdstMAC", 12);
		assert_int_equal(sent_frame(i)[20], i + 1);
	}
}

static void work_takes_its_time_for_each_packet(void **state)
{
	uint64_t before;

	(void)state;
	config.work_ns = 100000;
	run.hz = 1000000000;
	config.burst = r.burst = 32;
	forwards();
	receives(0, 20, 0);
	before = rt_tsc();
	r.poll(&r);
	assert_true(rt_tsc() - before >= 20 * 100000);
	assert_int_equal(sent_packets(), 20);
}

static void packets_that_the_port_refuses_are_dropped(void **state)
{
	(void)state;
	forwards();
	receives(0, 12, 0);
	accepts = 3;
	r.poll(&r);
	assert_int_equal(r.counters[0].tx_dropped, 5);
	assert_int_equal(sent_packets(), 3);
	assert_int_equal(free_count(), POOL - 12 + 5);
	r.poll(&r);
	assert_int_equal(r.counters[0].tx_dropped, 9);
	assert_int_equal(r.counters[0].tx_retried, 0);
	assert_int_equal(r.held_end - r.held_first, 0);
	assert_int_equal(tx_calls, 2);
}

static void retry_never_drops(void **state)
{
	(void)state;
	config.tx_full.retry = true;
	forwards();
	receives(0, 10, 0);
	accepts = 3;
	r.poll(&r);
	assert_int_equal(rx_calls, 1);
	for (int i = 0; i < 5; i++)
		r.poll(&r); /* it does not receive as long as it holds packets */
	assert_int_equal(rx_calls, 1);
	assert_int_equal(r.counters[0].tx_retried, 5);
	accepts = 1;
	r.poll(&r);
	assert_int_equal(sent_packets(), 4);
	accepts = POOL;
	r.poll(&r); /* also receives: all is sent */
	assert_int_equal(rx_calls, 2);
	assert_int_equal(sent_packets(), 10);
	assert_int_equal(r.counters[0].tx_dropped, 0);
	for (unsigned i = 0; i < 10; i++)
		assert_int_equal(sent_number(i), i);
}

static void retry_n_times(void **state)
{
	(void)state;
	config.tx_full.retry = true;
	config.tx_full.tries = 3;
	forwards();
	receives(0, 16, 0);
	accepts = 2;
	r.poll(&r);
	r.poll(&r);
	r.poll(&r);
	assert_int_equal(r.counters[0].tx_dropped, 0);
	r.poll(&r); /* the third try drops, and the next packets are received */
	assert_int_equal(r.counters[0].tx_dropped, 6);
	assert_int_equal(r.counters[0].tx_retried, 3);
	assert_int_equal(rx_calls, 2);
	assert_int_equal(r.held_end - r.held_first, 8);
	assert_int_equal(r.held_tries, 0);
}

static void held_packets_are_counted_at_the_end(void **state)
{
	(void)state;
	config.tx_full.retry = true;
	forwards();
	receives(0, 8, 0);
	accepts = 5;
	r.poll(&r);
	role_stop(&r);
	assert_int_equal(r.counters[0].tx_unsent, 3);
	assert_int_equal(sent_packets(), 5);
	assert_int_equal(free_count(), POOL - 5);
	role_stop(&r);
	assert_int_equal(r.counters[0].tx_unsent, 3);
}

static void packets_that_a_ring_has_not_sent_at_the_end(void **state)
{
	(void)state;
	r.plane = PLANE_MMAP;
	forwards();
	receives(0, 8, 0);
	r.poll(&r);
	role_stop(&r);
	assert_int_equal(r.counters[0].tx_unsent, 2);
	assert_int_equal(sent_packets(), 6);
}

static void packets_that_the_kernel_rejects_are_errors(void **state)
{
	(void)state;
	forwards();
	receives(0, 8, 0);
	rejects = 3;
	r.poll(&r);
	assert_int_equal(r.counters[0].tx_errors, 3);
	assert_int_equal(sent_packets(), 5);
	assert_int_equal(r.counters[0].tx_dropped, 0);
	assert_int_equal(to.errors, 0);
}

static void one_burst_in_n_is_measured(void **state)
{
	const uint64_t start = rt_tsc();
	uint64_t all;

	(void)state;
	config.latency = 3;
	forwards();
	receives(0, 7 * 8, 0);
	for (int i = 0; i < 7; i++)
		r.poll(&r);
	assert_int_equal(r.latency->rx_to_tx.count, 2 * 8);
	assert_int_equal(r.latency->per_packet.count, 2 * 8);
	receives(56, 8, 0);
	r.latency->until = 1;
	accepts = 2;
	r.poll(&r); /* what is refused is not measured from receiving to sending */
	assert_int_equal(r.latency->rx_to_tx.count, 18);
	assert_int_equal(r.latency->per_packet.count, 24);
	all = rt_tsc() - start;
	assert_in_range(r.latency->rx_to_tx.max, r.latency->rx_to_tx.min, all);
	/* A counter may tick more rarely than the TSC: two readings may be equal. */
	assert_in_range(r.latency->overhead, 0, all);
	assert_in_range(r.latency->per_packet.max, 0, all);
}

static void first_packets(void **state)
{
	(void)state;
	config.tx_first = 20;
	forwards();
	assert_int_equal(forward_prime(&r), 0);
	assert_int_equal(out_end, 20);
	for (unsigned i = 0; i < out_end; i++)
		assert_int_equal(outgoing[i]->data_len, FRAME_MIN);
	assert_int_equal(tx_calls, 3);
	assert_int_equal(sent_packets(), 20);
	accepts = 4;
	assert_true(forward_prime(&r) < 0);
}

static void receives_only(void)
{
	r.kind = ROLE_SINK;
	r.to = NULL;
	assert_int_equal(sink_init(&r), 0);
}

static void streams_are_counted_separately(void **state)
{
	(void)state;
	receives_only();
	receives(0, 3, 0);
	receives(0, 1, 241);
	receives(2, 2, 241); /* one is lost */
	receives(0, 1, 0);   /* a duplicate */
	receives(0, 1, 0);
	rte_pktmbuf_mtod(incoming[in_end - 1], uint8_t *)[STAMP_OFFSET] = 0;
	receives(0, 1, 0);
	incoming[in_end - 1]->data_len = FRAME_MIN - 1;
	polls(2);
	assert_int_equal(r.sink->streams[0]->received, 4);
	assert_int_equal(r.sink->streams[0]->duplicated, 1);
	assert_int_equal(r.sink->streams[241]->received, 3);
	assert_int_equal(sequence_lost(r.sink->streams[241]), 1);
	assert_null(r.sink->streams[1]);
	assert_int_equal(r.sink->unstamped, 2);
	assert_int_equal(r.counters[0].rx_ticks, 0);
	polls(1);
	assert_int_equal(r.counters[0].rx_nonzero, 2);
	assert_int_equal(r.counters[0].rx_empty, 1);
	assert_int_equal(free_count(), POOL);
}

static void sink_takes_packets_as_a_wire_does(void **state)
{
	(void)state;
	config.sink_rate = 10;
	receives_only();
	receives(0, 30, 0);
	r.sink->clock.start -= HZ;
	polls(1); /* 11 are due, 8 are a burst */
	assert_int_equal(r.counters[0].rx_packets, 8);
	polls(3);
	assert_int_equal(r.counters[0].rx_packets, 11);
	assert_int_equal(rx_calls, 2);
	assert_true(r.counters[0].rx_ticks > 0);
}

static void idle_time_of_a_wire_is_lost(void **state)
{
	(void)state;
	config.sink_rate = 1000; /* 20 packets in MADE_UP_S */
	receives_only();
	r.sink->clock.start -= HZ;
	polls(2);
	receives(0, 60, 0);
	polls(10);
	assert_in_range(r.counters[0].rx_packets, 20, 21);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(frames_are_not_changed),
		TEST(addresses_are_swapped),
		TEST(work_takes_its_time_for_each_packet),
		TEST(packets_that_the_port_refuses_are_dropped),
		TEST(retry_never_drops),
		TEST(retry_n_times),
		TEST(held_packets_are_counted_at_the_end),
		TEST(packets_that_a_ring_has_not_sent_at_the_end),
		TEST(packets_that_the_kernel_rejects_are_errors),
		TEST(one_burst_in_n_is_measured),
		TEST(first_packets),
		TEST(streams_are_counted_separately),
		TEST(sink_takes_packets_as_a_wire_does),
		TEST(idle_time_of_a_wire_is_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
