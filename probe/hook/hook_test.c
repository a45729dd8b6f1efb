/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * More threads than slots, and threads that leave hooks by a jump, by cancellation, or poll in a
 * signal handler while in a hook. The test acts as the control thread. A session with on-full=wait
 * and a ring that is not read holds a thread in a hook.
 */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <rte_dev.h>
#include <rte_ethdev.h>

#include "probe/capture/epb.h"
#include "hook.h"
#include "probe/capture/request.h"
#include "probe/test_eal.h"
#include "probe/test_ports.h"
#include "probe/tunables.h"

#define BURST   4u
#define THREADS 300u
#define ROUNDS  10u

static uint16_t make_null_port(const char *name, uint16_t queues)
{
	struct rte_eth_conf conf = {0};
	uint16_t port;

	assert_int_equal(rte_eal_hotplug_add("vdev", name, ""), 0);
	assert_int_equal(rte_eth_dev_get_port_by_name(name, &port), 0);
	assert_int_equal(rte_eth_dev_configure(port, queues, 1, &conf), 0);
	for (uint16_t q = 0; q < queues; q++)
		assert_int_equal(
			rte_eth_rx_queue_setup(port, q, 64, SOCKET_ID_ANY, NULL, test_pool()), 0);
	assert_int_equal(rte_eth_tx_queue_setup(port, 0, 64, SOCKET_ID_ANY, NULL), 0);
	assert_int_equal(rte_eth_dev_start(port), 0);
	return port;
}

static void remove_null_port(uint16_t port)
{
	char name[RTE_ETH_NAME_MAX_LEN];

	rte_eth_dev_get_name_by_port(port, name);
	rte_eth_dev_stop(port);
	rte_eth_dev_close(port);
	rte_eal_hotplug_remove("vdev", name);
}

static void poll_once(uint16_t port, uint16_t queue)
{
	struct rte_mbuf *m[BURST];
	uint16_t n = rte_eth_rx_burst(port, queue, m, BURST);

	rte_pktmbuf_free_bulk(m, n);
}

static struct rt_session *open_session(const char *port, enum rt_on_full on_full)
{
	struct rt_msg_target target = {.queue = RT_QUEUE_ALL,
		.directions = RT_TARGET_RX,
		.snaplen = 64,
		.insn_first = RT_NO_FILTER};
	const struct rt_msg_open open = {.buffer_size = TEST_RING, .on_full = on_full};

	snprintf(target.port, sizeof(target.port), "%s", port);
	return test_session_open(&open, &target, NULL);
}

/* ---- more threads than slots ---- */

static struct {
	uint16_t port;
	uint32_t round, done, quit;
} crowd;

static void *poll_by_rounds(void *arg)
{
	uint16_t queue = (uint16_t)(uintptr_t)arg;

	for (uint32_t done = 0;;) {
		while (rt_load_acquire(&crowd.round) == done && !rt_load(&crowd.quit))
			sched_yield();
		if (rt_load(&crowd.quit))
			return NULL;
		poll_once(crowd.port, queue);
		done++;
		__atomic_fetch_add(&crowd.done, 1, __ATOMIC_RELEASE);
	}
}

static void one_round(void)
{
	uint32_t round = crowd.round + 1;

	rt_store_release(&crowd.round, round);
	while (rt_load_acquire(&crowd.done) < round * THREADS)
		sched_yield();
}

static void test_threads_without_a_slot_are_counted_and_fast(void **state)
{
	static pthread_t threads[THREADS];
	const uint32_t slots = 256;
	struct rt_session *s;
	struct rt_seg_count c;
	uint64_t searches;

	crowd.port = make_null_port("net_null_0", THREADS);
	for (uintptr_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, poll_by_rounds, (void *)i), 0);
	s = open_session("", RT_ON_FULL_DROP);
	one_round();
	test_session_arm(s, test_clock());
	assert_int_equal(RT_MAX_RINGS, slots);
	searches = rt_load(&rt_thread_searches);
	for (unsigned i = 0; i < ROUNDS; i++)
		one_round();
	assert_int_equal(rt_load(&rt_thread_searches), searches);
	rt_session_stop(s);
	while (!rt_session_stopped(s))
		sched_yield();
	c = test_session_sum(s);
	assert_int_equal(c.seen, THREADS * ROUNDS * BURST);
	assert_int_equal(c.captured, slots * ROUNDS * BURST);
	assert_int_equal(c.lost[RT_LOSS_NO_RING], (THREADS - slots) * ROUNDS * BURST);
	rt_session_free(s);
	rt_store(&crowd.quit, 1);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	remove_null_port(crowd.port);
	while (!rt_hook_reclaim())
		sched_yield();
}

