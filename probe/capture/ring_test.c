/* SPDX-License-Identifier: BSD-3-Clause */
/* Full rings: exact accounting, waiting, and readers with invalid tails. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <rte_cycles.h>

#include "epb.h"
#include "probe/test_eal.h"
#include "probe/tunables.h"

#define BURST 32u

static struct test_ring t;
static struct test_record r;

static int set_up(void **state)
{
	test_ring_make(&t, TEST_RING);
	return 0;
}

static int tear_down(void **state)
{
	test_ring_free(&t);
	return 0;
}

static struct rt_seg_count *counts(enum rt_direction dir)
{
	return &t.ring.counts[dir];
}

static uint64_t lost(enum rt_direction dir)
{
	uint64_t sum = 0;

	for (int i = 0; i < RT_LOSS_COUNT; i++)
		sum += counts(dir)->lost[i];
	return sum;
}

/* Frames of len bytes that begin with consecutive numbers. */
static void make_burst(struct rte_mbuf **m, uint32_t first, uint32_t len)
{
	for (uint32_t i = 0; i < BURST; i++) {
		uint32_t number = first + i;

		m[i] = test_frame(number, len);
		memcpy(rte_pktmbuf_mtod(m[i], void *), &number, sizeof(number));
	}
}

/* Pushes frames until some are lost. Returns how many were pushed. */
static uint32_t fill(uint32_t first, uint32_t len)
{
	uint64_t before = lost(RT_DIR_RX);
	uint32_t n = first;

	while (lost(RT_DIR_RX) == before) {
		struct rte_mbuf *m[BURST];

		make_burst(m, n, len);
		test_ring_push(&t, RT_DIR_RX, m, BURST, n);
		rte_pktmbuf_free_bulk(m, BURST);
		n += BURST;
	}
	return n - first;
}

static uint32_t number(void)
{
	uint32_t v;

	memcpy(&v, r.data, sizeof(v));
	return v;
}

static void test_full_ring_loses_the_newest(void **state)
{
	uint32_t pushed = fill(0, 60), n = 0;

	while (test_ring_next(&t, &r))
		assert_int_equal(number(), n++);
	assert_int_equal(counts(0)->seen, pushed);
	assert_int_equal(counts(0)->captured, n);
	assert_int_equal(counts(0)->lost[RT_LOSS_RING_FULL], pushed - n);
	/* The ring was full. */
	assert_true(t.ring.head + RT_EPB_HEADER + 60 + 48 + 4 > t.ring.limit);
}

static void test_first_packet_after_a_gap_has_the_drop_count(void **state)
{
	uint32_t pushed = fill(0, 60), captured = (uint32_t)counts(0)->captured;
	struct rte_mbuf *m[BURST];

	while (test_ring_next(&t, &r))
		assert_false(r.has_dropped);
	test_ring_release(&t);
	make_burst(m, pushed, 60);
	test_ring_push(&t, RT_DIR_RX, m, BURST, 0);
	assert_true(test_ring_next(&t, &r));
	assert_true(r.has_dropped);
	assert_int_equal(r.dropped, pushed - captured);
	assert_int_equal(number(), pushed);
	while (test_ring_next(&t, &r))
		assert_false(r.has_dropped);
	rte_pktmbuf_free_bulk(m, BURST);
}

static void test_drop_counts_are_of_a_direction(void **state)
{
	struct rte_mbuf *m[BURST];
	uint64_t sent_lost;

	fill(0, 60);
	make_burst(m, 0, 60);
	test_ring_push(&t, RT_DIR_TX, m, BURST, 0);
	sent_lost = lost(RT_DIR_TX);
	assert_true(sent_lost > 0);
	while (test_ring_next(&t, &r))
		;
	test_ring_release(&t);
	test_ring_push(&t, RT_DIR_TX, m, 1, 0);
	assert_true(test_ring_next(&t, &r));
	assert_int_equal(r.flags, 2);
	assert_int_equal(r.dropped, sent_lost);
	rte_pktmbuf_free_bulk(m, BURST);
}

/* A reader's state of one direction. */
struct ledger {
	uint64_t got, dropped;
	uint32_t next; /* expected number */
};

/* Reads up to n records. Every number is in a record or in a drop count, at the right place. */
static void read_some(struct ledger *l, uint32_t n)
{
	while (n-- && test_ring_next(&t, &r)) {
		struct ledger *d = &l[r.flags - 1];

		assert_int_equal(number(), d->next + r.dropped);
		d->next = number() + 1;
		d->dropped += r.dropped;
		d->got++;
	}
	test_ring_release(&t);
}

