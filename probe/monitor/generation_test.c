/* SPDX-License-Identifier: BSD-3-Clause */
/* Monitors while threads, ports and pools are replaced, and when tables are full. */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include <rte_ethdev.h>
#include <rte_malloc.h>

#include "probe/hook/hook.h"
#include "probe/dpdk/ports.h"
#include "probe/monitor/refresh.h"
#include "probe/test_eal.h"
#include "probe/test_ports.h"

static uint16_t port;
static struct rt_monitor mon;

static int make_port(void **state)
{
	port = test_port_make("net_ring_0");
	return 0;
}

static int remove_port(void **state)
{
	test_monitors_drop();
	test_port_remove(port);
	return 0;
}

/* ---- threads ---- */

/* A thread that polls or sends a number of times, and then waits for its release. */
struct poller {
	pthread_t thread;
	unsigned polls, sends;
	uint32_t done, leave;
	struct rt_thread *slot;
};

static void *poll_and_wait(void *arg)
{
	struct poller *p = arg;

	for (unsigned i = 0; i < p->polls; i++)
		test_port_poll(port, 32);
	for (unsigned i = 0; i < p->sends; i++)
		test_port_send(port, 1);
	p->slot = rt_thread_self;
	rt_store_release(&p->done, 1);
	while (!rt_load_acquire(&p->leave))
		sched_yield();
	return NULL;
}

static void start_both(struct poller *p, unsigned polls, unsigned sends)
{
	*p = (struct poller){.polls = polls, .sends = sends};
	assert_int_equal(pthread_create(&p->thread, NULL, poll_and_wait, p), 0);
	while (!rt_load_acquire(&p->done))
		sched_yield();
}

static void start(struct poller *p, unsigned polls)
{
	start_both(p, polls, 0);
}

static void end(struct poller *p)
{
	rt_store_release(&p->leave, 1);
	pthread_join(p->thread, NULL);
}

static void test_new_owner_of_a_slot_continues_its_counters(void **state)
{
	struct poller p;
	const struct rt_stat_thread *t;
	uint64_t idle, since;
	uint32_t generation, slot, blocks;

	test_monitor(&mon, RT_COLLECT_POLLS | RT_COLLECT_BUSY | RT_COLLECT_GAPS, 1);
	start(&p, 10);
	slot = p.slot->index;
	t = &rt_stat_current->threads[slot];
	generation = t->generation;
	since = t->since_tsc;
	assert_true(generation && since);
	test_stats_tick();
	assert_int_equal(t->alive, 1);
	end(&p);
	/* The current period has ended. */
	assert_int_equal(t->since_tsc, 0);
	idle = t->idle_cycles;
	assert_true(idle > 0);
	test_stats_tick();
	assert_int_equal(t->alive, 0);
	blocks = rt_stat_current->header->hook_count;
	test_spin(1000000);
	start(&p, 5);
	assert_int_equal(p.slot->index, slot);
	assert_int_not_equal(t->generation, generation);
	assert_int_equal(rt_stat_current->header->hook_count, blocks);
	/* The time between the two belongs to neither. */
	assert_int_equal(t->idle_cycles, idle);
	assert_int_equal(test_sum(t->gaps_idle, RT_STAT_GAP_SIZES), 9 + 4);
	for (uint32_t i = 0; i < blocks; i++) {
		if (rt_stat_current->hooks[i].thread == slot)
			assert_int_equal(rt_stat_current->hooks[i].burst[0], 15);
	}
	test_stats_tick();
	assert_int_equal(t->alive, 1);
	end(&p);
}