/* ---- threads that leave without the exit ---- */

/* A thread that polls a port `polls` times. */
static struct {
	pthread_t thread;
	sigjmp_buf back;
	struct rt_thread *slot;
	struct rte_mbuf *burst[BURST];
	uint32_t port; /* to poll; UINT32_MAX: none */
	uint32_t nested_port;
	uint32_t polls; /* to do */
	uint32_t endless;
	uint32_t jumps, nested, idle, quit;
} app;

static void jump(int sig)
{
	siglongjmp(app.back, 1);
}

static void poll_nested(int sig)
{
	poll_once((uint16_t)app.nested_port, 0);
	rt_store_release(&app.nested, 1);
}

/* Received packets are counted also after a jump out of the hook. */
static void app_poll(void)
{
	uint16_t n = rte_eth_rx_burst((uint16_t)app.port, 0, app.burst, BURST);

	rte_pktmbuf_free_bulk(app.burst, n);
	memset(app.burst, 0, sizeof(app.burst));
}

static void *poll_on_demand(void *arg)
{
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
	if (sigsetjmp(app.back, 1)) {
		for (unsigned i = 0; i < BURST && app.burst[i]; i++)
			rte_pktmbuf_free(app.burst[i]);
		memset(app.burst, 0, sizeof(app.burst));
		rt_store_release(&app.jumps, app.jumps + 1);
		rt_store_release(&app.polls, 0);
	}
	while (!rt_load_acquire(&app.quit)) {
		bool endless = rt_load_acquire(&app.endless);

		if (!endless && !rt_load_acquire(&app.polls)) {
			rt_store_release(&app.idle, 1);
			sched_yield();
			continue;
		}
		app_poll();
		app.slot = rt_thread_self;
		if (!endless)
			rt_store_release(&app.polls, app.polls - 1);
	}
	return NULL;
}

static void start_app(void (*handler)(int))
{
	struct sigaction act = {.sa_handler = handler};

	memset(&app, 0, sizeof(app));
	assert_int_equal(sigaction(SIGUSR1, &act, NULL), 0);
	assert_int_equal(pthread_create(&app.thread, NULL, poll_on_demand, NULL), 0);
}

static void order(uint16_t port, uint32_t polls)
{
	app.port = port;
	rt_store_release(&app.polls, polls);
}

static void let_poll(uint16_t port, uint32_t polls)
{
	order(port, polls);
	while (rt_load_acquire(&app.polls))
		sched_yield();
}

static void stop_app(void)
{
	rt_store_release(&app.quit, 1);
	pthread_join(app.thread, NULL);
}

static struct rt_ring *ring_of_app(struct rt_session *s)
{
	return &s->rings[app.slot->index];
}

static uint64_t head(struct rt_session *s)
{
	return rt_load_acquire(&ring_of_app(s)->pub->head);
}

/* Polls until the ring is full; the thread then waits for space in the hook. */
static void fill(struct rt_session *s, uint16_t port)
{
	const uint64_t largest = 64 + 64; /* bytes of a record */

	order(port, UINT32_MAX);
	while (!rt_load(&ring_of_app(s)->used))
		sched_yield();
	while (head(s) < test_session_room(s) - largest)
		sched_yield();
	while (!rt_load(&ring_of_app(s)->pub->busy))
		sched_yield();
}

static void give_room(struct rt_session *s)
{
	struct rt_ring *r = ring_of_app(s);

	rt_store_release(&s->shm.tails[r - s->rings].tail, head(s));
}

/* Records between two positions; fails if one is broken. */
static uint64_t count_records(struct rt_session *s, uint64_t at, uint64_t end)
{
	const struct rt_ring *r = ring_of_app(s);
	const uint64_t size = s->shm.chunk_size;
	uint64_t n = 0;

	for (; at < end; n++) {
		uint32_t id = r->pub_order[at / size % s->shm.order_count], trailer;
		const struct rt_epb *e = (const void *)(s->shm.data + id * size + at % size);

		if (e->type == RT_CHUNK_END) {
			at = (at / size + 1) * size;
			n--;
			continue;
		}
		assert_int_equal(e->type, RT_EPB_TYPE);
		assert_in_range(e->total_len, RT_EPB_MIN, end - at);
		memcpy(&trailer, (const uint8_t *)e + e->total_len - 4, 4);
		assert_int_equal(trailer, e->total_len);
		at += e->total_len;
	}
	return n;
}

