/* SPDX-License-Identifier: BSD-3-Clause */
/* Pools that an application has filled itself, as VPP does, in every state of their lists. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "mempools.h"
#include "probe/test_eal.h"

#define OBJECTS 16u
#define CACHE   8u

static unsigned counted; /* calls of get_count */

static int nothing(struct rte_mempool *mp)
{
	return 0;
}

static void release(struct rte_mempool *mp)
{
}

static int put(struct rte_mempool *mp, void *const *objects, unsigned n)
{
	return 0;
}

static int get(struct rte_mempool *mp, void **objects, unsigned n)
{
	return -1;
}

static unsigned count(const struct rte_mempool *mp)
{
	counted++;
	return 5;
}

#define OPS(of)                                                                                  \
	{                                                                                        \
		.name = (of), .alloc = nothing, .free = release, .enqueue = put, .dequeue = get, \
		.get_count = count                                                               \
	}
static const struct rte_mempool_ops own_ops = OPS("own"), vpp_ops = OPS("vpp");
RTE_MEMPOOL_REGISTER_OPS(own_ops);
RTE_MEMPOOL_REGISTER_OPS(vpp_ops);

static struct rte_mempool *mp, *list;
static char *memory;

static struct rte_mempool *empty(const char *name, const char *ops)
{
	struct rte_pktmbuf_pool_private private = {.mbuf_data_room_size = RTE_PKTMBUF_HEADROOM};
	struct rte_mempool *p = rte_mempool_create_empty(name, OBJECTS,
		sizeof(struct rte_mbuf) + private.mbuf_data_room_size, CACHE, sizeof(private),
		SOCKET_ID_ANY, 0);

	assert_non_null(p);
	assert_int_equal(rte_mempool_set_ops_byname(p, ops, NULL), 0);
	rte_pktmbuf_pool_init(p, &private);
	p->pool_id = 0; /* in one place with pool_data */
	return p;
}

static size_t object_bytes(void)
{
	return mp->header_size + mp->elt_size + mp->trailer_size;
}

static struct rte_mempool_objhdr *header(unsigned i)
{
	return (void *)(memory + i * object_bytes() + mp->header_size -
			sizeof(struct rte_mempool_objhdr));
}

static void append(unsigned i)
{
	header(i)->mp = mp;
	STAILQ_INSERT_TAIL(&mp->elt_list, header(i), next);
	STAILQ_INSERT_TAIL(&list->elt_list, header(i), next);
	mp->populated_size++;
	list->populated_size++;
}

static void make(const char *ops)
{
	mp = empty("filled", ops);
	list = empty("list", ops);
	memory = aligned_alloc(RTE_CACHE_LINE_SIZE, OBJECTS * object_bytes());
	assert_non_null(memory);
	for (unsigned i = 0; i < OBJECTS; i++)
		append(i);
	rte_mempool_obj_iter(mp, rte_pktmbuf_init, NULL);
	counted = 0;
}

static int make_own(void **state)
{
	make("own");
	return 0;
}

static int make_vpp(void **state)
{
	make("vpp");
	return 0;
}

static int drop(void **state)
{
	STAILQ_INIT(&mp->mem_list);
	mp->nb_mem_chunks = 0;
	rte_mempool_free(list);
	rte_mempool_free(mp);
	free(memory);
	return 0;
}

struct seen {
	unsigned filled, list;
	const struct rte_mbuf *first;
	uint32_t available;
	bool placed;
	uintptr_t from, to;
};

static void see(struct rte_mempool *p, void *arg)
{
	struct seen *s = arg;

	s->list += p == list;
	if (p != mp)
		return;
	s->filled++;
	s->first = rt_mempool_first_mbuf(p);
	s->available = rt_mempool_available(p);
	s->placed = rt_mempool_place(p, &s->from, &s->to);
}

static struct seen look(void)
{
	struct seen s = {0};

	assert_true(rt_mempools_each(see, &s));
	return s;
}

static void test_pool_is_found_and_its_other_list_is_not(void **state)
{
	const struct seen s = look();

	assert_int_equal(s.filled, 1);
	assert_int_equal(s.list, 0);
	assert_ptr_equal(s.first, header(0) + 1);
	assert_true(rt_mempool_is_foreign(mp));
}