/* It only counts sent bursts: only the slot shows that the owner has changed. */
static void test_new_owner_that_only_sends(void **state)
{
	struct poller p;
	const struct rt_stat_thread *t;
	uint32_t generation, slot, tid;

	test_monitor(&mon, RT_COLLECT_POLLS, 1);
	start_both(&p, 0, 10);
	slot = p.slot->index;
	t = &rt_stat_current->threads[slot];
	generation = t->generation;
	tid = t->tid;
	test_stats_tick();
	assert_int_equal(t->alive, 1);
	end(&p);
	test_stats_tick();
	assert_int_equal(t->alive, 0);
	start_both(&p, 0, 10);
	assert_int_equal(p.slot->index, slot);
	assert_int_not_equal(t->generation, generation);
	assert_int_equal(t->generation, p.slot->generation);
	assert_int_equal(t->tid, p.slot->tid);
	assert_int_not_equal(t->tid, tid);
	test_stats_tick();
	assert_int_equal(t->alive, 1);
	for (uint32_t i = 0; i < rt_stat_current->header->hook_count; i++) {
		if (rt_stat_current->hooks[i].thread == slot)
			assert_int_equal(rt_stat_current->hooks[i].burst[1], 20);
	}
	end(&p);
	test_port_poll(port, 32);
}

/* The sum over all blocks. */
static uint64_t calls_counted(void)
{
	const struct rt_stats *f = rt_stat_current;
	uint64_t n = 0;

	for (uint32_t i = 0; i < f->header->hook_count; i++)
		n += test_sum(f->hooks[i].burst, RT_STAT_BURSTS + 1);
	return n;
}

/* Threads that start at the same time get their memory a few ticks later. */
static void test_threads_without_slot_or_memory_are_counted(void **state)
{
	static struct poller crowd[RT_MAX_THREADS + 3];
	const struct rt_stat_header *h;
	unsigned without = 0;
	uint64_t calls = 1;

	test_monitor(&mon, RT_COLLECT_POLLS, 1);
	h = rt_stat_current->header;
	test_port_poll(port, 32);
	for (unsigned round = 0; h->hook_count < RT_MAX_THREADS; round++) {
		assert_in_range(round, 0, 20);
		for (unsigned i = 0; i < RTE_DIM(crowd); i++)
			start(&crowd[i], 2);
		without = 0;
		for (unsigned i = 0; i < RTE_DIM(crowd); i++)
			without += !crowd[i].slot;
		assert_int_equal(without, 4); /* this thread also has a slot */
		for (unsigned i = 0; i < RTE_DIM(crowd); i++)
			end(&crowd[i]);
		calls += 2 * RTE_DIM(crowd);
		test_stats_tick();
		assert_int_equal(h->no_thread_polls, 2 * without * (round + 1));
		assert_int_equal(calls_counted() + h->no_block_polls + h->no_thread_polls, calls);
		assert_true(round || h->no_block_polls);
	}
	assert_int_equal(h->thread_count, RT_MAX_THREADS);
}

static void test_calls_that_find_no_block_are_counted(void **state)
{
	test_monitor(&mon, RT_COLLECT_POLLS | RT_COLLECT_BUSY, 1);
	rt_store(&rt_stat_current->header->hook_count, RT_STAT_HOOKS - 1);
	test_stats_tick();
	test_port_poll(port, 32);
	test_port_send(port, 3); /* gets the last but none */
	for (unsigned i = 0; i < 4; i++)
		test_port_poll(port, 32);
	test_port_send(port, 2);
	test_stats_tick();
	assert_int_equal(rt_stat_current->header->hook_count, RT_STAT_HOOKS);
	assert_int_equal(rt_stat_current->header->no_block_polls, 2);
	assert_int_equal(rt_stat_current->hooks[RT_STAT_HOOKS - 1].direction, RT_DIR_RX);
	assert_int_equal(test_sum(rt_stat_current->hooks[RT_STAT_HOOKS - 1].burst, 33), 5);
	/* The statistics of the thread need no block. */
	assert_int_equal(test_thread()->busy_periods, 1);
}

/* ---- addresses ---- */

