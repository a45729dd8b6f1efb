/* SPDX-License-Identifier: BSD-3-Clause */
/* Sessions of fates that stop, and the pools that they walk. */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "probe/hook/hook.h"
#include "probe/test_eal.h"
#include "probe/test_ports.h"
#include "fate_table.h"
#include "probe/test_fates.h"

/* While a session stops, the application goes on. */
static void test_what_was_received_before_a_stop_is_followed(void **state)
{
	struct rte_mbuf *sent = test_receive(1), *again = test_receive(2), *freed = test_receive(0);
	struct rte_mbuf *held = test_receive(1), *late = test_arrive();

	test_expect(again, 2);
	rt_session_stop(session);
	assert_int_equal(session->state, RT_SESSION_CLOSING);
	test_stamp(again);
	rt_fates_feed(&session->rings[0], test_tap(2, RT_DIR_RX), &again, 1, rt_tsc());
	rt_fates_feed(&session->rings[0], test_tap(2, RT_DIR_RX), &late, 1, rt_tsc());
	test_offer(late);
	truth[1].offered++;
	test_offer(sent);
	test_offer(again);
	rte_pktmbuf_free(freed);
	while (!rt_session_stopped(session))
		sched_yield();
	test_check();
	assert_int_equal(test_count(0, RT_DIR_TX).rest_offered, 0);
	assert_int_equal(test_open(0), 1);
	assert_int_equal(test_entry(freed)->walk, session->shm.header->fate_walk);
	assert_int_equal(test_open(1), 1);
	assert_int_equal(test_entry(held)->walk, 0);
	rte_pktmbuf_free(held);
	while (!rt_hook_reclaim())
		sched_yield();
}

/* Nothing is read any more: it ends at once, also in the midst of a stop. */
static void test_abandoned_sessions_are_cut(void **state)
{
	rt_session_stop(session);
	rt_session_stop(session);
	assert_int_equal(session->state, RT_SESSION_CLOSING);
	session->abandoned = true;
	rt_session_stop(session);
	assert_int_equal(session->state, RT_SESSION_STOPPING);
	while (!rt_session_stopped(session) || !rt_hook_reclaim())
		sched_yield();
}

/* Without caches, which are large where DPDK is built for many lcores. */
static struct rte_mempool *make_pool(const char *name)
{
	struct rte_mempool *mp = rte_pktmbuf_pool_create(name, 31, 0, 0, 128, 0);

	assert_non_null(mp);
	return mp;
}

/* Applications do that when a port or its MTU changes. */
static void test_pools_that_are_made_again_keep_their_slot(void **state)
{
	const struct rt_seg_header *h = session->shm.header;

	for (unsigned i = 0; i < RT_FATE_POOLS + 2; i++) {
		struct rte_mempool *mp = make_pool("again"), *gap = make_pool("gap");

		test_walk();
		assert_int_equal(h->fate_pools, 3);
		assert_ptr_equal(session->fates->pools[1], mp);
		rte_mempool_free(mp);
		if (i % 2) /* at another address */
			mp = make_pool("again");
		rte_mempool_free(gap);
		if (i % 2)
			rte_mempool_free(mp);
	}
	assert_int_equal(h->fate_pools_beyond, 0);
}

static void test_slots_of_freed_pools_are_used_again(void **state)
{
	const struct rt_seg_header *h = session->shm.header;
	struct rte_mempool *mp[RT_FATE_POOLS + 1];
	char name[32];

	for (unsigned i = 0; i < RTE_DIM(mp); i++) {
		snprintf(name, sizeof(name), "pool%u", i);
		mp[i] = make_pool(name);
	}
	test_walk();
	assert_int_equal(h->fate_pools, RT_FATE_POOLS);
	assert_int_equal(h->fate_pools_beyond, 2); /* one is there anyway */
	rte_mempool_free(mp[5]);
	test_walk();
	assert_int_equal(h->fate_pools_beyond, 1);
	assert_string_equal(session->shm.fate_pools[6].name, "pool63");
	assert_ptr_equal(session->fates->pools[6], mp[63]);
	mp[5] = NULL;
	for (unsigned i = 0; i < RTE_DIM(mp); i++)
		rte_mempool_free(mp[i]);
	test_walk();
	assert_int_equal(h->fate_pools_beyond, 0);
}

