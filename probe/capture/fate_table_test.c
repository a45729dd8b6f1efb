/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of fates: its size, its places, what a look costs, and marks of walks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "probe/test_ports.h"
#include "fate_table.h"
#include "probe/test_fates.h"

static void test_tables_are_large_enough_for_all_mbufs(void **state)
{
	assert_int_equal(rt_fates_bits(0, 64, 0), RT_FATE_BITS_MIN);
	assert_int_equal(rt_fates_bits(2048, 64, 0), 12);
	assert_int_equal(rt_fates_bits(2049, 64, 0), 13);
	assert_int_equal(rt_fates_bits(1 << 20, 64, 0), 21);
	assert_int_equal(rt_fates_bits(1 << 24, 64, 0), RT_FATE_BITS_MAX);
	/* Or as large as may be. */
	assert_int_equal(rt_fates_bits(1 << 20, 64, 128 << 14), 14);
	assert_int_equal(rt_fates_bits(1 << 20, 64, 1), RT_FATE_BITS_MIN);
	assert_int_equal(session->fates->mask, (1 << 12) - 1);
	assert_int_equal(session->fates->snap, 128);
	assert_int_equal(session->fates->stride, 192);
	/* Each thread writes its own lines. */
	for (uint32_t i = 0; i < RT_MAX_RINGS; i++)
		assert_int_equal((uintptr_t)&session->fates->bursts[i] % 128, 0);
}

static uint64_t count_entries(void)
{
	const struct rt_fates *f = session->fates;
	uint64_t n = 0;

	for (uint64_t i = 0; i <= f->mask; i++)
		n += rt_fate_at(f, i)->mbuf != 0;
	return n;
}

/* Packets that have an entry when the table is found too small keep it, if a look reaches it
 * still. */
static void test_mbufs_without_room_are_unknown(void **state)
{
	struct rt_fates *f = session->fates;
	struct rte_mbuf *all[64];

	f->mask = 15;
	f->shift = 60;
	f->probes = RT_FATE_PROBES_SCARCE;
	for (unsigned i = 0; i < RTE_DIM(all); i++)
		assert_non_null(all[i] = test_receive(0));
	assert_in_range(count_entries(), 9, 16);
	truth[0].unknown = RTE_DIM(all) - count_entries();
	test_check();
	for (unsigned i = 0; i < RTE_DIM(all); i++)
		test_offer(all[i]);
	truth[0].offered = count_entries();
	test_check();
}

static void test_a_table_that_is_more_than_half_full_is_searched_less(void **state)
{
	struct rt_fates *f = session->fates;
	struct rte_mbuf *all[65];

	f->mask = 127;
	f->shift = 64 - 7;
	assert_int_equal(f->probes, RT_FATE_PROBES);
	for (unsigned i = 0; i < RTE_DIM(all); i++) {
		assert_int_equal(f->probes, RT_FATE_PROBES);
		assert_non_null(all[i] = test_receive(0));
	}
	assert_int_equal(count_entries(), RTE_DIM(all));
	assert_int_equal(f->probes, RT_FATE_PROBES_SCARCE);
	for (unsigned i = 0; i < RTE_DIM(all); i++)
		rte_pktmbuf_free(all[i]);
}

/* A reader that fills it with other addresses: each look of a burst would cost all probes. */
static void test_probes_of_a_burst_are_limited(void **state)
{
	struct rt_fates *f = session->fates;
	uint32_t spare = RT_FATE_SPARE, probes = 0;

	for (uint64_t i = 0; i <= f->mask; i++)
		rt_fate_at(f, i)->mbuf = UINT64_MAX;
	for (uintptr_t i = 1; i <= 1000; i++) {
		uint32_t before = spare + RT_FATE_SPARE_EACH;

		assert_null(rt_fate_of(f, (const void *)(i * 2304), i % 2, &spare));
		probes += before - spare;
	}
	assert_int_equal(f->probes, RT_FATE_PROBES);
	assert_in_range(probes, 1000, 1000 * RT_FATE_SPARE_EACH + RT_FATE_SPARE);
	for (uint64_t i = 0; i <= f->mask; i++)
		rt_fate_at(f, i)->mbuf = 0;
}

