/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sessions and hooks on ports of this process, with threads that poll continuously. The test acts
 * as the control thread: it opens, arms, stops and frees sessions without a socket.
 */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <rte_dev.h>
#include <rte_ethdev.h>

#include "filter_job.h"
#include "probe/hook/hook.h"
#include "request.h"
#include "probe/test_eal.h"
#include "probe/test_ports.h"

#define PORTS  2u   /* net_ring; the TX of each leads to its RX */
#define CIRCLE 256u /* packets that circulate in each port */

/* ---- the application ---- */

struct poller {
	pthread_t thread;
	uint16_t port;
	uint32_t quit;
	uint64_t rounds;
};

static struct poller pollers[PORTS];

static void *forward(void *arg)
{
	struct poller *p = arg;

	while (!rt_load(&p->quit)) {
		test_port_forward(p->port);
		rt_store_release(&p->rounds, p->rounds + 1);
		/* Without it, the other threads rarely run on few CPUs. */
		if (p->rounds % 256 == 0)
			sched_yield();
	}
	return NULL;
}

static void start_poller(struct poller *p, uint16_t port)
{
	*p = (struct poller){.port = port};
	assert_int_equal(pthread_create(&p->thread, NULL, forward, p), 0);
}

static void stop_poller(struct poller *p)
{
	rt_store(&p->quit, 1);
	pthread_join(p->thread, NULL);
}

/* Waits for this number of further polls. */
static void let_poll(const struct poller *p, uint64_t rounds)
{
	uint64_t until = rt_load_acquire(&p->rounds) + rounds;

	while (rt_load_acquire(&p->rounds) < until)
		sched_yield();
}

static uint16_t make_port(const char *name)
{
	uint16_t port = test_port_make(name);

	for (uint32_t i = 0; i < CIRCLE; i++) {
		struct rte_mbuf *m = test_frame(i, 60 + i % 100);

		assert_int_equal(rte_eth_tx_burst(port, 0, &m, 1), 1);
	}
	return port;
}

/* ---- the control thread ---- */

static uint64_t buffer_size = TEST_RING;

static struct rt_session *open_session(const char *port, bool drop_all)
{
	static const struct rt_insn none[] = {{.code = 0x06, .k = 0}};
	struct rt_msg_target target = {.queue = RT_QUEUE_ALL,
		.directions = RT_TARGET_RX | RT_TARGET_TX,
		.snaplen = 96,
		.insn_first = drop_all ? 0 : RT_NO_FILTER,
		.insn_count = drop_all ? 1 : 0};
	const struct rt_msg_open open = {.buffer_size = buffer_size};

	snprintf(target.port, sizeof(target.port), "%s", port);
	return test_session_open(&open, &target, none);
}

/* Checks the counters of a stopped session. Returns the packets seen. */
static uint64_t assert_accounted(const struct rt_session *s)
{
	struct rt_seg_count c = test_session_sum(s);
	uint64_t lost = 0;

	for (int k = 0; k < RT_LOSS_COUNT; k++)
		lost += c.lost[k];
	assert_int_equal(c.seen, c.captured + c.filtered + lost);
	return c.seen;
}

static int start_application(void **state)
{
	for (uint16_t i = 0; i < PORTS; i++) {
		char name[32];

		snprintf(name, sizeof(name), "net_ring_%u", i);
		start_poller(&pollers[i], make_port(name));
	}
	return 0;
}

static int stop_application(void **state)
{
	for (uint16_t i = 0; i < PORTS; i++) {
		stop_poller(&pollers[i]);
		test_port_remove(pollers[i].port);
	}
	return 0;
}

/* ---- tests ---- */

static void let_all_poll(uint64_t rounds)
{
	for (uint16_t i = 0; i < PORTS; i++)
		let_poll(&pollers[i], rounds);
}

static void test_session_sees_both_directions_of_all_ports(void **state)
{
	struct rt_session *s = open_session("", false);

	test_session_arm(s, test_clock());
	assert_int_equal(s->shm.header->if_count, PORTS);
	assert_int_equal(s->shm.header->tap_count, 2 * PORTS);
	let_all_poll(100);
	test_session_end(s);
	assert_int_equal(rt_thread_set_count(&s->chunks.used), PORTS);
	assert_true(assert_accounted(s) > 0);
	for (uint32_t i = 0; i < s->tap_count; i++) {
		uint64_t seen = 0;

		for (uint32_t r = 0; r <= s->rows; r++)
			seen += test_session_row(s, r)[i].seen;
		assert_true(seen > 0);
	}
	assert_int_equal(test_session_sum(s).lost[RT_LOSS_NO_RING], 0);
	rt_session_free(s);
}