static void test_addresses_are_those_of_the_packets(void **state)
{
	struct rte_mbuf *m[32];
	const struct rt_stat_run *st;
	static uint64_t expected[RT_STAT_RUN];
	unsigned n = 0;

	test_monitor(&mon, RT_COLLECT_ADDRESSES, 1);
	test_stats_tick();
	while (n < RT_STAT_RUN) {
		unsigned burst = 1 + n % 32;

		test_port_send(port, burst);
		assert_int_equal(test_port_receive(port, m, 32), burst);
		for (unsigned i = 0; i < burst && n < RT_STAT_RUN; i++)
			expected[n++] = (uintptr_t)m[i]->buf_addr;
		rte_pktmbuf_free_bulk(m, burst);
	}
	assert_int_equal(rt_stat_current->header->sampler_count, 1);
	st = &rt_stat_current->samplers[0].run[rt_stat_mode.wanted % RT_STAT_RUNS];
	assert_int_equal(st->number, rt_stat_mode.wanted);
	assert_int_equal(st->number, rt_stat_current->samplers[0].done);
	assert_int_equal(st->count, RT_STAT_RUN);
	for (unsigned i = 0; i < RT_STAT_RUN; i++) {
		assert_int_equal(st->sample[i].buf_addr, expected[i]);
		assert_int_equal(st->sample[i].port_index, test_port_index(port));
	}
	/* No further run before it is requested. */
	test_port_send(port, 4);
	test_port_poll(port, 32);
	assert_int_equal(st->number, rt_stat_mode.wanted);
	assert_int_equal(rt_stat_current->samplers[0].done, rt_stat_mode.wanted);
}

static void test_little_traffic_gives_short_runs(void **state)
{
	const struct rt_stat_sampler *s;
	uint64_t first;

	test_monitor(&mon, RT_COLLECT_ADDRESSES, 1);
	test_stats_tick();
	first = rt_stat_mode.wanted;
	for (unsigned i = 0; i < 8; i++) {
		test_port_send(port, 3);
		test_port_poll(port, 32);
		test_stats_tick();
	}
	s = &rt_stat_current->samplers[0];
	assert_int_equal(s->done, first);
	assert_int_equal(s->run[first % RT_STAT_RUNS].count, 18);
}

/* A run that was started for a monitor that has ended is not continued for the next one, although
 * another monitor has kept the statistics. */
static void test_runs_end_with_the_collector(void **state)
{
	static struct rt_monitor other;
	const struct rt_stat_sampler *s;
	uint64_t first;

	test_monitor(&mon, RT_COLLECT_POLLS, 1);
	test_monitor(&other, RT_COLLECT_POLLS | RT_COLLECT_ADDRESSES, 1);
	test_stats_tick();
	first = rt_stat_mode.wanted;
	test_port_send(port, 7);
	test_port_poll(port, 32);
	s = &rt_stat_current->samplers[0];
	assert_int_equal(s->run[first % RT_STAT_RUNS].count, 7);
	test_monitor(&other, RT_COLLECT_POLLS, 1);
	for (unsigned i = 0; i < 7; i++)
		test_stats_tick();
	test_monitor(&other, RT_COLLECT_POLLS | RT_COLLECT_ADDRESSES, 1);
	test_port_send(port, 5);
	test_port_poll(port, 32);
	assert_int_equal(s->done, 0);
	assert_int_equal(s->run[first % RT_STAT_RUNS].number, 0);
	assert_int_equal(s->run[rt_stat_mode.wanted % RT_STAT_RUNS].count, 5);
	for (unsigned i = 0; i < 8; i++)
		test_stats_tick();
	test_port_send(port, 5);
	test_port_poll(port, 32);
	assert_int_equal(s->done, first + 7);
	assert_int_equal(s->run[s->done % RT_STAT_RUNS].count, 10);
}

static void test_threads_without_a_sampler(void **state)
{
	test_monitor(&mon, RT_COLLECT_ADDRESSES | RT_COLLECT_POLLS, 1);
	rt_store(&rt_stat_current->header->sampler_count, RT_STAT_SAMPLERS);
	test_stats_tick();
	test_port_send(port, 3);
	test_port_poll(port, 32);
	assert_int_equal(test_block(port, RT_DIR_RX)->burst[3], 1);
	assert_int_equal(rt_stat_current->header->sampler_count, RT_STAT_SAMPLERS);
}

/* ---- pools ---- */

