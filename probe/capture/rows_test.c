/* SPDX-License-Identifier: BSD-3-Clause */
/* Rows of counters for threads that begin at once, during a session: each thread has one from its
 * first burst on where its coming could be known. In a process of its own: slots that have been
 * used keep their rows. */
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <rte_ethdev.h>
#include <rte_lcore.h>

#include "probe/hook/hook.h"
#include "probe/test_eal.h"
#include "probe/test_ports.h"

#define THREADS 64u /* more than RT_ROWS_AHEAD, and than most machines have CPUs */

static struct {
	pthread_barrier_t step;
	pthread_mutex_t turn;
	pthread_t thread[THREADS];
	uint32_t tid[THREADS];
	uint16_t port;
	bool registers;
} app = {.turn = PTHREAD_MUTEX_INITIALIZER};

/* One burst of one packet. */
static void *begin(void *arg)
{
	struct rte_mbuf *m = test_frame((uint32_t)(uintptr_t)arg, 60);

	app.tid[(uintptr_t)arg] = (uint32_t)gettid();
	if (app.registers)
		assert_int_equal(rte_thread_register(), 0);
	pthread_barrier_wait(&app.step);
	pthread_barrier_wait(&app.step); /* the control thread has had its tick */
	pthread_mutex_lock(&app.turn);
	assert_int_equal(rte_eth_tx_burst(app.port, 0, &m, 1), 1);
	pthread_mutex_unlock(&app.turn);
	pthread_barrier_wait(&app.step);
	if (app.registers)
		rte_thread_unregister();
	return NULL;
}

static struct rt_session *open_session(const char *port)
{
	static const struct rt_insn none[1];
	struct rt_msg_target target = {.queue = RT_QUEUE_ALL,
		.directions = RT_TARGET_TX,
		.snaplen = 96,
		.insn_first = RT_NO_FILTER};
	const struct rt_msg_open open = {.buffer_size = 2 * THREADS * RT_CHUNK_MIN};
	struct rt_session *s;

	strcpy(target.port, port);
	s = test_session_open(&open, &target, none);
	test_session_arm(s, test_clock());
	return s;
}

/* The lcore that the ring with this tid has. */
static uint32_t lcore_of(const struct rt_session *s, uint32_t tid)
{
	for (uint32_t i = 0; i < RT_MAX_RINGS; i++)
		if (s->shm.rings[i].tid == tid)
			return s->shm.rings[i].lcore;
	fail_msg("no ring has tid %u", tid);
	return 0;
}

/* Returns the counters of a session in which all threads begin at once, after a tick. */
static struct rt_seg_count run(const char *port)
{
	struct rt_session *s = open_session(port);
	struct rt_seg_count c;

	pthread_barrier_init(&app.step, NULL, THREADS + 1);
	for (uint32_t i = 0; i < THREADS; i++)
		assert_false(pthread_create(&app.thread[i], NULL, begin, (void *)(uintptr_t)i));
	pthread_barrier_wait(&app.step);
	s->rows = RT_ROWS_AHEAD; /* on a machine with more CPUs, the reader has provided for them */
	rt_session_tick(s, rt_now_ms());
	pthread_barrier_wait(&app.step);
	pthread_barrier_wait(&app.step);
	for (uint32_t i = 0; i < THREADS; i++)
		pthread_join(app.thread[i], NULL);
	for (uint32_t i = 0; i < THREADS; i++)
		assert_true(lcore_of(s, app.tid[i]) < RTE_MAX_LCORE); /* as they are registered */
	pthread_barrier_destroy(&app.step);
	test_session_end(s);
	c = test_session_sum(s);
	rt_session_free(s);
	return c;
}

/* Open vSwitch's PMD threads, and lcores, are known to EAL before they poll. */
static void test_registered_threads_may_begin_at_once(void **state)
{
	struct rt_seg_count c;

	assert_true(rt_threads_top() + RT_ROWS_AHEAD < THREADS); /* else this shows nothing */
	app.registers = true;
	c = run("net_ring_0");
	assert_int_equal(c.seen, THREADS);
	assert_int_equal(c.captured, THREADS);
	assert_int_equal(c.lost[RT_LOSS_NO_RING], 0);
}

static void test_each_captured_queue_may_have_a_thread(void **state)
{
	struct rt_tap tap[2] = {{.direction = RT_DIR_RX}, {.direction = RT_DIR_TX}}, *taps[180];
	struct rt_session s = {.taps = taps};

	for (unsigned i = 0; i < RTE_DIM(taps); i++)
		taps[i] = &tap[i < 80];
	assert_int_equal(rt_session_threads(&s), RTE_MAX(rt_threads_top(), rte_lcore_count()));
	s.tap_count = RTE_DIM(taps);
	assert_int_equal(rt_session_threads(&s), 100); /* RX; 80 of TX */
}

static int setup(void **state)
{
	test_stats_start();
	app.port = test_port_make("net_ring_0");
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_registered_threads_may_begin_at_once),
		cmocka_unit_test(test_each_captured_queue_may_have_a_thread),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
