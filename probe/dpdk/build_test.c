/* SPDX-License-Identifier: BSD-3-Clause */
/* Builds of DPDK with other options. The linker replaces functions of DPDK by those of such builds.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <rte_ethdev.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>
#include <rte_memzone.h>

#include "build.h"
#include "mempools.h"
#include "ports.h"
#include "ringtap/probe.h"
#include "probe/test_eal.h"

static unsigned max_ports, max_lcores; /* 0: as it is */
static size_t next_at = offsetof(struct rte_mbuf, next);
static uint16_t watched[2];
static unsigned watches;

uint16_t __real_rte_eth_find_next(uint16_t port);
uint16_t __wrap_rte_eth_find_next(uint16_t port);
uint16_t __wrap_rte_eth_find_next(uint16_t port)
{
	uint16_t next = __real_rte_eth_find_next(port);

	return max_ports && next >= RTE_MAX_ETHPORTS ? max_ports : next;
}

int __wrap_rte_eth_dev_callback_register(
	uint16_t port, enum rte_eth_event_type event, rte_eth_dev_cb_fn f, void *arg);
int __wrap_rte_eth_dev_callback_register(
	uint16_t port, enum rte_eth_event_type event, rte_eth_dev_cb_fn f, void *arg)
{
	watched[watches++ % RTE_DIM(watched)] = port;
	return 0;
}

int __wrap_rte_eth_dev_callback_unregister(
	uint16_t port, enum rte_eth_event_type event, rte_eth_dev_cb_fn f, void *arg);
int __wrap_rte_eth_dev_callback_unregister(
	uint16_t port, enum rte_eth_event_type event, rte_eth_dev_cb_fn f, void *arg)
{
	watched[watches++ % RTE_DIM(watched)] = port;
	return 0;
}

unsigned __real_rte_get_next_lcore(unsigned i, int skip_main, int wrap);
unsigned __wrap_rte_get_next_lcore(unsigned i, int skip_main, int wrap);
unsigned __wrap_rte_get_next_lcore(unsigned i, int skip_main, int wrap)
{
	unsigned next = __real_rte_get_next_lcore(i, skip_main, wrap);

	return max_lcores && next >= RTE_MAX_LCORE ? max_lcores : next;
}

const void *__wrap___rte_pktmbuf_read(
	const struct rte_mbuf *m, uint32_t off, uint32_t len, void *buf);
const void *__wrap___rte_pktmbuf_read(
	const struct rte_mbuf *m, uint32_t off, uint32_t len, void *buf)
{
	while (off >= m->data_len) {
		off -= m->data_len;
		memcpy(&m, (const char *)m + next_at, sizeof(m));
	}
	return rte_pktmbuf_mtod_offset(m, const void *, off);
}

static void assert_refused(const char *option)
{
	assert_int_equal(rt_build_check(), -ENOTSUP);
	assert_non_null(strstr(rt_build_why(), option));
	assert_true(strlen(rt_build_why()) + 1 < RT_BUILD_TEXT); /* nothing is cut */
	assert_int_equal(ringtap_probe_start(), -ENOTSUP);
}

static void test_own_build_is_served(void **state)
{
	assert_int_equal(rt_build_check(), 0);
	assert_int_equal(rt_build_ports(), RTE_MAX_ETHPORTS);
	assert_int_equal(rt_build_lcores(), RTE_MAX_LCORE);
}

static void test_other_place_of_next_is_refused(void **state)
{
	next_at = offsetof(struct rte_mbuf, next) ? 8 : 64;
	assert_refused("enable_iova_as_pa");
	next_at = 72; /* no known build has it */
	assert_refused("enable_iova_as_pa");
	next_at = offsetof(struct rte_mbuf, next);
}

static void changed(uint16_t port)
{
}

/* RTE_ETH_ALL is RTE_MAX_ETHPORTS: with that of another build, DPDK takes it for a port. */
static void test_events_of_all_ports_are_watched_with_any_number_of_ports(void **state)
{
	static const uint16_t numbers[] = {8, 1024};

	for (size_t i = 0; i < RTE_DIM(numbers); i++) {
		max_ports = numbers[i];
		assert_int_equal(rt_build_check(), 0);
		assert_int_equal(rt_ports_watch(changed), 0);
		assert_int_equal(watched[0], numbers[i]);
		assert_int_equal(watched[1], numbers[i]);
		rt_ports_unwatch();
		assert_int_equal(watched[0], numbers[i]);
		assert_int_equal(watched[1], numbers[i]);
	}
	max_ports = 0;
	assert_int_equal(watches, 8);
}

#define LINE    RTE_CACHE_LINE_SIZE
#define PRIVATE 64
#define CACHED  250