static void assert_accounted(const struct rt_session *s, uint64_t delivered)
{
	struct rt_seg_count c = test_session_sum(s);
	uint64_t lost = 0;

	for (int k = 0; k < RT_LOSS_COUNT; k++)
		lost += c.lost[k];
	assert_int_equal(c.captured, delivered);
	assert_int_equal(c.seen, c.captured + lost);
}

static uint16_t first, second;

static int make_ports(void **state)
{
	first = make_null_port("net_null_0", 1);
	second = make_null_port("net_null_1", 1);
	rt_probe_limits.full_wait_ms = 3600000;
	return 0;
}

static int remove_ports(void **state)
{
	rt_probe_limits.full_wait_ms = 5000;
	remove_null_port(first);
	remove_null_port(second);
	while (!rt_hook_reclaim())
		sched_yield();
	return 0;
}

#ifdef __SANITIZE_THREAD__
#define NEEDS_SIGNALS()                                                             \
	do {                                                                        \
		print_message("skipped: under ThreadSanitizer a thread that spins " \
			      "receives no signals\n");                             \
		skip();                                                             \
	} while (0)
#else
#define NEEDS_SIGNALS()
#endif

static struct rt_session *open_and_arm(const char *port)
{
	struct rt_session *s = open_session(port, RT_ON_FULL_WAIT);

	let_poll(first, 1);
	let_poll(second, 1);
	test_session_arm(s, test_clock());
	return s;
}

/* A sanitizer detects memory that is freed while the thread uses it. */
static void test_thread_that_jumped_out_of_a_hook_is_waited_for_again(void **state)
{
	struct rt_session *a, *b;
	struct rt_grace g;

	NEEDS_SIGNALS();
	start_app(jump);
	a = open_and_arm("net_null_0");
	b = open_and_arm("net_null_1");
	fill(a, first);
	pthread_kill(app.thread, SIGUSR1);
	while (!rt_load_acquire(&app.jumps))
		sched_yield();
	fill(b, second);
	rt_grace_begin(&g);
	assert_false(rt_grace_over(&g));
	rt_session_stop(b);
	while (!rt_session_stopped(b))
		sched_yield();
	/* Otherwise it would poll another port, where nothing holds it. */
	rt_store(&app.polls, 0);
	assert_true(rt_grace_over(&g));
	rt_session_free(b);
	stop_app();
	test_session_end(a);
	rt_session_free(a);
}

static void test_ring_is_usable_after_a_jump(void **state)
{
	struct rt_session *s;
	uint64_t n, at;

	NEEDS_SIGNALS();
	start_app(jump);
	s = open_and_arm("net_null_0");
	fill(s, first);
	pthread_kill(app.thread, SIGUSR1);
	while (!rt_load_acquire(&app.jumps))
		sched_yield();
	assert_int_equal(rt_load(&ring_of_app(s)->pub->busy), 1);
	n = count_records(s, 0, head(s));
	at = head(s);
	give_room(s);
	let_poll(first, 10);
	assert_int_equal(rt_load(&ring_of_app(s)->pub->busy), 0);
	n += count_records(s, at, head(s));
	assert_true(head(s) > at);
	stop_app();
	test_session_end(s);
	assert_accounted(s, n);
	/* Only the rest of the burst. */
	assert_in_range(test_session_sum(s).lost[RT_LOSS_NO_RING], 1, BURST);
	rt_session_free(s);
}

static void test_polling_in_a_handler_neither_frees_nor_corrupts(void **state)
{
	struct rt_session *s;
	struct rt_grace g;
	uint64_t n, at;

	NEEDS_SIGNALS();
	start_app(poll_nested);
	s = open_and_arm("");
	app.nested_port = second;
	fill(s, first);
	rt_grace_begin(&g);
	n = count_records(s, 0, head(s));
	at = head(s);
	pthread_kill(app.thread, SIGUSR1);
	while (!rt_load_acquire(&app.nested))
		sched_yield();
	assert_false(rt_grace_over(&g));
	assert_int_equal(head(s), at);
	give_room(s);
	while (!rt_grace_over(&g))
		sched_yield();
	rt_session_stop(s);
	while (!rt_session_stopped(s))
		sched_yield();
	n += count_records(s, at, head(s));
	assert_accounted(s, n);
	assert_int_equal(test_session_sum(s).lost[RT_LOSS_NO_RING], BURST);
	rt_store(&app.polls, 0);
	rt_session_free(s);
	stop_app();
}

