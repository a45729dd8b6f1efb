/* SPDX-License-Identifier: BSD-3-Clause */
/* The merge with times that the test sets: rings are refreshed and merged by calls. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "capture.h"
#include "reader/test_peer.h"

#define RINGS   3u
#define NOW     (1700000000ull * 1000000000)
#define SLACK   50000ull /* as in merge.c */
#define HOLD    500000000ull
#define RUN_MAX 64u

static struct test_session session;
static struct test_peer peer;
static struct ringtap_capture *cap;
static struct ringtap_run runs[RUN_MAX];

static int set_up(void **state)
{
	static const struct ringtap_target all = {
		.queue = -1, .directions = RINGTAP_RX | RINGTAP_TX};

	test_session_make(&session, RINGS, TEST_RING);
	peer = (struct test_peer){.session = &session};
	test_peer_start(&peer, true);
	assert_int_equal(ringtap_capture_create(&cap, NULL), 0);
	assert_int_equal(ringtap_capture_attach(cap, peer.dir, &all, 1, NULL), 0);
	return 0;
}

static int tear_down(void **state)
{
	ringtap_capture_close(cap);
	test_peer_stop(&peer);
	test_session_free(&session);
	return 0;
}

/* Refreshes all rings at this time. Returns the watermark. */
static uint64_t refresh_at(uint64_t now)
{
	uint64_t mark = RT_FOREVER;

	for (uint32_t i = 0; i < RINGS; i++) {
		uint64_t m = rt_in_refresh(cap, &cap->ins[i], now, now);

		mark = m < mark ? m : mark;
	}
	return mark;
}

static uint64_t look_at_second(uint64_t now)
{
	return rt_in_refresh(cap, &cap->ins[1], now, now);
}

static unsigned merge(uint64_t watermark)
{
	return rt_merge(cap, watermark, runs, RUN_MAX);
}

/* Checks that no packet of the runs is before its predecessor. Returns their number. */
static uint64_t assert_in_order(unsigned n, uint64_t *last)
{
	uint64_t packets = 0;

	for (unsigned i = 0; i < n; i++) {
		struct ringtap_packets *it;
		const struct ringtap_packet *p;
		uint64_t count = 0;

		assert_int_equal(ringtap_packets_create(&it), 0);
		ringtap_packets_start(it, &runs[i]);
		while ((p = ringtap_packet_next(it))) {
			assert_true(p->ns >= *last);
			*last = p->ns;
			count++;
		}
		assert_int_equal(ringtap_packets_error(it), 0);
		assert_int_equal(count, runs[i].packets);
		assert_int_equal(runs[i].last_ns, *last);
		ringtap_packets_free(it);
		packets += runs[i].packets;
	}
	return packets;
}

static void put(uint32_t ring, uint64_t ns)
{
	test_put(&session, ring, ns, 0, 60);
}

static void publish_all(uint64_t last_ns)
{
	for (uint32_t i = 0; i < RINGS; i++)
		test_publish(&session, i, last_ns);
}

static void test_records_come_in_time_order(void **state)
{
	uint64_t last = 0;

	for (uint64_t i = 0; i < 300; i++)
		put((uint32_t)(i * i % RINGS), NOW + i * 10);
	publish_all(NOW + 3000);
	refresh_at(NOW + 1000000);
	for (uint64_t packets = 0; packets < 300;) {
		unsigned n = merge(RT_FOREVER);

		assert_true(n > 0);
		packets += assert_in_order(n, &last);
	}
	assert_int_equal(merge(RT_FOREVER), 0);
}

static void test_neighbours_make_one_run(void **state)
{
	for (uint64_t i = 0; i < 10; i++)
		put(0, NOW + i);
	put(1, NOW + 100);
	publish_all(NOW + 100);
	refresh_at(NOW + 1000000);
	assert_int_equal(merge(RT_FOREVER), 2);
	assert_int_equal(runs[0].packets, 10);
	assert_int_equal(runs[0].first_ns, NOW);
	assert_int_equal(runs[0].last_ns, NOW + 9);
	assert_int_equal(runs[1].packets, 1);
}