static const struct rt_stat_pool *find_pool(const char *name, uint32_t state)
{
	for (uint32_t i = 0; i < rt_stat_current->header->pool_count; i++) {
		const struct rt_stat_pool *p = &rt_stat_current->pools[i];

		if (strcmp(p->name, name) == 0 && p->state == state)
			return p;
	}
	return NULL;
}

static void test_pools_are_described(void **state)
{
	struct rte_mempool *mp = rte_pktmbuf_pool_create("mine", 1000, 32, 0, 2000, SOCKET_ID_ANY);
	const struct rt_stat_pool *p;
	struct rte_mbuf *m[100];

	assert_non_null(mp);
	test_monitor(&mon, RT_COLLECT_POOLS, 1);
	p = find_pool("mine", RT_IF_PRESENT);
	assert_non_null(p);
	assert_string_equal(p->ops, "ring_mp_mc");
	assert_int_equal(p->address, (uintptr_t)mp);
	assert_int_equal(p->size, 1000);
	assert_int_equal(p->available, 1000);
	assert_int_equal(p->in_caches, 0);
	assert_int_equal(p->cache_size, 32);
	assert_int_equal(p->buffer_bytes, 2000);
	assert_int_equal(p->object_bytes, mp->header_size + mp->elt_size + mp->trailer_size);
	assert_int_equal(p->memory, RT_MEM_DPDK);
	assert_true(p->page_bytes == 4096 || p->page_bytes == 2 << 20); /* --no-huge; maybe THP */
	assert_false(p->pinned_external);
	assert_int_equal(rte_pktmbuf_alloc_bulk(mp, m, 100), 0);
	for (unsigned i = 0; i < 100; i++)
		assert_in_range((uintptr_t)m[i], p->base, p->base + p->span - 1);
	test_stats_tick();
	assert_int_equal(p->available, 900);
	assert_int_equal(p->in_caches, mp->local_cache[rte_lcore_id()].len);
	assert_int_equal(p->cache[rte_lcore_id()], p->in_caches);
	rte_pktmbuf_free_bulk(m, 100);
	test_stats_tick();
	assert_int_equal(p->available, 1000);
	assert_int_equal(p->lowest, 900);
	rte_mempool_free(mp);
	test_stats_tick();
	assert_int_equal(p->state, RT_IF_GONE);
	/* A pool of the same name, perhaps at the same address, is another one. */
	mp = rte_pktmbuf_pool_create("mine", 500, 0, 0, 2000, SOCKET_ID_ANY);
	test_stats_tick();
	assert_ptr_not_equal(find_pool("mine", RT_IF_PRESENT), p);
	assert_int_equal(find_pool("mine", RT_IF_PRESENT)->size, 500);
	rte_mempool_free(mp);
}

static void test_pools_that_hold_no_packets(void **state)
{
	struct rte_mempool *mp = rte_mempool_create(
		"things", 63, 100, 0, 0, NULL, NULL, NULL, NULL, SOCKET_ID_ANY, 0);
	const struct rt_stat_pool *p;

	test_monitor(&mon, RT_COLLECT_POOLS, 1);
	p = find_pool("things", RT_IF_PRESENT);
	assert_int_equal(p->buffer_bytes, 0);
	assert_int_equal(p->size, 63);
	rte_mempool_free(mp);
}

/* Created, but not populated: none of its functions can be called yet. */
static void test_incomplete_pools_are_skipped(void **state)
{
	struct rte_mempool *mp = rte_mempool_create_empty("empty", 63, 100, 0, 0, SOCKET_ID_ANY, 0);

	assert_non_null(mp);
	test_monitor(&mon, RT_COLLECT_POOLS, 1);
	assert_null(find_pool("empty", RT_IF_PRESENT));
	assert_int_equal(rte_mempool_populate_default(mp), 63);
	test_stats_tick();
	assert_non_null(find_pool("empty", RT_IF_PRESENT));
	rte_mempool_free(mp);
}