/* Jumps out of the hook only, as DPDK's own code does not support it. */
static void jump_out_of_hook(int sig)
{
	if (rt_thread_self && rt_thread_inside(rt_thread_self))
		siglongjmp(app.back, 1);
}

/* Counts the records since the last call, and releases them. */
static uint64_t drain(struct rt_session *s, uint64_t *at)
{
	struct rt_ring *r = ring_of_app(s);
	uint64_t end = head(s), n = count_records(s, *at, end);

	*at = end;
	rt_store_release(&s->shm.tails[r - s->rings].tail, end);
	return n;
}

/* At any instruction of a hook: records stay complete, counters agree, nothing is freed too
 * early. */
static void test_jumps_at_any_time(void **state)
{
	struct rt_session *s = NULL;

	NEEDS_SIGNALS();
	start_app(jump_out_of_hook);
	let_poll(first, 1);
	for (uint32_t cycle = 0; cycle < 8; cycle++) {
		uint32_t jumps = rt_load(&app.jumps);
		uint64_t at = 0, n = 0;
		struct rt_seg_count c;

		s = open_session("net_null_0", RT_ON_FULL_DROP);
		let_poll(first, 1);
		test_session_arm(s, test_clock());
		let_poll(first, 1);
		/* It never yields: the signal can interrupt it at any instruction. */
		rt_store_release(&app.endless, 1);
		while (rt_load_acquire(&app.jumps) < jumps + 20) {
			pthread_kill(app.thread, SIGUSR1);
			n += drain(s, &at);
			sched_yield();
		}
		rt_store_release(&app.endless, 0);
		/* The last signal may still be pending. */
		do {
			jumps = rt_load(&app.jumps);
			let_poll(first, 10);
		} while (rt_load(&app.jumps) != jumps);
		test_session_end(s);
		n += drain(s, &at);
		c = test_session_sum(s);
		/* Between a record and its counter: the record exists, and counts as lost. */
		assert_in_range(n - c.captured, 0, c.lost[RT_LOSS_NO_RING]);
		assert_accounted(s, c.captured);
		rt_session_free(s);
	}
	stop_app();
}

/* The epoch of the slot's next owner is odd while it is in a hook, not otherwise. */
static void test_cancelled_thread_frees_its_slot(void **state)
{
	struct rt_session *s;
	struct rt_thread *slot;
	struct rt_grace g;

	NEEDS_SIGNALS();
#ifdef __SANITIZE_ADDRESS__
	print_message("skipped: AddressSanitizer does not follow a cancellation's unwinding\n");
	skip();
#endif
	start_app(SIG_IGN);
	s = open_and_arm("net_null_0");
	fill(s, first);
	slot = app.slot;
	rt_grace_begin(&g);
	pthread_cancel(app.thread);
	pthread_join(app.thread, NULL);
	assert_true(rt_grace_over(&g));
	assert_int_equal(rt_load(&slot->epoch) & 1, 0);
	test_session_end(s);
	/* Its last burst is complete, although it never polled again. */
	assert_accounted(s, count_records(s, 0, head(s)));
	assert_in_range(test_session_sum(s).lost[RT_LOSS_NO_RING], 1, BURST);
	rt_session_free(s);
	start_app(SIG_IGN);
	s = open_and_arm("net_null_0");
	assert_ptr_equal(app.slot, slot);
	fill(s, first);
	rt_grace_begin(&g);
	assert_false(rt_grace_over(&g));
	rt_session_stop(s);
	while (!rt_session_stopped(s))
		sched_yield();
	rt_store(&app.polls, 0);
	rt_session_free(s);
	stop_app();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			test_thread_that_jumped_out_of_a_hook_is_waited_for_again, make_ports,
			remove_ports),
		cmocka_unit_test_setup_teardown(
			test_ring_is_usable_after_a_jump, make_ports, remove_ports),
		cmocka_unit_test_setup_teardown(
			test_polling_in_a_handler_neither_frees_nor_corrupts, make_ports,
			remove_ports),
		cmocka_unit_test_setup_teardown(test_jumps_at_any_time, make_ports, remove_ports),
		cmocka_unit_test_setup_teardown(
			test_cancelled_thread_frees_its_slot, make_ports, remove_ports),
		cmocka_unit_test(test_threads_without_a_slot_are_counted_and_fast),
	};

	test_stats_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