/* The locks of the list are the application's as well. */
static void test_pools_are_left_alone_while_nothing_is_open(void **state)
{
	struct rte_mbuf *m = test_receive(1);
	uint64_t now = rt_now_ms() + 1000;

	rt_fates_walk(session, now);
	assert_int_equal(session->shm.header->fate_walk, 2);
	truth[1].offered++;
	test_offer(m);
	rt_fates_walk(session, now += 1000);
	assert_int_equal(session->shm.header->fate_walk, 2);
	m = test_receive(1);
	rt_fates_walk(session, now += 1000);
	assert_int_equal(session->shm.header->fate_walk, 3);
	test_give_up(m, 1);
}

/* Mbufs of a pool, and those that a step may look for. */
#define MANY    50000u
#define AT_ONCE 8192u

static struct rte_mempool *many;

static int begin_with_many(void **state)
{
	many = rte_pktmbuf_pool_create("many", MANY, 256, 0, 0, 0);
	return !many || test_fates_begin(state);
}

static int end_with_many(void **state)
{
	rte_mempool_free(many);
	return test_fates_end(state);
}

/* All of them were received, and are free. */
static void receive_many(void)
{
	static struct rte_mbuf *all[MANY];

	assert_int_equal(rte_mempool_get_bulk(many, (void **)all, MANY), 0);
	for (unsigned i = 0; i < MANY; i++) {
		all[i]->ol_flags = 0;
		all[i]->data_len = all[i]->pkt_len = 0;
		test_stamp(all[i]);
		rt_fates_feed(&session->rings[0], test_tap(1, RT_DIR_RX), &all[i], 1, rt_tsc());
	}
	truth[1].received += MANY;
	rte_mempool_put_bulk(many, (void **)all, MANY);
}

static unsigned marked(uint32_t walk)
{
	unsigned n = 0;

	for (uint64_t i = 0; i <= session->fates->mask; i++)
		n += rt_fate_at(session->fates, i)->walk == walk;
	return n;
}

/* As long as it lasts, the control thread does nothing else. */
static void test_a_step_of_a_walk_is_short(void **state)
{
	const struct rt_seg_header *h = session->shm.header;
	uint64_t now = rt_now_ms() + 1000;
	uint32_t before = 0, steps = 0, walk;

	while (h->fate_walk == 0) /* began with the session */
		rt_fates_walk(session, now);
	walk = h->fate_walk + 1;
	receive_many();
	do {
		uint32_t after;

		rt_fates_walk(session, now += 1000);
		after = marked(walk);
		assert_in_range(after, before, before + AT_ONCE);
		before = after;
		steps++;
	} while (h->fate_walk < walk);
	assert_int_equal(before, MANY);
	assert_in_range(steps, MANY / AT_ONCE, 2 * MANY / AT_ONCE + 4);
	test_check();
}

/* A reader that fills the table makes each look long. */
static void test_probes_of_a_step_are_limited(void **state)
{
	struct rt_fates *f = session->fates;
	uint32_t spare = RT_FATE_SPARE;
	uint64_t probes = 0;

	for (uint64_t i = 0; i <= f->mask; i++)
		rt_fate_at(f, i)->mbuf = UINT64_MAX;
	for (uintptr_t i = 1; i <= AT_ONCE; i++) {
		uint32_t before = spare + RT_FATE_SPARE_EACH;

		rt_fates_mark(f, (const void *)(i * 2304), 1, UINT64_MAX, &spare);
		probes += before - spare;
	}
	assert_in_range(probes, AT_ONCE, AT_ONCE * RT_FATE_SPARE_EACH + RT_FATE_SPARE);
	for (uint64_t i = 0; i <= f->mask; i++)
		rt_fate_at(f, i)->mbuf = 0;
}

#define with_fates(f) cmocka_unit_test_setup_teardown(f, test_fates_begin, test_fates_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_fates(test_what_was_received_before_a_stop_is_followed),
		with_fates(test_abandoned_sessions_are_cut),
		with_fates(test_pools_that_are_made_again_keep_their_slot),
		with_fates(test_slots_of_freed_pools_are_used_again),
		with_fates(test_pools_are_left_alone_while_nothing_is_open),
		cmocka_unit_test_setup_teardown(
			test_a_step_of_a_walk_is_short, begin_with_many, end_with_many),
		with_fates(test_probes_of_a_step_are_limited),
	};

	test_stats_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