/* Only stamped ports make it wait; the time that the control thread passes may be of before. */
static void test_session_waits_for_threads_of_stamped_ports(void **state)
{
	struct rt_session *s = open_session("", false);
	struct rt_hook *hook = s->taps[0]->hook;

	assert_true(rt_session_observed(s, s->opened_ms - 1));
	stop_poller(&pollers[0]);
	rt_thread_set_clear(&hook->seen);
	s->taps[0]->stamped = true;
	assert_false(rt_session_observed(s, s->opened_ms - 1));
	assert_false(rt_session_observed(s, s->opened_ms + 149));
	assert_true(rt_session_observed(s, s->opened_ms + 150));
	start_poller(&pollers[0], pollers[0].port);
	let_poll(&pollers[0], 10);
	assert_true(rt_session_observed(s, s->opened_ms));
	s->taps[0]->stamped = false;
	test_session_arm(s, test_clock());
	test_session_end(s);
	rt_session_free(s);
}

static void test_session_of_one_port_has_no_hooks_on_the_other(void **state)
{
	struct rt_session *s = open_session("net_ring_1", false);

	test_session_arm(s, test_clock());
	let_all_poll(100);
	assert_int_equal(s->tap_count, 2);
	assert_int_equal(test_port_callbacks(pollers[0].port), 0);
	assert_int_equal(test_port_callbacks(pollers[1].port), 2);
	test_session_end(s);
	assert_true(assert_accounted(s) > 0);
	rt_session_free(s);
}

static void test_callbacks_are_removed(void **state)
{
	struct rt_session *s = open_session("", false);

	assert_int_equal(test_port_callbacks(pollers[0].port), 2);
	test_session_arm(s, test_clock());
	test_session_end(s);
	rt_session_free(s);
	rt_hook_remove_unused(true);
	for (uint16_t i = 0; i < PORTS; i++)
		assert_null(rt_hook_get(pollers[i].port, 0, RT_DIR_RX)->callback);
}

/* Wherever they are in the request. */
static void test_equal_filters_are_compiled_once(void **state)
{
	const struct rt_insn insns[] = {
		{.code = 0x06, .k = 0}, {.code = 0x06, .k = 1}, {.code = 0x06, .k = 0}};
	const uint32_t first[] = {0, 1, RT_NO_FILTER, 2, 0};
	struct rt_request req = {.open = {.target_count = 5},
		.targets = calloc(5, sizeof(*req.targets)),
		.insns = memcpy(malloc(sizeof(insns)), insns, sizeof(insns))};
	struct rt_filter_job *job;
	struct rt_filter **f;

	for (uint32_t i = 0; i < req.open.target_count; i++) {
		req.targets[i].insn_first = first[i];
		req.targets[i].insn_count = first[i] != RT_NO_FILTER;
	}
	job = rt_filter_job_new(&req, true);
	while (!job->done)
		rt_filter_job_step(job);
	assert_int_equal(job->ret, 0);
	f = job->req.filters;
	assert_ptr_equal(f[3], f[0]);
	assert_ptr_equal(f[4], f[0]);
	assert_non_null(f[1]);
	assert_ptr_not_equal(f[1], f[0]);
	assert_null(f[2]);
	rt_filter_job_free(job);
}

static void test_unknown_port_is_refused(void **state)
{
	struct rt_msg_target target = {.port = "nowhere", .directions = RT_TARGET_RX, .snaplen = 1};
	struct rt_request req = {.open = {.target_count = 1}, .targets = &target};
	char err[RT_TEXT_LEN] = "";
	struct rt_session *s = NULL;

	target.insn_first = RT_NO_FILTER;
	assert_int_equal(rt_session_open(&s, &req, err), -ENODEV);
	assert_null(s);
	assert_non_null(strstr(err, "no port 'nowhere'; there is net_ring_0, net_ring_1"));
}

#ifdef __SANITIZE_ADDRESS__
#define CYCLES 1000
#else
#define CYCLES 300
#endif

