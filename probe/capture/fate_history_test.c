/* SPDX-License-Identifier: BSD-3-Clause */
/* Histories of mbufs, as a DPDK keeps them that was built to note operations. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <rte_mbuf_dyn.h>

#include "fate_table.h"
#include "probe/now_ms.h"
#include "probe/dpdk/mempools.h"
#include "probe/test_eal.h"
#include "probe/test_fates.h"
#include "probe/test_ports.h"

#define FREE 4u /* mbufs that the last test leaves */

static int offset;

static uint64_t *ops_of(struct rte_mbuf *m)
{
	return RTE_MBUF_DYNFIELD(m, offset, uint64_t *);
}

static const struct rt_seg_history *history_in(const struct rt_seg_fate *e)
{
	return (const void *)((const uint8_t *)e + session->fates->history);
}

/* A tick with a new walk: the table is not larger than what one looks at. */
static void tick(void)
{
	static uint64_t ahead_ms;

	ahead_ms += 1000;
	rt_session_tick(session, rt_now_ms() + ahead_ms);
}

static void assert_history(const struct rte_mbuf *m, uint64_t ops)
{
	const struct rt_seg_fate *e = test_entry(m);

	assert_int_equal(history_in(e)->id, e->id);
	assert_int_equal(history_in(e)->ops, ops);
}

static void test_histories_have_room_behind_the_bytes(void **state)
{
	const struct rt_seg_header *h = &session->shm.h;

	assert_int_equal(h->fate_snap, 128 + RT_FATE_HISTORY);
	assert_int_equal(h->fate_stride, sizeof(struct rt_seg_fate) + h->fate_snap);
	assert_int_equal(h->fate_history, sizeof(struct rt_seg_fate) + 128);
	assert_int_equal(session->fates->snap, 128);
}

static void test_open_packets_have_the_latest_history(void **state)
{
	struct rte_mbuf *held = test_receive(0), *sent = test_receive(1), *late;

	*ops_of(held) = 0x47;
	*ops_of(sent) = 0x47;
	test_offer(sent);
	tick();
	assert_history(held, 0x47);
	assert_int_equal(history_in(test_entry(sent))->id, 0);
	late = test_receive(0);
	*ops_of(late) = UINT64_MAX;
	*ops_of(held) = 0x471;
	tick();
	assert_history(held, 0x471);
	assert_history(late, UINT64_MAX);
	rte_pktmbuf_free(held);
	rte_pktmbuf_free(late);
}

static void assert_not_followed(struct rt_seg_fate *e, const void *address)
{
	const uint64_t mbuf = e->mbuf;

	e->mbuf = (uintptr_t)address;
	tick();
	assert_int_equal(history_in(e)->id, 0);
	e->mbuf = mbuf;
}

/* A reader may have put them into the table. */
static void test_addresses_without_an_mbuf_are_not_followed(void **state)
{
	const struct rte_mempool_memhdr *chunk = STAILQ_FIRST(&pool->mem_list);
	const uint8_t *end = (const uint8_t *)chunk->addr + chunk->len;
	struct rte_mbuf *m = test_receive(0);
	struct rt_seg_fate *e = test_entry(m);
	/* An mbuf in the heap, which is of this pool as far as it says. */
	struct rte_mbuf *copy = aligned_alloc(RTE_CACHE_LINE_SIZE, sizeof(*copy));

	assert_non_null(copy);
	memcpy(copy, m, sizeof(*copy));
	assert_not_followed(e, NULL);
	assert_not_followed(e, (const void *)1);
	assert_not_followed(e, (const void *)(UINTPTR_MAX - 7));
	assert_not_followed(e, copy);
	assert_not_followed(e, (const uint8_t *)m + 4);
	assert_not_followed(e, (const uint8_t *)m + 8);
	assert_not_followed(e, (const uint8_t *)m - RTE_CACHE_LINE_SIZE);
	for (unsigned before = 0; before < sizeof(*m); before += 8)
		assert_not_followed(e, end - before);
	assert_not_followed(e, (const uint8_t *)chunk->addr - 8);
	tick();
	assert_int_equal(history_in(e)->id, e->id);
	rte_pktmbuf_free(m);
	free(copy);
}

static void assert_is_in(struct rte_mempool *mp, void *ctx, void *object, unsigned i)
{
	assert_int_equal(rt_mempool_has(mp, (uintptr_t)object), ctx == NULL);
}

static void test_all_mbufs_of_a_pool_are_found(void **state)
{
	struct rte_mempool *other =
		rte_pktmbuf_pool_create("other", 63, 0, 0, RTE_PKTMBUF_HEADROOM, SOCKET_ID_ANY);
	struct rte_mbuf *m = test_receive(0), *alien;

	assert_non_null(other);
	rte_mempool_obj_iter(pool, assert_is_in, NULL);
	rte_mempool_obj_iter(other, assert_is_in, NULL);
	alien = rte_pktmbuf_alloc(other);
	assert_non_null(alien);
	assert_false(rt_mempool_has(pool, (uintptr_t)alien));
	assert_false(rt_mempool_has(other, (uintptr_t)m));
	rte_pktmbuf_free(alien);
	rte_pktmbuf_free(m);
	rte_mempool_free(other);
}

/* More than are read at once. */
static void test_all_open_packets_have_theirs(void **state)
{
	static struct rte_mbuf *held[1u << 16];
	uint32_t n = 0;

	while (rte_mempool_avail_count(pool) > FREE && n < RTE_DIM(held)) {
		held[n] = test_receive(0);
		assert_non_null(held[n]);
		*ops_of(held[n]) = n + 1;
		n++;
	}
	assert_true(n > 256);
	tick();
	for (uint32_t i = 0; i < n; i++)
		assert_history(held[i], i + 1);
	rte_pktmbuf_free_bulk(held, n);
}

#define with_fates(f) cmocka_unit_test_setup_teardown(f, test_fates_begin, test_fates_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_fates(test_histories_have_room_behind_the_bytes),
		with_fates(test_open_packets_have_the_latest_history),
		with_fates(test_addresses_without_an_mbuf_are_not_followed),
		with_fates(test_all_mbufs_of_a_pool_are_found),
		with_fates(test_all_open_packets_have_theirs),
	};

	test_stats_start();
	offset = test_add_history();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