static void test_count_of_unknown_operations_is_not_read(void **state)
{
	assert_int_equal(look().available, UINT32_MAX);
	assert_int_equal(counted, 0);
}

static void test_count_of_vpp_is_read(void **state)
{
	assert_int_equal(look().available, 5);
	assert_int_equal(counted, 1);
}

static void test_mbuf_that_is_lent_to_the_other_list(void **state)
{
	struct rte_mbuf *m = (void *)(header(0) + 1);

	m->pool = list;
	assert_ptr_equal(look().first, m);
}

static void test_pool_that_is_being_filled_is_not_found(void **state)
{
	mp->populated_size--;
	assert_int_equal(look().filled, 0);
	mp->populated_size++;
}

static void test_objects_that_cannot_be_read(void **state)
{
	struct rte_mempool_objhdr *first = STAILQ_FIRST(&mp->elt_list);
	void *hole = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	STAILQ_FIRST(&mp->elt_list) = hole;
	assert_int_equal(look().filled, 0);
	STAILQ_FIRST(&mp->elt_list) = NULL;
	assert_int_equal(look().filled, 0);
	STAILQ_FIRST(&mp->elt_list) = first;
	assert_int_equal(look().filled, 1);
	munmap(hole, 4096);
}

static void test_objects_that_are_no_mbufs(void **state)
{
	memset(header(0) + 1, 0xff, sizeof(struct rte_mbuf));
	assert_null(look().first);
	assert_int_equal(look().filled, 1);
}

static void test_pool_without_chunks_has_no_place(void **state)
{
	assert_false(look().placed);
}

static void test_place_is_that_of_all_chunks(void **state)
{
	struct rte_mempool_memhdr chunks[] = {
		{.addr = memory + 4096, .len = 4096}, {.addr = memory, .len = 100}};

	for (unsigned i = 0; i < 2; i++) {
		STAILQ_INSERT_TAIL(&mp->mem_list, &chunks[i], next);
		mp->nb_mem_chunks++;
	}
	assert_true(look().placed);
	assert_int_equal(look().from, (uintptr_t)memory);
	assert_int_equal(look().to, (uintptr_t)memory + 8192);
}

static void test_chunks_that_cannot_be_read_or_never_end(void **state)
{
	struct rte_mempool_memhdr circle = {.addr = memory, .len = 100};
	void *hole = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	STAILQ_INSERT_TAIL(&mp->mem_list, &circle, next);
	STAILQ_NEXT(&circle, next) = &circle;
	mp->nb_mem_chunks = 3;
	assert_true(look().placed);
	mp->nb_mem_chunks = UINT32_MAX;
	assert_false(look().placed);
	STAILQ_NEXT(&circle, next) = hole;
	assert_false(look().placed);
	munmap(hole, 4096);
}

/* Not of the size that this DPDK gives them: nothing of the pool is used. */
static void test_caches_of_another_layout(void **state)
{
	const uint32_t size = mp->local_cache[0].size;

	assert_int_equal(look().filled, 1);
	mp->local_cache[RTE_MAX_LCORE - 1].size = size + 1;
	assert_int_equal(look().filled, 0);
	mp->local_cache[RTE_MAX_LCORE - 1].size = size;
}

#define own(f) cmocka_unit_test_setup_teardown(f, make_own, drop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		own(test_pool_is_found_and_its_other_list_is_not),
		own(test_count_of_unknown_operations_is_not_read),
		cmocka_unit_test_setup_teardown(test_count_of_vpp_is_read, make_vpp, drop),
		own(test_mbuf_that_is_lent_to_the_other_list),
		own(test_pool_that_is_being_filled_is_not_found),
		own(test_objects_that_cannot_be_read),
		own(test_objects_that_are_no_mbufs),
		own(test_pool_without_chunks_has_no_place),
		own(test_place_is_that_of_all_chunks),
		own(test_chunks_that_cannot_be_read_or_never_end),
		own(test_caches_of_another_layout),
	};

	test_eal_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