/* A sanitizer detects memory that is freed too early. */
static void test_hundreds_of_sessions_under_traffic(void **state)
{
	uint64_t seen = 0;

	for (int i = 0; i < CYCLES; i++) {
		struct rt_session *s = open_session("", i % 3 == 0);

		test_session_arm(s, test_clock());
		if (i % 10 == 0)
			let_all_poll(2);
		rt_hook_set_clock(test_clock());
		test_session_end(s);
		seen += assert_accounted(s);
		rt_session_free(s);
	}
	assert_true(seen > CYCLES);
	for (uint16_t i = 0; i < PORTS; i++)
		assert_int_equal(test_port_callbacks(pollers[i].port), 0);
}

static void test_several_sessions_on_the_same_ports(void **state)
{
	struct rt_session *s[5];

	for (int i = 0; i < 5; i++) {
		s[i] = open_session(i % 2 ? "" : "net_ring_0", i == 3);
		test_session_arm(s[i], test_clock());
		let_all_poll(20);
	}
	/* Each in the middle of the others. */
	for (int i = 0; i < 5; i++) {
		int k = i * 2 % 5;

		test_session_end(s[k]);
		assert_true(assert_accounted(s[k]) > 0);
		if (k == 3)
			assert_int_equal(test_session_sum(s[k]).captured, 0);
		rt_session_free(s[k]);
		let_all_poll(5);
		assert_int_equal(test_port_callbacks(pollers[0].port), i < 4 ? 2 : 0);
	}
}

static void test_sessions_of_a_queue_are_bounded(void **state)
{
	struct rt_session *s[RT_HOOK_TAPS + 1];

	for (int i = 0; i <= RT_HOOK_TAPS; i++) {
		s[i] = open_session("net_ring_0", true);
		test_session_arm(s[i], test_clock());
		assert_int_equal(s[i]->taps_refused, i < RT_HOOK_TAPS ? 0 : 2);
	}
	for (int i = 0; i <= RT_HOOK_TAPS; i++) {
		test_session_end(s[i]);
		rt_session_free(s[i]);
	}
	assert_int_equal(test_port_callbacks(pollers[0].port), 0);
}

#define LATE 64u /* threads, more than anybody expects */

/* They poll one port in turn, and live at the same time: each has a slot of its own. */
static struct {
	pthread_barrier_t end;
	sem_t polled;
	pthread_mutex_t turn;
	pthread_t thread[LATE];
	uint32_t received[LATE];
} late = {.turn = PTHREAD_MUTEX_INITIALIZER};

static void *poll_late(void *arg)
{
	struct rte_mbuf *m[4];
	uint16_t n;

	pthread_mutex_lock(&late.turn);
	*(uint32_t *)arg = n = rte_eth_rx_burst(pollers[1].port, 0, m, RTE_DIM(m));
	assert_int_equal(rte_eth_tx_burst(pollers[1].port, 0, m, n), n);
	pthread_mutex_unlock(&late.turn);
	sem_post(&late.polled);
	pthread_barrier_wait(&late.end);
	return NULL;
}

/* Returns what threads first to end - 1 have received, and sent. */
static uint32_t begin_late(uint32_t first, uint32_t end)
{
	uint32_t sum = 0;

	for (uint32_t i = first; i < end; i++)
		assert_false(pthread_create(&late.thread[i], NULL, poll_late, &late.received[i]));
	for (uint32_t i = first; i < end; i++)
		sem_wait(&late.polled);
	for (uint32_t i = first; i < end; i++)
		sum += late.received[i];
	return sum;
}

static void end_late(struct rt_session *s)
{
	pthread_barrier_wait(&late.end);
	for (uint32_t i = 0; i < LATE; i++)
		pthread_join(late.thread[i], NULL);
	pthread_barrier_destroy(&late.end);
	sem_destroy(&late.polled);
	test_session_end(s);
	start_poller(&pollers[1], pollers[1].port);
}

static struct rt_session *open_late(void)
{
	struct rt_session *s;

	stop_poller(&pollers[1]);
	pthread_barrier_init(&late.end, NULL, LATE + 1);
	sem_init(&late.polled, 0, 0);
	buffer_size = 2 * LATE * RT_CHUNK_MIN;
	s = open_session("net_ring_1", false);
	buffer_size = TEST_RING;
	test_session_arm(s, test_clock());
	return s;
}