static void test_equal_times_are_neither_lost_nor_late(void **state)
{
	uint64_t last = 0;

	for (uint64_t i = 0; i < 30; i++)
		put((uint32_t)(i % RINGS), NOW);
	publish_all(NOW);
	refresh_at(NOW + 1000000);
	assert_int_equal(assert_in_order(merge(NOW), &last), 30);
	assert_int_equal(cap->reordered, 0);
}

static void test_records_after_the_watermark_are_held(void **state)
{
	put(0, NOW);
	put(0, NOW + 1);
	put(0, NOW + 2);
	publish_all(NOW + 2);
	refresh_at(NOW + 1000000);
	assert_int_equal(merge(NOW + 1), 1);
	assert_int_equal(runs[0].packets, 2);
	assert_int_equal(merge(NOW + 1), 0);
	assert_int_equal(merge(NOW + 2), 1);
}

static void test_number_of_runs_is_bounded(void **state)
{
	for (uint64_t i = 0; i < 9; i++)
		put((uint32_t)(i % RINGS), NOW + i);
	publish_all(NOW + 9);
	refresh_at(NOW + 1000000);
	assert_int_equal(rt_merge(cap, RT_FOREVER, runs, 2), 2);
	assert_int_equal(rt_merge(cap, RT_FOREVER, runs, RUN_MAX), 7);
}

static void test_idle_producer_allows_all_but_a_slack(void **state)
{
	assert_int_equal(refresh_at(NOW), NOW - SLACK);
}

/* The producer has read the TSC after its last publication, and may still publish that time. */
static void test_busy_producer_holds_back_to_its_last_publication(void **state)
{
	put(0, NOW - 2000000);
	test_publish(&session, 0, NOW - 2000000);
	rt_store(&session.rings[0].busy, 1);
	assert_int_equal(refresh_at(NOW), NOW - 2000000);
}

static void test_stuck_producer_holds_back_for_a_bounded_time(void **state)
{
	rt_store(&session.rings[1].busy, 1);
	test_publish(&session, 1, NOW - 1000);
	assert_int_equal(look_at_second(NOW), NOW - 1000);
	assert_int_equal(look_at_second(NOW + HOLD), NOW - 1000);
	assert_int_equal(look_at_second(NOW + HOLD + 1), RT_FOREVER);
	/* The other producers still hold the watermark. */
	assert_int_equal(refresh_at(NOW + HOLD + 1), NOW + HOLD + 1 - SLACK);
}

/* CLOCK_REALTIME is set, or the TSC jumps: CLOCK_MONOTONIC has not advanced. */
static void test_producer_is_not_stuck_because_the_clock_jumps(void **state)
{
	const uint64_t hour = 3600000000000;

	rt_store(&session.rings[1].busy, 1);
	test_publish(&session, 1, NOW - 1000);
	assert_int_equal(look_at_second(NOW), NOW - 1000);
	assert_int_equal(rt_in_refresh(cap, &cap->ins[1], NOW + hour, NOW), NOW - 1000);
	assert_int_equal(rt_in_refresh(cap, &cap->ins[1], NOW - hour, NOW + HOLD), NOW - 1000);
	assert_int_equal(rt_in_refresh(cap, &cap->ins[1], NOW - hour, NOW + HOLD + 1), RT_FOREVER);
}

/* Always busy, as its few packets are older than the burst that brings them. */
static void test_producer_that_publishes_time_alone_is_not_stuck(void **state)
{
	rt_store(&session.rings[1].busy, 1);
	for (uint64_t t = NOW; t < NOW + 4 * HOLD; t += HOLD / 2) {
		test_publish(&session, 1, t);
		assert_int_equal(look_at_second(t + 1000), t);
	}
}

