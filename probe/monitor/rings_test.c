/* SPDX-License-Identifier: BSD-3-Clause */
/* Rings that an application fills, drains and frees while they are sampled. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/filter.h>
#include <linux/seccomp.h>

#include <cmocka.h>

#include <rte_malloc.h>
#include <rte_mempool.h>
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
	assert_int_equal(rt_ring_read(ring, &level), 0);
	assert_int_equal(level.used, 11);
	ring->cons.head = ring->cons.tail = 6; /* taken between the two readings */
	assert_int_equal(rt_ring_read(ring, &level), 0);
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
		assert_int_equal(rt_ring_read(r, &level), 0);
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

static void assert_no_ring_of_a_pool(void)
{
	test_stats_tick();
	for (uint32_t i = 0; i < rt_stat_current->header->ring_count; i++)
		assert_int_not_equal(strncmp(rt_stat_current->rings[i].name, "MP_", 3), 0);
}

static void rings_of_mempools_are_left_out(void **state)
{
	static _Alignas(RTE_CACHE_LINE_SIZE) char memory[1024];
	struct rte_mempool *p = rte_mempool_create_empty("part", 63, 64, 0, 0, SOCKET_ID_ANY, 0);
	uint32_t pools;

	assert_non_null(test_pool());
	assert_no_ring_of_a_pool();
	/* Being filled: the table lacks it, but it has a ring already. */
	pools = rt_stat_current->header->pool_count;
	assert_non_null(p);
	assert_in_range(
		rte_mempool_populate_iova(p, memory, RTE_BAD_IOVA, sizeof(memory), NULL, NULL), 1,
		62);
	assert_non_null(rte_ring_lookup("MP_part"));
	assert_no_ring_of_a_pool();
	assert_int_equal(rt_stat_current->header->pool_count, pools);
	rte_mempool_free(p);
}

static void memory_that_is_gone_or_is_no_ring_is_skipped(void **state)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct rte_ring *r =
		mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct rt_ring_level level;

	assert_ptr_not_equal(r, MAP_FAILED);
	assert_int_equal(rt_ring_read(r, &level), -EINVAL); /* zeroes: freed */
	memcpy(r, ring, sizeof(*r));
	assert_int_equal(rt_ring_read(r, &level), 0);
	r->capacity = 64;
	assert_int_equal(rt_ring_read(r, &level), -EINVAL);
	r->capacity = 40;
	r->mask = 62;
	assert_int_equal(rt_ring_read(r, &level), -EINVAL);
	memset(r, 0xff, sizeof(*r));
	assert_int_equal(rt_ring_read(r, &level), -EINVAL);
	munmap(r, page);
	assert_int_equal(rt_ring_read(r, &level), -EINVAL);
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

/* A seccomp filter as of service managers, here for one thread only. */
static void *sample_without_readv(void *arg)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_process_vm_readv, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = {.len = RTE_DIM(code), .filter = code};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter))
		return NULL;
	test_stats_tick();
	return arg;
}

static void rings_that_the_kernel_refuses_to_read_are_counted(void **state)
{
	pthread_t thread;
	void *sampled;

	assert_int_equal(pthread_create(&thread, NULL, sample_without_readv, &mon), 0);
	pthread_join(thread, &sampled);
	if (!sampled) {
		print_message("skipped: the kernel refuses filters of seccomp\n");
		skip();
	}
	assert_int_equal(find("work")->state, RT_IF_GONE);
	assert_in_range(rt_stat_current->header->rings_beyond, 1, RT_RINGS_MAX);
	test_stats_tick();
	assert_int_equal(find("work")->state, RT_IF_PRESENT);
	assert_int_equal(rt_stat_current->header->rings_beyond, 0);
}

#define FREES 5000

struct freeing {
	uint32_t freed, samples; /* atomic */
};

/* Fills rings of one name and frees them, at addresses that other allocations use in between. The
 * other thread may get no CPU for long: until it has taken a sample. */
static void *free_rings(void *arg)
{
	struct freeing *f = arg;
	void *objects[40] = {0};

	for (; rt_load(&f->freed) < FREES || !rt_load(&f->samples);
		rt_store(&f->freed, rt_load(&f->freed) + 1)) {
		struct rte_ring *r = rte_ring_create("freed", 64, SOCKET_ID_ANY, 0);
		void *other;

		if (!r || rte_ring_enqueue_bulk(r, objects, 40, NULL) != 40)
			return NULL;
		rte_ring_free(r);
		other = rte_malloc(NULL, 4096, 0);
		if (!other)
			return NULL;
		memset(other, 0xa5, 4096);
		rte_free(other);
	}
	return arg;
}

static void rings_are_freed_while_they_are_sampled(void **state)
{
	uint32_t count = rt_stat_current->header->ring_count;
	struct freeing f = {0};
	pthread_t thread;
	void *done;

	put(50);
	assert_int_equal(pthread_create(&thread, NULL, free_rings, &f), 0);
	do {
		const struct rt_stat_ring *r;

		test_stats_tick();
		assert_int_equal(find("work")->used, 50);
		r = find("freed");
		assert_true(!r || (r->capacity == 63 && r->used <= 40 && r->highest <= 40));
		rt_store(&f.samples, f.samples + 1);
	} while (rt_load(&f.freed) < FREES);
	pthread_join(thread, &done);
	assert_non_null(done);
	assert_in_range(rt_stat_current->header->ring_count, count, count + 1);
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
		cmocka_unit_test_setup_teardown(
			rings_that_the_kernel_refuses_to_read_are_counted, start, end),
		cmocka_unit_test_setup_teardown(rings_are_freed_while_they_are_sampled, start, end),
		cmocka_unit_test_setup_teardown(rings_beyond_the_table_are_counted, start, end),
	};

	test_eal_start();
	return cmocka_run_group_tests_name("rings", tests, NULL, NULL);
}