/* Threads that EAL does not know, which begin when the session has begun. The first burst of each
 * is all that it has. */
static void test_later_threads_are_recorded_from_their_first_burst(void **state)
{
	struct rt_session *s = open_late();
	struct rt_seg_count c;
	uint32_t sum = 0;

	for (uint32_t i = 0; i < LATE; i += RT_ROWS_AHEAD) {
		sum += begin_late(i, i + RT_ROWS_AHEAD);
		rt_session_tick(s, rt_now_ms()); /* every 50 ms */
	}
	end_late(s);
	c = test_session_sum(s);
	for (int k = 0; k < RT_LOSS_COUNT; k++)
		print_message("lost %d %lu; count %u size %lu shares %u\n", k, c.lost[k],
			s->chunks.count, s->chunks.size, s->share_count);
	assert_int_equal(rt_thread_set_count(&s->chunks.used), LATE);
	assert_memory_equal(s->shm.header->used, &s->chunks.used, sizeof(s->chunks.used));
	assert_int_equal(c.seen, 2 * sum);
	assert_int_equal(c.captured, 2 * sum);
	rt_session_free(s);
}

/* More than could run at once, between two ticks: what they miss is counted, and they have their
 * rings after the tick. */
static void test_threads_that_begin_at_once_are_counted(void **state)
{
	struct rt_session *s = open_late();
	struct rt_seg_count c;
	uint32_t sum;

	assert_true(s->rows >= RT_ROWS_AHEAD);
	s->rows = RT_ROWS_AHEAD; /* slots have been used before */
	sum = begin_late(0, LATE);
	rt_session_tick(s, rt_now_ms());
	assert_true(s->rows >= LATE + RT_ROWS_AHEAD);
	end_late(s);
	c = test_session_sum(s);
	assert_int_equal(c.seen, 2 * sum);
	assert_in_range(c.lost[RT_LOSS_NO_RING], 1, 2 * sum - 1);
	assert_int_equal(assert_accounted(s), c.captured + c.lost[RT_LOSS_NO_RING]);
	rt_session_free(s);
}

static struct rt_session *watched;

static void test_port_that_comes_back_is_the_same_interface(void **state)
{
	uint16_t port = pollers[1].port;

	watched = open_session("", false);
	let_all_poll(10);
	test_session_arm(watched, test_clock());
	assert_int_equal(rt_ports_watch(rt_hook_cut), 0);
	for (uint32_t i = 1; i <= 5; i++) {
		let_poll(&pollers[1], 10);
		stop_poller(&pollers[1]);
		test_port_remove(port);
		assert_int_equal(test_port_callbacks(port), 0);
		assert_null(rt_hook_get(port, 0, RT_DIR_RX)->taps);
		assert_null(rt_hook_get(port, 0, RT_DIR_TX)->taps);
		if (i % 2) { /* the control thread may notice it late */
			rt_session_rescan(watched);
			assert_int_equal(watched->shm.ifs[1].state, RT_IF_GONE);
		}
		/* The id is reused. */
		assert_int_equal(make_port("net_ring_1"), port);
		rt_session_rescan(watched);
		assert_int_equal(watched->shm.header->if_count, 2);
		assert_int_equal(watched->shm.header->tap_count, 4);
		assert_int_equal(watched->shm.ifs[1].state, RT_IF_PRESENT);
		start_poller(&pollers[1], port);
		let_poll(&pollers[1], 50);
	}
	rt_ports_unwatch();
	test_session_end(watched);
	assert_true(assert_accounted(watched) > 0);
	for (uint32_t t = 0; t < watched->tap_count; t++) {
		uint64_t seen = 0;

		for (uint32_t r = 0; r <= watched->rows; r++)
			seen += test_session_row(watched, r)[t].seen;
		assert_true(seen > 0);
	}
	rt_session_free(watched);
	assert_int_equal(test_port_callbacks(port), 0);
}