/* Busy at each reading, but publishing. */
static void test_producer_that_moves_is_not_stuck(void **state)
{
	rt_store(&session.rings[1].busy, 1);
	for (uint64_t t = NOW; t < NOW + 4 * HOLD; t += HOLD / 2) {
		put(1, t);
		test_publish(&session, 1, t);
		assert_int_equal(look_at_second(t + 1000), t);
		merge(t);
		ringtap_capture_release(cap);
	}
}

static void test_producer_that_was_idle_holds_the_watermark_again(void **state)
{
	rt_store(&session.rings[1].busy, 1);
	look_at_second(NOW);
	rt_store(&session.rings[1].busy, 0);
	look_at_second(NOW + HOLD);
	rt_store(&session.rings[1].busy, 1);
	test_publish(&session, 1, NOW + HOLD);
	look_at_second(NOW + HOLD + 10);
	assert_int_equal(look_at_second(NOW + HOLD + 20), NOW + HOLD);
}

static void test_late_records_are_returned_and_counted(void **state)
{
	struct ringtap_stats stats = {.size = sizeof(stats)};

	put(0, NOW + 1000);
	publish_all(NOW);
	refresh_at(NOW + 1000000);
	assert_int_equal(merge(RT_FOREVER), 1);
	put(1, NOW);
	put(1, NOW + 1);
	put(1, NOW + 2000);
	publish_all(NOW + 2000);
	refresh_at(NOW + 2000000);
	assert_int_equal(merge(RT_FOREVER), 1);
	assert_int_equal(runs[0].packets, 3);
	ringtap_capture_stats(cap, &stats);
	assert_int_equal(stats.reordered, 2);
	assert_int_equal(stats.delivered, 4);
}

/* NIC time stamps of a ring may decrease: they stay in one run, and the order of other rings
 * holds. */
static void test_time_going_back_within_a_ring_is_counted(void **state)
{
	put(0, NOW + 10);
	put(0, NOW + 5);
	put(0, NOW + 20);
	put(1, NOW + 15);
	publish_all(NOW + 20);
	refresh_at(NOW + 1000000);
	assert_int_equal(merge(RT_FOREVER), 3);
	assert_int_equal(runs[0].packets, 2);
	assert_int_equal(cap->reordered, 1);
}

static void test_rings_wrap_around(void **state)
{
	uint64_t last = 0, t = NOW;

	for (int round = 0; round < 100; round++) {
		uint64_t packets = 0;

		for (int i = 0; i < 400; i++)
			test_put(&session, (uint32_t)i % RINGS, ++t, 0, (uint32_t)(i * 7 % 300));
		publish_all(t);
		refresh_at(t + 1000000);
		while (packets < 400)
			packets += assert_in_order(merge(t), &last);
		ringtap_capture_release(cap);
		for (uint32_t r = 0; r < RINGS; r++)
			assert_int_equal(rt_load(&session.tails[r].tail), session.pos[r]);
	}
	assert_true(session.pos[0] > 4 * TEST_RING);
}

static void test_bytes_of_a_call_are_bounded(void **state)
{
	uint64_t bytes = 0;
	unsigned n;

	while (session.pos[0] < TEST_RING - 1000)
		put(0, NOW);
	publish_all(NOW);
	refresh_at(NOW + 1000000);
	n = merge(RT_FOREVER);
	for (unsigned i = 0; i < n; i++)
		bytes += runs[i].bytes;
	assert_in_range(bytes, 1, TEST_RING / 4 + 200);
}

/* ---- an application that corrupts its rings ---- */

/* Ten valid packets in ring 0, then an invalid one, and three valid ones in ring 1 after those. */
static uint64_t ten_valid_and(uint64_t *bad)
{
	for (uint64_t i = 0; i < 10; i++)
		put(0, NOW + i);
	*bad = test_put(&session, 0, NOW + 10, 0, 60);
	put(0, NOW + 11);
	for (uint64_t i = 0; i < 3; i++)
		put(1, NOW + 20 + i);
	return *bad;
}

