/* SPDX-License-Identifier: BSD-3-Clause */
/* Rings that an application fills, drains and frees while they are sampled. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include <rte_ring.h>

#include "probe/dpdk/rings.h"
#include "probe/test_eal.h"
#include "probe/test_ports.h"

static struct rt_monitor mon;
static struct rte_ring *ring;

static int start(void **state)
{
	ring = rte_ring_create("work", 64, SOCKET_ID_ANY, 0);
	assert_non_null(ring);
	test_monitor(&mon, RT_COLLECT_POOLS, 1);
	return 0;
}

static int end(void **state)
{
	test_monitors_drop();
	rte_ring_free(ring);
	return 0;
}

static const struct rt_stat_ring *find(const char *name)
{
	const struct rt_stats *f = rt_stat_current;

	for (uint32_t i = 0; i < f->header->ring_count; i++)
		if (!strcmp(f->rings[i].name, name))
			return &f->rings[i];
	return NULL;
}

static void put(unsigned n)
{
	void *objects[64] = {0};

	assert_int_equal(rte_ring_enqueue_bulk(ring, objects, n, NULL), n);
}

static void take(unsigned n)
{
	void *objects[64];

	assert_int_equal(rte_ring_dequeue_bulk(ring, objects, n, NULL), n);
}

static void levels_are_those_of_the_ring(void **state)
{
	const struct rt_stat_ring *r = find("work");

	assert_non_null(r); /* at once */
	assert_int_equal(r->capacity, 63);
	assert_int_equal(r->used, 0);
	put(63);
	test_stats_tick();
	assert_int_equal(r->used, 63);
	take(60);
	test_stats_tick();
	assert_int_equal(r->used, rte_ring_count(ring));
	assert_int_equal(r->used, 3);
	assert_int_equal(r->highest, 63);
	assert_int_equal(r->recent[(r->samples - 1) % RT_STAT_RECENT], 3);
	assert_int_equal(r->recent[(r->samples - 2) % RT_STAT_RECENT], 63);
}

/* Indices count modulo 2^32. */
static void indices_wrap(void **state)
{
	struct rt_ring_level level;

	ring->prod.head = ring->prod.tail = 5;
	ring->cons.head = ring->cons.tail = UINT32_MAX - 5;
	assert_true(rt_ring_read(ring, &level));
	assert_int_equal(level.used, 11);
	ring->cons.head = ring->cons.tail = 6; /* taken between the two readings */
	assert_true(rt_ring_read(ring, &level));
	assert_int_equal(level.used, 0);
	rte_ring_reset(ring);
}

static void all_kinds_of_synchronisation_are_read(void **state)
{
	static const unsigned flags[] = {RING_F_SP_ENQ | RING_F_SC_DEQ,
		RING_F_MP_RTS_ENQ | RING_F_MC_RTS_DEQ, RING_F_MP_HTS_ENQ | RING_F_MC_HTS_DEQ,
		RING_F_EXACT_SZ};
	void *objects[64] = {0};

	for (unsigned i = 0; i < RTE_DIM(flags); i++) {
		struct rte_ring *r = rte_ring_create("kind", 64, SOCKET_ID_ANY, flags[i]);
		struct rt_ring_level level;

		assert_non_null(r);
		assert_int_equal(rte_ring_enqueue_bulk(r, objects, 40, NULL), 40);
		assert_int_equal(rte_ring_dequeue_bulk(r, objects, 7, NULL), 7);
		assert_true(rt_ring_read(r, &level));
		assert_int_equal(level.used, 33);
		assert_int_equal(level.capacity, rte_ring_get_capacity(r));
		rte_ring_free(r);
	}
}

static void a_ring_that_comes_back_takes_its_entry(void **state)
{
	const struct rt_stat_ring *r = find("work");
	uint32_t count = rt_stat_current->header->ring_count;

	put(50);
	test_stats_tick();
	rte_ring_free(ring);
	test_stats_tick();
	assert_int_equal(r->state, RT_IF_GONE);
	ring = rte_ring_create("work", 64, SOCKET_ID_ANY, 0);
	test_stats_tick();
	assert_int_equal(r->state, RT_IF_PRESENT);
	assert_int_equal(r->used, 0);
	assert_int_equal(r->highest, 50);
	assert_int_equal(rt_stat_current->header->ring_count, count);
}

static void rings_of_mempools_are_left_out(void **state)
{
	assert_non_null(test_pool());
	test_stats_tick();
	for (uint32_t i = 0; i < rt_stat_current->header->ring_count; i++)
		assert_int_not_equal(strncmp(rt_stat_current->rings[i].name, "MP_", 3), 0);
}

static void memory_that_is_gone_or_is_no_ring_is_skipped(void **state)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct rte_ring *r =
		mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct rt_ring_level level;

	assert_ptr_not_equal(r, MAP_FAILED);
	assert_false(rt_ring_read(r, &level)); /* zeroes: freed */
	memcpy(r, ring, sizeof(*r));
	assert_true(rt_ring_read(r, &level));
	r->capacity = 64;
	assert_false(rt_ring_read(r, &level));
	r->capacity = 40;
	r->mask = 62;
	assert_false(rt_ring_read(r, &level));
	memset(r, 0xff, sizeof(*r));
	assert_false(rt_ring_read(r, &level));
	munmap(r, page);
	assert_false(rt_ring_read(r, &level));
}

static void rings_beyond_the_table_are_counted(void **state)
{
	struct rte_ring *many[RT_STAT_RINGS];
	uint32_t had = rt_stat_current->header->ring_count;
	char name[RTE_RING_NAMESIZE];

	for (unsigned i = 0; i < RT_STAT_RINGS; i++) {
		snprintf(name, sizeof(name), "many_%u", i);
		many[i] = rte_ring_create(name, 2, SOCKET_ID_ANY, 0);
		assert_non_null(many[i]);
	}
	test_stats_tick();
	assert_int_equal(rt_stat_current->header->ring_count, RT_STAT_RINGS);
	assert_int_equal(rt_stat_current->header->rings_beyond, had);
	for (unsigned i = 0; i < RT_STAT_RINGS; i++)
		rte_ring_free(many[i]);
	test_stats_tick();
	assert_int_equal(rt_stat_current->header->rings_beyond, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(levels_are_those_of_the_ring, start, end),
		cmocka_unit_test_setup_teardown(indices_wrap, start, end),
		cmocka_unit_test_setup_teardown(all_kinds_of_synchronisation_are_read, start, end),
		cmocka_unit_test_setup_teardown(a_ring_that_comes_back_takes_its_entry, start, end),
		cmocka_unit_test_setup_teardown(rings_of_mempools_are_left_out, start, end),
		cmocka_unit_test_setup_teardown(
			memory_that_is_gone_or_is_no_ring_is_skipped, start, end),
		cmocka_unit_test_setup_teardown(rings_beyond_the_table_are_counted, start, end),
	};

	test_eal_start();
	return cmocka_run_group_tests_name("rings", tests, NULL, NULL);
}