static void test_capture_of_a_restarted_port_continues(void **state)
{
	struct rt_session *s = open_session("net_ring_1", false);
	struct rte_eth_conf conf = {0};
	uint16_t port = pollers[1].port;
	uint64_t before;

	let_poll(&pollers[1], 10);
	test_session_arm(s, test_clock());
	let_poll(&pollers[1], 50);
	stop_poller(&pollers[1]);
	before = test_session_sum(s).seen;
	assert_int_equal(rte_eth_dev_stop(port), 0);
	assert_int_equal(rte_eth_dev_configure(port, 1, 1, &conf), 0);
	assert_int_equal(rte_eth_rx_queue_setup(port, 0, 512, SOCKET_ID_ANY, NULL, test_pool()), 0);
	assert_int_equal(rte_eth_tx_queue_setup(port, 0, 512, SOCKET_ID_ANY, NULL), 0);
	assert_int_equal(rte_eth_dev_start(port), 0);
	rt_session_rescan(s);
	start_poller(&pollers[1], port);
	let_poll(&pollers[1], 50);
	test_session_end(s);
	assert_int_equal(s->if_count, 1);
	assert_true(assert_accounted(s) > before);
	rt_session_free(s);
}

static void replace_filter(struct rt_session *s, const struct rt_insn *insn)
{
	char err[RT_TEXT_LEN] = "";

	if (test_set_filter(s, insn, err))
		fail_msg("%s", err);
	while (!rt_session_filter_settled(s))
		sched_yield();
	assert_false(rt_session_filter_settled(s));
}

/* Reads all published records and, as a reader does, gives the space back. */
static uint64_t published(const struct rt_session *s)
{
	uint64_t sum_of_heads = 0;

	for (uint32_t i = 0; i < RT_MAX_RINGS; i++) {
		uint64_t head = rt_load_acquire(&s->shm.rings[i].head);

		rt_store_release(&s->shm.tails[i].tail, head);
		sum_of_heads += head;
	}
	return sum_of_heads;
}

/* After the replacement is complete, nothing is captured by the old filter. */
static void test_filter_is_replaced_under_traffic(void **state)
{
	static const struct rt_insn none = {.code = 0x06, .k = 0};
	struct rt_session *s = open_session("", false);

	let_all_poll(10);
	test_session_arm(s, test_clock());
	for (int i = 0; i < 300; i++) {
		uint64_t before;

		replace_filter(s, &none);
		before = published(s);
		let_all_poll(3);
		assert_int_equal(published(s), before);
		replace_filter(s, NULL);
		before = published(s);
		let_all_poll(3);
		assert_true(published(s) > before);
	}
	test_session_end(s);
	assert_true(assert_accounted(s) > 0);
	assert_true(test_session_sum(s).filtered > 0);
	rt_session_free(s);
}

static void test_refused_filter_keeps_the_old_one(void **state)
{
	static const struct rt_insn endless = {.code = 0x30};
	struct rt_session *s = open_session("", true);
	char err[RT_TEXT_LEN] = "";

	test_session_arm(s, test_clock());
	assert_int_equal(test_set_filter(s, &endless, err), -EINVAL);
	assert_non_null(strstr(err, "refuses the filter"));
	assert_false(rt_session_filter_settled(s));
	let_all_poll(50);
	assert_int_equal(published(s), 0);
	/* A second change is refused until the first is done; the end of the session is not. */
	assert_int_equal(test_set_filter(s, NULL, err), 0);
	assert_int_equal(test_set_filter(s, NULL, err), -EBUSY);
	test_session_end(s);
	rt_session_free(s);
}

#define running(f) cmocka_unit_test_setup_teardown(f, start_application, stop_application)

int main(void)
{
	const struct CMUnitTest tests[] = {
		running(test_port_that_comes_back_is_the_same_interface), /* RT_HOOK_WAITING */
		running(test_session_sees_both_directions_of_all_ports),
		running(test_session_waits_for_threads_of_stamped_ports),
		running(test_session_of_one_port_has_no_hooks_on_the_other),
		running(test_callbacks_are_removed),
		cmocka_unit_test(test_equal_filters_are_compiled_once),
		running(test_unknown_port_is_refused),
		running(test_hundreds_of_sessions_under_traffic),
		running(test_several_sessions_on_the_same_ports),
		running(test_sessions_of_a_queue_are_bounded),
		running(test_later_threads_are_recorded_from_their_first_burst),
		running(test_threads_that_begin_at_once_are_counted),
		running(test_capture_of_a_restarted_port_continues),
		running(test_filter_is_replaced_under_traffic),
		running(test_refused_filter_keeps_the_old_one),
	};

	test_stats_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