/* A pool as a build lays it out: more bytes in its header and in the caches of its threads. */
struct build {
	unsigned lcores;
	size_t more, cache;
};

static struct rte_mempool *make(const struct build *b, uint32_t cache_size)
{
	size_t head = sizeof(struct rte_mempool) + b->more;
	size_t len = head + (cache_size ? b->lcores * b->cache : 0) + PRIVATE;
	struct rte_memzone *mz = calloc(1, sizeof(*mz));
	struct rte_mempool *mp = aligned_alloc(LINE, len);

	memset(mp, 0, len);
	mz->len = len;
	mp->mz = mz;
	mp->cache_size = cache_size;
	mp->private_data_size = PRIVATE;
	mp->local_cache = RTE_PTR_ADD(mp, head);
	for (unsigned i = 0; cache_size && i < b->lcores; i++) {
		struct rte_mempool_cache *c = RTE_PTR_ADD(mp, head + i * b->cache);

		c->size = cache_size;
		c->len = i + 1;
	}
	max_lcores = b->lcores;
	return mp;
}

static void unmake(struct rte_mempool *mp)
{
	free((void *)(uintptr_t)mp->mz);
	free(mp);
	max_lcores = 0;
}

static void test_pools_of_any_build_are_read(void **state)
{
	static const struct build builds[] = {
		{RTE_MAX_LCORE, 0, sizeof(struct rte_mempool_cache)},
		{16, 0, sizeof(struct rte_mempool_cache)},
		{512, 17 * LINE, LINE + 2048 * sizeof(void *)},
		{1536, 0, LINE + 1024 * sizeof(void *)},
	};

	for (size_t i = 0; i < RTE_DIM(builds); i++) {
		struct rte_mempool *mp = make(&builds[i], CACHED);
		struct rt_mempool_caches c;

		assert_true(rt_mempool_caches(mp, &c));
		assert_int_equal(c.count, builds[i].lcores);
		for (unsigned k = 0; k < c.count; k++)
			assert_int_equal(rt_mempool_cache(mp, &c, k)->len, k + 1);
		assert_int_equal(
			c.room, (builds[i].cache - offsetof(struct rte_mempool_cache, objs)) /
					sizeof(void *));
		assert_ptr_equal(rt_mempool_private(mp), RTE_PTR_ADD(mp, mp->mz->len - PRIVATE));
		unmake(mp);
		mp = make(&builds[i], 0);
		assert_true(rt_mempool_caches(mp, &c));
		assert_int_equal(c.count, 0);
		unmake(mp);
	}
}

static bool fits(const struct rte_mempool *mp)
{
	struct rt_mempool_caches c;

	return rt_mempool_caches(mp, &c);
}

static void test_pool_of_a_strange_layout_is_not_read(void **state)
{
	static const struct build build = {16, 0, sizeof(struct rte_mempool_cache)};
	struct rte_mempool *mp = make(&build, CACHED);

	max_lcores = 17;
	assert_false(fits(mp));
	max_lcores = 32;
	assert_false(fits(mp));
	max_lcores = build.lcores;
	assert_true(fits(mp));
	mp->cache_size = 100000;
	assert_false(fits(mp));
	mp->cache_size = 0;
	assert_false(fits(mp));
	mp->cache_size = CACHED;
	mp->local_cache = (void *)&mp->local_cache;
	assert_false(fits(mp));
	unmake(mp);
}

/* With RTE_LIBRTE_MEMPOOL_DEBUG, the header of an object ends with a number. */
static void test_first_mbuf_of_a_debug_build_is_found(void **state)
{
	struct {
		struct rte_mempool_objhdr h;
		uint64_t cookie;
		char object[256];
	} after = {.cookie = 0xbadbadbadadd2e55ull};
	struct rte_mempool mp = {.private_data_size = PRIVATE, .elt_size = sizeof(after.object)};
	struct rte_mbuf *m = (struct rte_mbuf *)after.object;

	STAILQ_INIT(&mp.elt_list);
	STAILQ_INSERT_HEAD(&mp.elt_list, &after.h, next);
	assert_null(rt_mempool_first_mbuf(&mp));
	m->pool = &mp;
	m->buf_addr = after.object;
	assert_ptr_equal(rt_mempool_first_mbuf(&mp), m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_own_build_is_served),
		cmocka_unit_test(test_other_place_of_next_is_refused),
		cmocka_unit_test(test_events_of_all_ports_are_watched_with_any_number_of_ports),
		cmocka_unit_test(test_pools_of_any_build_are_read),
		cmocka_unit_test(test_pool_of_a_strange_layout_is_not_read),
		cmocka_unit_test(test_first_mbuf_of_a_debug_build_is_found),
	};

	test_eal_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