/* Bursts of all sizes in both directions, a reader that is too slow, several rounds of the ring. */
static void test_overload_is_accounted_exactly(void **state)
{
	struct ledger l[2] = {0};
	uint32_t sent[2] = {0};

	for (int round = 0; round < 6000; round++) {
		enum rt_direction dir = test_random() % 2;
		struct rte_mbuf *m[BURST];

		make_burst(m, sent[dir], 4 + test_random() % (round % 50 ? 300 : 9000));
		test_ring_push(&t, dir, m, BURST, (uint64_t)round);
		sent[dir] += BURST;
		rte_pktmbuf_free_bulk(m, BURST);
		read_some(l, test_random() % 40);
	}
	read_some(l, UINT32_MAX);
	for (int dir = 0; dir < 2; dir++) {
		const struct rt_seg_count *c = counts(dir);

		assert_int_equal(c->seen, sent[dir]);
		assert_int_equal(c->seen, c->captured + c->filtered + lost(dir));
		assert_int_equal(c->captured, l[dir].got);
		assert_int_equal(lost(dir), l[dir].dropped + t.pending[dir]);
		assert_true(lost(dir) > 1000 && c->captured > 1000);
	}
	assert_true(t.ring.head > 50 * TEST_RING);
}

/* Words, as records may end in each chunk. Returns the bytes from what was read to head. */
static uint64_t copy_unread(uint8_t *to, uint64_t head)
{
	for (uint64_t pos = t.read; pos < head; pos += 4)
		memcpy(to + (pos - t.read), test_ring_at(&t, pos), 4);
	return head - t.read;
}

/* Records that the reader has not released are never overwritten, up to the last byte. */
static void test_unread_records_are_never_overwritten(void **state)
{
	uint8_t *before = malloc(2 * TEST_RING), *after = malloc(2 * TEST_RING);
	uint64_t bytes;

	for (uint32_t len = 0; len < 200; len++) {
		fill(len, 4 + len);
		bytes = copy_unread(before, t.ring.head);
		fill(len, 8 + len % 50);
		fill(len, 2000);
		assert_int_equal(copy_unread(after, t.read + bytes), bytes);
		assert_memory_equal(before, after, bytes);
		while (test_ring_next(&t, &r))
			;
		test_ring_release(&t);
	}
	free(before);
	free(after);
}

/* ---- invalid tails ---- */

static void set_tail(uint64_t tail)
{
	rt_store_release(&t.shm.tails[0].tail, tail);
}

static void assert_liar(uint64_t tail)
{
	uint64_t head;

	fill(0, 60);
	head = t.ring.head;
	assert_int_equal(t.ring.bad_tail, 0);
	set_tail(tail == UINT64_MAX ? head + 4 : tail);
	fill(0, 60);
	assert_int_equal(t.ring.bad_tail, 1);
	/* The invalid tail has no effect. */
	assert_int_equal(t.ring.head, head);
}

static void test_tail_ahead_of_head_is_invalid(void **state)
{
	assert_liar(UINT64_MAX);
}

static void test_tail_far_ahead_of_head_is_invalid(void **state)
{
	assert_liar(1ull << 63);
}

static void test_decreasing_tail_is_invalid(void **state)
{
	struct rte_mbuf *m[BURST];

	make_burst(m, 0, 1500);
	for (int i = 0; i < 10; i++) {
		test_ring_push(&t, RT_DIR_RX, m, BURST, 0);
		while (test_ring_next(&t, &r))
			;
		test_ring_release(&t);
	}
	rte_pktmbuf_free_bulk(m, BURST);
	assert_true(t.ring.tail > 1000);
	assert_liar(t.ring.tail - 4);
}

static void test_session_with_an_invalid_tail_is_not_sane(void **state)
{
	t.session->rings = &t.ring;
	t.session->chunks.used = t.chunks.used;
	assert_true(rt_session_sane(t.session));
	assert_liar(UINT64_MAX);
	assert_false(rt_session_sane(t.session));
}

/* ---- on-full=wait ---- */

static int set_up_wait(void **state)
{
	set_up(state);
	t.tap[0].wait = t.tap[1].wait = true;
	rt_probe_limits.full_wait_ms = 20;
	return 0;
}

static void test_waiting_is_bounded_and_counted(void **state)
{
	uint64_t start = rte_get_timer_cycles();
	uint32_t pushed = fill(0, 60);

	assert_true(rte_get_timer_cycles() - start >= rte_get_timer_hz() / 50);
	assert_int_equal(counts(0)->captured + counts(0)->lost[RT_LOSS_WAIT], pushed);
	assert_int_equal(counts(0)->lost[RT_LOSS_RING_FULL], 0);
}