/* Valid packets are returned, then the error, which has the position. */
static void assert_valid_then_corrupt(uint64_t good, uint64_t place, const char *reason)
{
	char where[64];
	uint64_t packets = 0, last = 0;
	int n;

	publish_all(NOW + 30);
	while ((n = ringtap_capture_next(cap, runs, RUN_MAX, 1000)) > 0) {
		packets += assert_in_order((unsigned)n, &last);
		ringtap_capture_release(cap);
	}
	assert_int_equal(n, -EBADMSG);
	assert_int_equal(packets, good);
	snprintf(where, sizeof(where),
		"ring 0 of test is corrupt at byte %llu: ", (unsigned long long)place);
	assert_ptr_equal(strstr(ringtap_capture_error(cap), where), ringtap_capture_error(cap));
	assert_non_null(strstr(ringtap_capture_error(cap), reason));
	/* The error is permanent. */
	assert_int_equal(ringtap_capture_next(cap, runs, RUN_MAX, 0), -EBADMSG);
}

static void corrupt_word(size_t offset, uint32_t value, const char *reason)
{
	uint64_t bad;

	ten_valid_and(&bad);
	test_spoil(&session, 0, bad + offset, value);
	assert_valid_then_corrupt(13, bad, reason);
}

static void test_other_block_type_is_corrupt(void **state)
{
	corrupt_word(offsetof(struct rt_epb, type), 5, "not a packet");
}

static void test_length_zero_is_corrupt(void **state)
{
	corrupt_word(offsetof(struct rt_epb, total_len), 0, "impossible length");
}

static void test_length_below_its_header_is_corrupt(void **state)
{
	corrupt_word(offsetof(struct rt_epb, total_len), RT_EPB_MIN - 4, "impossible length");
}

static void test_unaligned_length_is_corrupt(void **state)
{
	corrupt_word(offsetof(struct rt_epb, total_len), 97, "impossible length");
}

static void test_length_beyond_head_is_corrupt(void **state)
{
	corrupt_word(offsetof(struct rt_epb, total_len), 96 * 3, "impossible length");
}

static void test_huge_length_is_corrupt(void **state)
{
	corrupt_word(offsetof(struct rt_epb, total_len), UINT32_MAX - 3, "impossible length");
}

static void test_trailing_length_that_differs_is_corrupt(void **state)
{
	corrupt_word(RT_EPB_HEADER + 60 + 4, 92, "lengths disagree");
}

static void test_captured_beyond_the_record_is_corrupt(void **state)
{
	corrupt_word(offsetof(struct rt_epb, cap_len), 96 - RT_EPB_MIN + 1, "captured length");
}

static void test_captured_beyond_the_original_is_corrupt(void **state)
{
	corrupt_word(offsetof(struct rt_epb, orig_len), 59, "captured length");
}

static void test_interface_that_was_never_announced_is_corrupt(void **state)
{
	corrupt_word(offsetof(struct rt_epb, if_index), 2, "unknown interface");
}

static void test_interface_beyond_its_table_is_corrupt(void **state)
{
	session.h->if_count = UINT32_MAX;
	corrupt_word(offsetof(struct rt_epb, if_index), TEST_IFS, "unknown interface");
}

static void test_half_a_record_before_head_is_corrupt(void **state)
{
	uint64_t bad;

	ten_valid_and(&bad);
	session.pos[0] = bad + 28;
	assert_valid_then_corrupt(13, bad, "not a packet");
}

static void test_other_rings_are_read_after_a_corrupt_first_record(void **state)
{
	test_spoil(&session, 0, 0, 1);
	session.pos[0] = 96;
	put(1, NOW + 100);
	put(2, NOW + 200);
	assert_valid_then_corrupt(2, 0, "not a packet");
}