/* Populated, but its mbufs are initialized later: it is detected when they are. */
static void test_pools_whose_mbufs_are_initialized_later(void **state)
{
	struct rte_mempool *mp = rte_mempool_create("late", 63, sizeof(struct rte_mbuf) + 500, 0,
		sizeof(struct rte_pktmbuf_pool_private), rte_pktmbuf_pool_init,
		&(struct rte_pktmbuf_pool_private){.mbuf_data_room_size = 500}, NULL, NULL,
		SOCKET_ID_ANY, 0);

	assert_non_null(mp);
	test_monitor(&mon, RT_COLLECT_POOLS, 1);
	assert_int_equal(find_pool("late", RT_IF_PRESENT)->buffer_bytes, 0);
	assert_int_equal(rte_mempool_obj_iter(mp, rte_pktmbuf_init, NULL), 63);
	test_stats_tick();
	assert_int_equal(find_pool("late", RT_IF_PRESENT)->buffer_bytes, 500);
	rte_mempool_free(mp);
}

/* Buffers outside of the pool: their own addresses are examined. */
static void test_pinned_buffers_have_their_own_addresses(void **state)
{
	const size_t size = 2 << 20;
	struct rte_pktmbuf_extmem ext = {
		.buf_len = size, .elt_size = 2048, .buf_iova = RTE_BAD_IOVA};
	const struct rt_stat_pool *p;
	struct rte_mempool *mp;

	ext.buf_ptr = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(ext.buf_ptr, MAP_FAILED);
	(void)madvise(ext.buf_ptr, size, MADV_NOHUGEPAGE);
	memset(ext.buf_ptr, 0, size);
	mp = rte_pktmbuf_pool_create_extbuf("pinned", 63, 0, 0, 2048, SOCKET_ID_ANY, &ext, 1);
	assert_non_null(mp);
	test_monitor(&mon, RT_COLLECT_POOLS, 1);
	p = find_pool("pinned", RT_IF_PRESENT);
	assert_int_equal(p->pinned_external, 1);
	assert_int_equal(p->memory, RT_MEM_EXTERNAL);
	assert_int_equal(p->page_bytes, sysconf(_SC_PAGESIZE));
	assert_int_equal(p->buffer_bytes, 2048);
	rte_mempool_free(mp);
	munmap(ext.buf_ptr, size);
}

static void test_more_pools_than_the_table_holds(void **state)
{
	static struct rte_mempool *mp[RT_STAT_POOLS + 2];
	char name[32];

	for (unsigned i = 0; i < RTE_DIM(mp); i++) {
		snprintf(name, sizeof(name), "pool%u", i);
		mp[i] = rte_mempool_create(
			name, 7, 64, 0, 0, NULL, NULL, NULL, NULL, SOCKET_ID_ANY, 0);
		assert_non_null(mp[i]);
	}
	test_monitor(&mon, RT_COLLECT_POOLS, 1);
	assert_int_equal(rt_stat_current->header->pool_count, RT_STAT_POOLS);
	test_stats_tick();
	assert_int_equal(rt_stat_current->header->pool_count, RT_STAT_POOLS);
	assert_in_range(rt_stat_current->header->pools_beyond, 2, RT_STAT_POOLS);
	for (unsigned i = 0; i < RTE_DIM(mp); i++)
		rte_mempool_free(mp[i]);
	test_stats_tick();
	assert_null(find_pool("pool0", RT_IF_PRESENT));
	assert_int_equal(rt_stat_current->header->pools_beyond, 0);
}

/* ---- ports ---- */

static void test_ports_that_come_and_go(void **state)
{
	uint16_t other;
	uint32_t index;

	test_monitor(&mon, RT_COLLECT_POLLS, 1);
	assert_int_equal(rt_ports_watch(rt_hook_cut), 0);
	other = test_port_make("net_ring_1");
	rt_stats_scan_ports(
		rt_stat_current); /* queues are set up after the port has been announced */
	index = test_port_index(other);
	assert_int_equal(test_port_callbacks(other), 2);
	test_port_poll(other, 32);
	assert_int_equal(test_block(other, RT_DIR_RX)->burst[0], 1);
	test_port_remove(other);
	assert_int_equal(test_port_callbacks(other), 0);
	assert_null(rt_hook_get(other, 0, RT_DIR_RX)->stats);
	rt_stats_scan_ports(rt_stat_current);
	assert_int_equal(rt_stat_current->ports[index].state, RT_IF_GONE);
	rt_ports_unwatch();
	test_monitors_drop();
	assert_int_equal(test_port_callbacks(port), 0);
}