/* A reader that has read nothing for the whole timeout must not cost that time for every burst. */
static void test_no_second_wait_after_a_timeout(void **state)
{
	uint64_t start;

	fill(0, 60);
	rt_probe_limits.full_wait_ms = 3600000;
	start = rte_get_timer_cycles();
	fill(0, 60);
	assert_true(rte_get_timer_cycles() - start < 60 * rte_get_timer_hz());
}

static void test_waits_again_after_space_was_released(void **state)
{
	fill(0, 60);
	assert_int_equal(t.ring.gave_up, 1);
	while (test_ring_next(&t, &r))
		;
	test_ring_release(&t);
	fill(0, 60);
	/* The thread has waited a second time. */
	assert_int_equal(t.ring.gave_up, 1);
	assert_true(counts(0)->lost[RT_LOSS_WAIT] <= 2 * BURST);
}

static void *read_on(void *arg)
{
	uint64_t *expected = arg, got = 0;

	while (got < *expected) {
		if (!test_ring_next(&t, &r)) {
			rt_pause();
			continue;
		}
		assert_int_equal(number(), got);
		got++;
		test_ring_release(&t);
	}
	return NULL;
}

static void test_nothing_is_lost_while_the_reader_reads(void **state)
{
	uint64_t total = 3000 * BURST;
	pthread_t reader;

	rt_probe_limits.full_wait_ms = 60000;
	assert_int_equal(pthread_create(&reader, NULL, read_on, &total), 0);
	for (uint32_t n = 0; n < total; n += BURST) {
		struct rte_mbuf *m[BURST];

		make_burst(m, n, 4 + n % 600);
		test_ring_push(&t, RT_DIR_RX, m, BURST, n);
		rte_pktmbuf_free_bulk(m, BURST);
	}
	pthread_join(reader, NULL);
	assert_int_equal(counts(0)->captured, total);
	assert_int_equal(lost(RT_DIR_RX), 0);
}

static void *stop_session(void *arg)
{
	/* Published before waiting: else the reader could never make room. */
	while (rt_load_acquire(&t.shm.rings[0].head) < TEST_RING / 2)
		rt_pause();
	rt_store(&t.session->stopping, 1);
	return NULL;
}

/* Woken by the end of the session: the packets do not belong to it, and are neither seen nor
 * lost. */
static void test_end_of_the_session_ends_the_wait(void **state)
{
	struct rte_mbuf *m[BURST];
	pthread_t control;

	rt_probe_limits.full_wait_ms = 3600000;
	assert_int_equal(pthread_create(&control, NULL, stop_session, NULL), 0);
	make_burst(m, 0, 1500);
	for (int i = 0; i < 4; i++)
		test_ring_push(&t, RT_DIR_RX, m, BURST, 0);
	pthread_join(control, NULL);
	assert_int_equal(counts(0)->seen, counts(0)->captured);
	assert_int_equal(lost(RT_DIR_RX), 0);
	rte_pktmbuf_free_bulk(m, BURST);
}

static void test_invalid_tail_ends_the_wait(void **state)
{
	rt_probe_limits.full_wait_ms = 20;
	fill(0, 60);
	rt_probe_limits.full_wait_ms = 3600000;
	t.ring.gave_up = 0;
	set_tail(UINT64_MAX - 7);
	fill(0, 60);
	assert_int_equal(t.ring.bad_tail, 1);
}

#define with_ring(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
#define waiting(f)   cmocka_unit_test_setup_teardown(f, set_up_wait, tear_down)

static const struct CMUnitTest tests[] = {
	with_ring(test_full_ring_loses_the_newest),
	with_ring(test_first_packet_after_a_gap_has_the_drop_count),
	with_ring(test_drop_counts_are_of_a_direction),
	with_ring(test_overload_is_accounted_exactly),
	with_ring(test_unread_records_are_never_overwritten),
	with_ring(test_tail_ahead_of_head_is_invalid),
	with_ring(test_tail_far_ahead_of_head_is_invalid),
	with_ring(test_decreasing_tail_is_invalid),
	with_ring(test_session_with_an_invalid_tail_is_not_sane),
	waiting(test_waiting_is_bounded_and_counted),
	waiting(test_no_second_wait_after_a_timeout),
	waiting(test_waits_again_after_space_was_released),
	waiting(test_nothing_is_lost_while_the_reader_reads),
	waiting(test_end_of_the_session_ends_the_wait),
	waiting(test_invalid_tail_ends_the_wait),
};

static int run(const char *group)
{
	return cmocka_run_group_tests_name(group, tests, NULL, NULL);
}

int main(void)
{
	return test_run_both_copies(run);
}