/* A valid head, then an impossible one: packets up to the valid one are returned. */
static void impossible_head(uint64_t head)
{
	uint64_t last = 0;

	put(0, NOW);
	put(1, NOW + 5);
	publish_all(NOW + 5);
	refresh_at(NOW);
	rt_store(&session.rings[0].head, head);
	refresh_at(NOW);
	assert_int_equal(cap->corrupt, -EBADMSG);
	assert_int_equal(
		assert_in_order((unsigned)ringtap_capture_next(cap, runs, RUN_MAX, 0), &last), 2);
	assert_int_equal(ringtap_capture_next(cap, runs, RUN_MAX, 0), -EBADMSG);
	assert_non_null(strstr(ringtap_capture_error(cap), "impossible head"));
}

static void test_head_that_goes_back_is_corrupt(void **state)
{
	impossible_head(0);
}

static void test_head_more_than_a_ring_ahead_is_corrupt(void **state)
{
	impossible_head(RINGS * TEST_RING + 4);
}

static void test_head_near_overflow_is_corrupt(void **state)
{
	impossible_head(UINT64_MAX - 3);
}

static void test_unaligned_head_is_corrupt(void **state)
{
	impossible_head(98);
}

static void test_later_interface_is_added_with_its_first_packet(void **state)
{
	assert_int_equal(ringtap_capture_interface_count(cap), 2);
	memcpy(session.ifs[2].name, "late0", 6);
	rt_store_release(&session.h->if_count, 3);
	test_put(&session, 0, NOW, 2, 60);
	publish_all(NOW);
	refresh_at(NOW + 1000000);
	assert_int_equal(merge(RT_FOREVER), 1);
	assert_int_equal(ringtap_capture_interface_count(cap), 3);
}

#define with_capture(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_capture(test_records_come_in_time_order),
		with_capture(test_neighbours_make_one_run),
		with_capture(test_equal_times_are_neither_lost_nor_late),
		with_capture(test_records_after_the_watermark_are_held),
		with_capture(test_number_of_runs_is_bounded),
		with_capture(test_idle_producer_allows_all_but_a_slack),
		with_capture(test_busy_producer_holds_back_to_its_last_publication),
		with_capture(test_stuck_producer_holds_back_for_a_bounded_time),
		with_capture(test_producer_is_not_stuck_because_the_clock_jumps),
		with_capture(test_producer_that_publishes_time_alone_is_not_stuck),
		with_capture(test_producer_that_moves_is_not_stuck),
		with_capture(test_producer_that_was_idle_holds_the_watermark_again),
		with_capture(test_late_records_are_returned_and_counted),
		with_capture(test_time_going_back_within_a_ring_is_counted),
		with_capture(test_rings_wrap_around),
		with_capture(test_bytes_of_a_call_are_bounded),
		with_capture(test_other_block_type_is_corrupt),
		with_capture(test_length_zero_is_corrupt),
		with_capture(test_length_below_its_header_is_corrupt),
		with_capture(test_unaligned_length_is_corrupt),
		with_capture(test_length_beyond_head_is_corrupt),
		with_capture(test_huge_length_is_corrupt),
		with_capture(test_trailing_length_that_differs_is_corrupt),
		with_capture(test_captured_beyond_the_record_is_corrupt),
		with_capture(test_captured_beyond_the_original_is_corrupt),
		with_capture(test_interface_that_was_never_announced_is_corrupt),
		with_capture(test_interface_beyond_its_table_is_corrupt),
		with_capture(test_half_a_record_before_head_is_corrupt),
		with_capture(test_other_rings_are_read_after_a_corrupt_first_record),
		with_capture(test_head_that_goes_back_is_corrupt),
		with_capture(test_head_more_than_a_ring_ahead_is_corrupt),
		with_capture(test_head_near_overflow_is_corrupt),
		with_capture(test_unaligned_head_is_corrupt),
		with_capture(test_later_interface_is_added_with_its_first_packet),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