static void test_ports_beyond_the_table_are_not_used(void **state)
{
	uint16_t other;

	test_monitor(&mon, RT_COLLECT_POLLS, 1);
	for (uint32_t i = rt_stat_current->header->port_count; i < RT_STAT_PORTS; i++)
		rt_stat_current->ports[i].state = RT_IF_GONE;
	rt_store(&rt_stat_current->header->port_count, RT_STAT_PORTS);
	assert_int_equal(rt_ports_watch(rt_hook_cut), 0);
	other = test_port_make("net_ring_1");
	rt_stats_scan_ports(rt_stat_current);
	rt_stats_scan_ports(rt_stat_current);
	assert_int_equal(test_port_callbacks(other), 0);
	assert_int_equal(rt_stat_current->header->port_count, RT_STAT_PORTS);
	assert_int_equal(rt_stat_current->header->ports_beyond, 1);
	test_port_remove(other);
	rt_stats_scan_ports(rt_stat_current);
	assert_int_equal(rt_stat_current->header->ports_beyond, 0);
	rt_ports_unwatch();
}

/* ---- switching under traffic ---- */

static uint32_t quit;

static void *forward(void *arg)
{
	uint64_t rounds = 0;

	while (!rt_load(&quit)) {
		test_port_forward(port);
		if (++rounds % 64 == 0)
			sched_yield();
	}
	return NULL;
}

static void test_monitors_switch_and_end_under_traffic(void **state)
{
	static struct rt_monitor some[3];
	unsigned seed = 1;
	pthread_t thread;

	rt_store(&quit, 0);
	test_port_send(port, 100);
	assert_int_equal(pthread_create(&thread, NULL, forward, NULL), 0);
	for (unsigned i = 0; i < 3000; i++) {
		struct rt_monitor *m = &some[rand_r(&seed) % 3];

		if (m->attached && rand_r(&seed) % 2)
			rt_stats_detach(m, test_clock());
		else
			test_monitor(m, rand_r(&seed) % (RT_COLLECT_ALL + 1), rand_r(&seed) % 3);
		if (i % 8 == 0)
			sched_yield();
		if (i % 16 == 0)
			test_stats_tick();
		rt_stats_reclaim();
		rt_hook_reclaim();
	}
	test_monitors_drop();
	assert_null(rt_stat_current);
	assert_int_equal(test_port_callbacks(port), 0);
	rt_store(&quit, 1);
	pthread_join(thread, NULL);
}

#define with_port(f) cmocka_unit_test_setup_teardown(f, make_port, remove_port)

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_port(test_new_owner_of_a_slot_continues_its_counters),
		with_port(test_new_owner_that_only_sends),
		with_port(test_calls_that_find_no_block_are_counted),
		with_port(test_addresses_are_those_of_the_packets),
		with_port(test_little_traffic_gives_short_runs),
		with_port(test_runs_end_with_the_collector),
		with_port(test_threads_without_a_sampler),
		with_port(test_pools_are_described),
		with_port(test_pools_that_hold_no_packets),
		with_port(test_incomplete_pools_are_skipped),
		with_port(test_pools_whose_mbufs_are_initialized_later),
		with_port(test_pinned_buffers_have_their_own_addresses),
		with_port(test_more_pools_than_the_table_holds),
		with_port(test_ports_that_come_and_go),
		with_port(test_ports_beyond_the_table_are_not_used),
		with_port(test_monitors_switch_and_end_under_traffic),
		with_port(test_threads_without_slot_or_memory_are_counted),
	};

	test_stats_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