/* Probes of the worst of n mbufs that many lines from each other, in a table that is half full. */
static uint32_t worst_place(uint8_t *used, uint64_t lines, uint32_t n)
{
	const struct rt_fates f = {.mask = 2 * n - 1, .shift = 64 - (uint32_t)__builtin_ctz(2 * n)};
	uint32_t worst = 0;

	memset(used, 0, 2 * n);
	for (uint64_t m = 0; m < n; m++) {
		uint64_t i = rt_fate_place(&f, 0x140000080ull + m * lines * 64);
		uint32_t probes = 1;

		for (; used[i]; i = (i + 1) & f.mask)
			probes++;
		used[i] = 1;
		worst = RTE_MAX(worst, probes);
	}
	return worst;
}

static void test_places_of_equidistant_mbufs_do_not_gather(void **state)
{
	enum { MBUFS = 1 << 15 };
	static uint8_t used[2 * MBUFS];

	for (uint64_t lines = 37; lines <= 200; lines++)
		assert_in_range(worst_place(used, lines, MBUFS), 1, RT_FATE_PROBES);
}

/* The table ends with its last entry: the next one is the first. */
static void test_entries_at_the_next_place_are_near(void **state)
{
	static struct rt_seg_fate e[5] = {
		[0] = {.mbuf = 64}, [2] = {.mbuf = 128}, [3] = {.mbuf = 192}};
	const struct rt_fate_map map = {(uint8_t *)e, 3, 62, sizeof(e[0])};

	e[4].mbuf = 64; /* behind the table */
	assert_ptr_equal(rt_fate_near(&map, 3, (void *)192), &e[3]);
	assert_ptr_equal(rt_fate_near(&map, 2, (void *)192), &e[3]);
	assert_ptr_equal(rt_fate_near(&map, 3, (void *)64), &e[0]);
	assert_ptr_equal(rt_fate_near(&map, 0, (void *)64), &e[0]);
	assert_int_not_equal(rt_fate_near(&map, 1, (void *)192)->mbuf, 192); /* farther away */
}

static void test_marks_of_walks_end_with_the_next_packet(void **state)
{
	struct rte_mbuf *m = test_receive(1);
	struct rt_seg_fate *e = test_entry(m);
	uint32_t spare = RT_FATE_SPARE;

	test_give_up(m, 1);
	test_walk();
	assert_int_equal(e->walk, session->shm.header->fate_walk);
	test_stamp(m);
	rt_fates_feed(&session->rings[0], test_tap(2, RT_DIR_RX), &m, 1, rt_tsc());
	truth[2].received++;
	assert_int_equal(e->walk, 0);
	/* Received after a walk began: whatever list it is in, it is not free. */
	rt_fates_mark(session->fates, m, 77, e->tsc, &spare);
	assert_int_equal(e->walk, 0);
	rt_fates_mark(session->fates, m, 77, e->tsc + 1, &spare);
	assert_int_equal(e->walk, 77);
	test_check();
}

#define with_fates(f) cmocka_unit_test_setup_teardown(f, test_fates_begin, test_fates_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_fates(test_tables_are_large_enough_for_all_mbufs),
		with_fates(test_mbufs_without_room_are_unknown),
		with_fates(test_a_table_that_is_more_than_half_full_is_searched_less),
		with_fates(test_probes_of_a_burst_are_limited),
		with_fates(test_marks_of_walks_end_with_the_next_packet),
		cmocka_unit_test(test_places_of_equidistant_mbufs_do_not_gather),
		cmocka_unit_test(test_entries_at_the_next_place_are_near),
	};

	test_stats_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
