/* SPDX-License-Identifier: BSD-3-Clause */
/* Fates as events: records have the ids of packets that another session has, and no bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "ids.h"
#include "probe/test_eal.h"
#include "probe/test_ports.h"
#include "probe/test_fates.h"

#define SOURCE (5ull << RT_ID_SOURCE_SHIFT)

/* Received at a site; its record passes the filter, or not. */
static struct rte_mbuf *receive(uint32_t site, bool passes)
{
	struct rte_mbuf *m = test_receive(site);

	/* They are numbered from one to the next. */
	if ((*rte_pktmbuf_mtod(m, const uint8_t *) & 1) != passes)
		return m;
	test_offer(m);
	return test_receive(site);
}

static uint64_t id_of(const struct rte_mbuf *m)
{
	return (*RTE_MBUF_DYNFIELD(m, rt_ids.offset, const uint64_t *) & RT_ID_MASK) | SOURCE;
}

static void expect_event(uint64_t id, uint32_t site, enum rt_fate_event event)
{
	struct test_record r;

	assert_true(test_next_record(&r));
	assert_true(r.has_id);
	assert_int_equal(r.id, id);
	assert_int_equal(r.if_index, site);
	assert_int_equal(r.captured, 0);
	assert_int_equal(r.flags & 3u, 1);
	assert_int_equal(r.flags >> RT_EVENT_SHIFT, event);
}

static void expect_nothing(void)
{
	struct test_record r;

	assert_false(test_next_record(&r));
}

static void test_nothing_of_a_packet_is_kept(void **state)
{
	struct rte_mbuf *m = receive(1, true);

	assert_int_equal(session->shm.h.fate_snap, 0);
	assert_int_equal(session->shm.h.fate_stride, sizeof(struct rt_seg_fate));
	assert_int_equal(test_entry(m)->cap, 0);
	assert_int_equal(test_entry(m)->outside, 0);
	test_offer(m);
	expect_nothing();
}

static void test_a_packet_that_was_not_offered_is_an_event_with_its_id(void **state)
{
	struct rte_mbuf *m = receive(1, true), *again = m;
	uint64_t id = id_of(m);

	test_stamp(m); /* freed, and received again by another port */
	rt_fates_feed(&session->rings[0], test_tap(2, RT_DIR_RX), &again, 1, rt_tsc());
	expect_event(id, 1, RT_EVENT_NOT_OFFERED);
	test_offer(m);
	expect_nothing();
}

static void test_reset_flags_are_an_event(void **state)
{
	struct rte_mbuf *m = receive(2, true);
	uint64_t id = id_of(m);

	rte_pktmbuf_reset_headroom(m);
	m->ol_flags = 0;
	m->port = id >> RT_ID_PORT_SHIFT & RT_ID_PORT_MASK;
	test_offer(m);
	expect_event(id, 2, RT_EVENT_INFERRED);
	assert_int_equal(test_count(2, RT_DIR_RX).inferred, 1);
	expect_nothing();
}

/* As VPP does with its buffers, for packets that it makes, and for those that it puts together. */
static void test_a_pool_that_the_application_fills_says_nothing_of_a_reset(void **state)
{
	struct rte_mbuf *m = receive(2, true);
	uint64_t id = id_of(m);

	m->pool->flags &= ~RTE_MEMPOOL_F_POOL_CREATED;
	rte_pktmbuf_reset(m);
	test_offer(m);
	m->pool->flags |= RTE_MEMPOOL_F_POOL_CREATED;
	expect_event(id, 2, RT_EVENT_UNKNOWN);
	assert_int_equal(test_count(2, RT_DIR_RX).unknown, 1);
	assert_int_equal(test_count(2, RT_DIR_RX).inferred, 0);
	expect_nothing();
	m = receive(2, true); /* in a pool of DPDK it was allocated again */
	id = id_of(m);
	rte_pktmbuf_reset(m);
	test_offer(m);
	expect_event(id, 2, RT_EVENT_NOT_OFFERED);
	assert_int_equal(test_count(2, RT_DIR_RX).unknown, 1);
	expect_nothing();
}

static void test_packets_without_room_are_events(void **state)
{
	struct rte_mbuf *m = receive(1, true);
	struct rt_seg_fate *e = test_entry(m);
	uint64_t id, mask = session->fates->mask;

	/* Another mbuf has each place that this one could have. */
	test_offer(m);
	for (uint64_t i = 0; i <= mask; i++) {
		struct rt_seg_fate *any = (void *)(session->fates->table + i * sizeof(*any));

		if (!any->mbuf || any == e)
			any->mbuf = 1;
	}
	m = receive(1, true);
	id = id_of(m);
	for (;;) { /* counts those before as well, which the filter may have refused */
		struct test_record r;

		assert_true(test_next_record(&r));
		assert_int_equal(r.flags >> RT_EVENT_SHIFT, RT_EVENT_UNKNOWN);
		if (r.id == id)
			break;
	}
	rte_pktmbuf_free(m);
}

static void test_packets_that_others_hold_are_none(void **state)
{
	struct rte_mbuf *m = test_arrive();

	rte_mbuf_refcnt_set(m, 2);
	rt_fates_feed(&session->rings[0], test_tap(2, RT_DIR_RX), &m, 1, rt_tsc());
	assert_int_equal(test_count(2, RT_DIR_RX).unknown, 1);
	expect_nothing();
	rte_mbuf_refcnt_set(m, 1);
	rte_mbuf_raw_free(m);
}

/* It counts, and has no record. */
static void test_what_the_filter_refuses_is_no_event(void **state)
{
	struct rte_mbuf *m = receive(1, false), *again = m;
	struct rt_seg_count c;

	assert_int_not_equal(test_entry(m)->outside, 0);
	test_stamp(m);
	rt_fates_feed(&session->rings[0], test_tap(2, RT_DIR_RX), &again, 1, rt_tsc());
	expect_nothing();
	c = test_count(1, RT_DIR_RX);
	assert_int_equal(c.not_offered, 1);
	assert_int_equal(c.seen, 1);
	assert_int_equal(c.filtered, 1);
	assert_int_equal(c.captured, 0);
	test_offer(m);
}

static void test_events_without_a_ring_are_lost(void **state)
{
	struct rte_mbuf *kept = receive(1, true), *outside = receive(1, false);
	struct rt_seg_count c;

	test_stamp(kept);
	test_stamp(outside);
	rt_fates_feed(NULL, test_tap(2, RT_DIR_RX), &kept, 1, rt_tsc());
	rt_fates_feed(NULL, test_tap(2, RT_DIR_RX), &outside, 1, rt_tsc());
	c = test_count(1, RT_DIR_RX);
	assert_int_equal(c.not_offered, 2);
	assert_int_equal(c.seen, 2);
	assert_int_equal(c.filtered, 1);
	assert_int_equal(c.lost[RT_LOSS_NO_RING], 1);
	expect_nothing();
	test_offer(kept);
	test_offer(outside);
}

#define with_events(f) cmocka_unit_test_setup_teardown(f, test_fates_begin_events, test_fates_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_events(test_nothing_of_a_packet_is_kept),
		with_events(test_a_packet_that_was_not_offered_is_an_event_with_its_id),
		with_events(test_reset_flags_are_an_event),
		with_events(test_a_pool_that_the_application_fills_says_nothing_of_a_reset),
		with_events(test_packets_without_room_are_events),
		with_events(test_packets_that_others_hold_are_none),
		with_events(test_what_the_filter_refuses_is_no_event),
		with_events(test_events_without_a_ring_are_lost),
	};

	test_stats_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
