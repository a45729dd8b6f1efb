/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory costs of statistics; polling threads must never fault this memory in. */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include <rte_ethdev.h>

#include "probe/hook/hook.h"
#include "probe/test_eal.h"
#include "probe/test_ports.h"

#define PORTS   2u
#define THREADS 3u

static uint16_t ports[PORTS];
static struct rt_monitor mon;

static int make_ports(void **state)
{
	ports[0] = test_port_make("net_ring_0");
	ports[1] = test_port_make("net_ring_1");
	return 0;
}

static int remove_ports(void **state)
{
	test_monitors_drop();
	for (unsigned i = 0; i < PORTS; i++)
		test_port_remove(ports[i]);
	return 0;
}

static uint64_t segment_bytes(void)
{
	struct stat st;

	assert_int_equal(fstat(rt_stat_current->fd, &st), 0);
	return (uint64_t)st.st_blocks * 512;
}

static uint64_t resident_bytes(void *p, uint64_t size)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), n = 0;
	unsigned char *in = malloc(size / page);

	assert_int_equal(mincore(p, size, in), 0);
	for (uint64_t i = 0; i < size / page; i++)
		n += in[i] & 1;
	free(in);
	return n * page;
}

static uint64_t row_bytes(void)
{
	return resident_bytes(rt_stat_current->rows, (uint64_t)RT_STAT_ROW * RT_MAX_THREADS);
}

static void forward(unsigned n)
{
	struct rte_mbuf *m[32];

	for (unsigned i = 0; i < PORTS; i++) {
		uint16_t got = (uint16_t)test_port_receive(ports[i], m, n);

		assert_int_equal(rte_eth_tx_burst(ports[1 - i], 0, m, got), got);
	}
}

/* docs/memory-model.md has the formula. */
static uint64_t most(uint32_t collectors)
{
	const struct rt_stats *f = rt_stat_current;
	uint64_t pages = 2 * 4096, n = 17 * 1024 + 40 * 512 + pages;

	n += f->header->thread_count * sizeof(struct rt_stat_thread) + pages;
	n += (f->header->hook_count + 16) * sizeof(struct rt_stat_hook) + pages;
	if (collectors & RT_COLLECT_LATENCY)
		n += (f->header->pair_count + 4) * sizeof(struct rt_stat_pair) + pages;
	if (collectors & RT_COLLECT_ADDRESSES)
		n += f->header->sampler_count * sizeof(struct rt_stat_sampler) + pages;
	return n;
}

static void check_memory(uint32_t collectors)
{
	test_monitor(&mon, collectors, 1);
	test_port_send(ports[0], 8);
	for (unsigned i = 0; i < 10; i++) {
		forward(32);
		test_stats_tick();
	}
	assert_in_range(segment_bytes(), 4096, most(collectors));
	assert_in_range(row_bytes(), 4096, 4096 * (rt_stat_current->header->thread_count));
}

static void test_memory_is_what_threads_and_queues_need(void **state)
{
	uint32_t usual = RT_COLLECT_POLLS | RT_COLLECT_BYTES | RT_COLLECT_BUSY | RT_COLLECT_GAPS;

	check_memory(usual);
	assert_in_range(segment_bytes() + row_bytes(), 4096, 256 << 10);
	check_memory(usual | RT_COLLECT_LATENCY);
	check_memory(usual | RT_COLLECT_LATENCY | RT_COLLECT_POOLS | RT_COLLECT_ADDRESSES);
}

/* As testpmd does. */
static void test_memory_of_an_application_that_locks_its_memory(void **state)
{
#ifdef __SANITIZE_THREAD__
	skip(); /* the shadow memory cannot be locked */
#endif
	struct rlimit limit;

	/* Below the limit mlockall() succeeds, and allocations fail later. */
	if ((geteuid() && !getrlimit(RLIMIT_MEMLOCK, &limit) && limit.rlim_cur != RLIM_INFINITY) ||
		mlockall(MCL_FUTURE))
		skip();
	check_memory(RT_COLLECT_POLLS);
	munlockall();
	assert_in_range(segment_bytes() + row_bytes(), 4096, 256 << 10);
}

/* ---- page faults ---- */

/* A thread that forwards on command, and publishes its number of page faults. */
static struct worker {
	pthread_t thread;
	uint32_t round, done;
	long faults;
} workers[THREADS];

static uint32_t quit;

static void *work(void *arg)
{
	struct worker *w = arg;

	for (;;) {
		struct rusage use;

		while (rt_load_acquire(&w->round) == w->done && !rt_load(&quit))
			sched_yield();
		if (rt_load(&quit))
			return NULL;
		for (unsigned i = 0; i < 50; i++)
			forward(1 + i % 32);
		getrusage(RUSAGE_THREAD, &use);
		w->faults = use.ru_minflt + use.ru_majflt;
		rt_store_release(&w->done, w->done + 1);
	}
}

/* One worker after the other, as the ports have one queue each. Returns the faults of all so
 * far. */
static long one_round(void)
{
	long faults = 0;

	for (unsigned i = 0; i < THREADS; i++) {
		struct worker *w = &workers[i];

		rt_store_release(&w->round, w->round + 1);
		while (rt_load_acquire(&w->done) != w->round)
			sched_yield();
		faults += w->faults;
	}
	return faults;
}

static void attach_and_tick(unsigned rounds)
{
	test_monitor(&mon, RT_COLLECT_ALL, 1);
	for (unsigned i = 0; i < rounds; i++) {
		one_round();
		test_stats_tick();
	}
}

static void test_polling_threads_do_not_fault(void **state)
{
	long before;

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
	skip(); /* shadow memory faults */
#endif
	rt_store(&quit, 0);
	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
	test_port_send(ports[0], 20);
	test_port_send(ports[1], 20);
	/* Faults of code, stacks and thread-local memory. */
	attach_and_tick(3);
	test_monitors_drop();
	before = one_round();
	/* New memory of everything that grows: threads, windows, blocks, pairs, samplers. */
	attach_and_tick(20);
	assert_int_equal(rt_stat_current->header->sampler_count, THREADS);
	assert_true(rt_stat_current->header->pair_count >= 2 * THREADS);
	assert_int_equal(one_round(), before);
	rt_store(&quit, 1);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(workers[i].thread, NULL);
}

/* The statistics that a thread uses end, and the next ones have rows for more threads. */
static void test_threads_beyond_the_rows_of_their_stats(void **state)
{
	struct rt_stat_own *own;
	struct rt_stats *f;
	uint32_t self, had;

	forward(1); /* so that it has a slot */
	test_monitor(&mon, RT_COLLECT_POLLS | RT_COLLECT_BUSY, 1);
	self = rt_thread_self->index;
	f = rt_stat_current;
	had = f->threads_ready;
	own = &f->rows[self].own;
	f->threads_ready = self;
	own->pub = NULL;
	assert_true(rt_stat_mode.threads > self);
	forward(1);
	assert_true(f->no_row_polls > 0);
	assert_int_equal(own->switching, 0);
	own->pub = &f->threads[self];
	f->threads_ready = had;
	forward(1);
	assert_int_not_equal(own->switching, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			test_memory_is_what_threads_and_queues_need, make_ports, remove_ports),
		cmocka_unit_test_setup_teardown(test_memory_of_an_application_that_locks_its_memory,
			make_ports, remove_ports),
		cmocka_unit_test_setup_teardown(
			test_polling_threads_do_not_fault, make_ports, remove_ports),
		cmocka_unit_test_setup_teardown(
			test_threads_beyond_the_rows_of_their_stats, make_ports, remove_ports),
	};

	test_stats_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
