/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations that must not wait for the control thread, or for other holders of its lock. */
#include <dirent.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include <rte_eal.h>
#include <rte_ethdev.h>

#include "common/ipc.h"
#include "control.h"
#include "probe/capture/filter.h"
#include "probe/hook/hook.h"
#include "reader/find/telemetry.h"
#include "ringtap/monitor.h"
#include "ringtap/probe.h"
#include "ringtap/reader.h"
#include "probe/test_eal.h"
#include "probe/test_ports.h"
#include "probe/tunables.h"

#define LATE_MS   50  /* more than an event needs; a former fault delayed it by 100 ms */
#define ENOUGH_NS 3e9 /* limit of CPU time of a test */

static const char *dir;
static uint16_t stays;

/* ---- time that the probe's handler takes: between two handlers of the test ---- */

static uint64_t before_ms, longest_ms, shortest_ms;

static int before_probe(uint16_t port, enum rte_eth_event_type event, void *arg, void *ret)
{
	before_ms = rt_now_ms();
	return 0;
}

static int after_probe(uint16_t port, enum rte_eth_event_type event, void *arg, void *ret)
{
	uint64_t ms = rt_now_ms() - before_ms;

	shortest_ms = RTE_MIN(shortest_ms, ms);
	longest_ms = RTE_MAX(longest_ms, ms);
	return 0;
}

static void on_ports(rte_eth_dev_cb_fn handler)
{
	rte_eth_dev_callback_register(RTE_ETH_ALL, RTE_ETH_EVENT_NEW, handler, NULL);
	rte_eth_dev_callback_register(RTE_ETH_ALL, RTE_ETH_EVENT_DESTROY, handler, NULL);
}

static void off_ports(rte_eth_dev_cb_fn handler)
{
	rte_eth_dev_callback_unregister(RTE_ETH_ALL, RTE_ETH_EVENT_NEW, handler, NULL);
	rte_eth_dev_callback_unregister(RTE_ETH_ALL, RTE_ETH_EVENT_DESTROY, handler, NULL);
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool inside, leave;

static void release_holder(void)
{
	pthread_mutex_lock(&lock);
	leave = true;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}

static int start(void **state)
{
	dir = rte_eal_get_runtime_dir();
	stays = test_port_make("net_ring_stays");
	on_ports(before_probe);
	if (ringtap_probe_start())
		return -1;
	on_ports(after_probe);
	longest_ms = 0;
	shortest_ms = UINT64_MAX;
	return 0;
}

static int stop(void **state)
{
	release_holder(); /* for a test that has failed */
	ringtap_probe_stop();
	off_ports(before_probe);
	off_ports(after_probe);
	test_port_remove(stays);
	return 0;
}

/* ---- the lock is held ---- */

static void show_until_released(struct rt_stats *f, uint64_t collecting_ms, void *arg)
{
	pthread_mutex_lock(&lock);
	inside = true;
	pthread_cond_broadcast(&changed);
	while (!leave)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
}

static void *hold_lock(void *arg)
{
	return (void *)(intptr_t)rt_control_query(0, show_until_released, NULL);
}

static pthread_t holder(void)
{
	pthread_t thread;

	inside = leave = false;
	assert_int_equal(pthread_create(&thread, NULL, hold_lock, NULL), 0);
	pthread_mutex_lock(&lock);
	while (!inside)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
	return thread;
}

static void release(pthread_t thread)
{
	void *ret;

	release_holder();
	pthread_join(thread, &ret);
	assert_null(ret);
}

static void exchange(uint16_t port, unsigned n)
{
	test_port_send(port, n);
	assert_int_equal(test_port_poll(port, 512), n);
}

static void until_captured(uint16_t port)
{
	while (!rt_load(&rt_hook_get(port, 0, RT_DIR_RX)->taps) ||
		!rt_load(&rt_hook_get(port, 0, RT_DIR_TX)->taps))
		sched_yield();
}

static uint64_t seen_until_stopped(struct ringtap_capture *cap)
{
	struct ringtap_stats s = {.size = sizeof(s)};
	struct ringtap_run runs[8];

	assert_int_equal(ringtap_capture_stop(cap), 0);
	while (ringtap_capture_next(cap, runs, 8, 5000) > 0)
		ringtap_capture_release(cap);
	ringtap_capture_stats(cap, &s);
	return s.total.seen;
}

/* Twenty events while another thread holds the control lock. */
static void test_events_do_not_wait_for_the_control_lock(void **state)
{
	pthread_t thread = holder();

	for (int i = 0; i < 10; i++)
		test_port_remove(test_port_make("net_ring_x"));
	release(thread);
	assert_in_range(shortest_ms, 0, LATE_MS);
	assert_in_range(longest_ms, 0, UINT64_MAX - 1);
}

/* The control thread does not run between the end of the port and the first packets of the next
 * port with its id. */
static void test_next_port_with_an_id_is_another_port(void **state)
{
	uint16_t port = test_port_make("net_ring_x");
	struct ringtap_capture *cap = test_capture(dir);
	pthread_t thread;

	exchange(port, 10);
	thread = holder();
	test_port_remove(port);
	assert_int_equal(test_port_callbacks(port), 0);
	assert_int_equal(test_port_make("net_ring_x"), port);
	exchange(port, 7); /* not captured yet */
	release(thread);
	until_captured(port);
	exchange(port, 3);
	assert_int_equal(seen_until_stopped(cap), 2 * (10 + 3));
	assert_int_equal(ringtap_capture_interface_count(cap), 2); /* the port has come back */
	ringtap_capture_close(cap);
	test_port_remove(port);
}

/* ---- a filter is compiled ---- */

/* 2^16 paths: some 50 ms for each of its versions. */
#ifdef __SANITIZE_THREAD__ /* DPDK's verifier is slow under ThreadSanitizer */
#define PARTS 12
#else
#define PARTS 16
#endif

static uint32_t control_tid(void)
{
	DIR *d = opendir("/proc/self/task");
	struct dirent *e;
	uint32_t tid = 0;

	while ((e = readdir(d))) {
		char path[300], name[32] = "";
		FILE *f;

		snprintf(path, sizeof(path), "/proc/self/task/%s/comm", e->d_name);
		f = fopen(path, "r");
		if (f && fgets(name, sizeof(name), f) && strstr(name, "ringtap-ctl"))
			tid = (uint32_t)strtoul(e->d_name, NULL, 10);
		if (f)
			fclose(f);
	}
	closedir(d);
	assert_true(tid);
	return tid;
}

/* CPU time of the control thread, see clock_gettime(2), "Dynamic clocks". */
static double control_ns(void)
{
	clockid_t clock = (clockid_t)(~control_tid() << 3 | 6);
	struct timespec ts;

	assert_int_equal(clock_gettime(clock, &ts), 0);
	return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

/* Requests a session on many ports, each with a filter that takes long. Equal ones would be
 * compiled once, so each begins at another instruction. */
static int request_slow_filters(void)
{
	struct {
		struct rt_msg_open open;
		struct rt_msg_target target[RT_MAX_TARGETS];
		struct rt_insn insn[RT_MAX_TARGETS + PARTS * 3 + 1];
	} m = {.open = {.target_count = RT_MAX_TARGETS,
		       .insn_count = RT_MAX_TARGETS + PARTS * 3 + 1}};
	struct rt_insn *part = m.insn + RT_MAX_TARGETS;
	struct rt_msg_hello hello = {.pid = 1};
	struct rt_msg_welcome w;
	int fd = rt_connect(dir, RT_SOCKET_NAME);

	for (uint32_t i = 0; i < RT_MAX_TARGETS; i++) {
		m.insn[i] = (struct rt_insn){.code = 0x00, .k = i}; /* ld #i */
		m.target[i] = (struct rt_msg_target){.queue = RT_QUEUE_ALL,
			.directions = RT_TARGET_RX,
			.snaplen = 64,
			.insn_first = i,
			.insn_count = m.open.insn_count - i};
	}
	for (uint32_t i = 0; i < PARTS; i++, part += 3) {
		part[0] = (struct rt_insn){.code = 0x30, .k = i};          /* ldb [i] */
		part[1] = (struct rt_insn){.code = 0x15, .jf = 1, .k = i}; /* jeq #i */
		part[2] = (struct rt_insn){.code = 0x02, .k = i % 16};     /* st M[i] */
	}
	*part = (struct rt_insn){.code = 0x06, .k = 1};
	assert_true(fd >= 0);
	rt_msg_init(&hello.h, RT_MSG_HELLO, sizeof(hello));
	assert_int_equal(rt_msg_send(fd, &hello.h, NULL, 0), 0);
	assert_int_equal(rt_msg_recv(fd, &w, sizeof(w), NULL, 0, NULL, 5000), sizeof(w));
	rt_msg_init(&m.open.h, RT_MSG_OPEN, sizeof(m));
	assert_int_equal(rt_msg_send(fd, &m.open.h, NULL, 0), 0);
	return fd;
}

static bool answered(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, 0);
}

static void show_nothing(struct rt_stats *f, uint64_t collecting_ms, void *arg)
{
}

static size_t list_sessions(void)
{
	struct ringtap_list *list;
	struct ringtap_conn *conn;
	size_t ns;
	char err[256];

	assert_int_equal(ringtap_conn_open(&conn, dir, NULL, err, sizeof(err)), 0);
	assert_int_equal(ringtap_conn_list(conn, &list), 0);
	ns = list->session_count;
	ringtap_list_free(list);
	ringtap_conn_close(conn);
	return ns;
}

static int compile_everything(void **state)
{
	rt_probe_limits.filter_steps = UINT64_MAX;
	return start(state);
}

static int compile_normally(void **state)
{
	int ret = stop(state);

	rt_probe_limits.filter_steps = 400000;
	return ret;
}

static void test_other_requests_do_not_wait_for_a_filter(void **state)
{
	double begun = control_ns(), ended, now;
	int fd = request_slow_filters();

	while (control_ns() - begun < 1e8) /* it compiles */
		assert_false(answered(fd));
	assert_int_equal(rt_control_query(0, show_nothing, NULL), 0);
	for (int i = 0; i < 5; i++)
		test_port_remove(test_port_make("net_ring_x"));
	assert_int_equal(list_sessions(), 0);
	assert_false(answered(fd));
	assert_in_range(shortest_ms, 0, LATE_MS);
	close(fd);
	/* Seconds of compiling are left, and must not be done. */
	ended = now = control_ns();
	do {
		begun = now;
		assert_int_equal(list_sessions(), 0);
		now = control_ns();
		assert_true(now - ended < ENOUGH_NS);
	} while (now - begun > 2e7);
}

/* ---- a thread does not leave its hook ---- */

/* As a jump out of a hook leaves it. */
static struct ringtap_capture *record_with_odd_epoch(uint16_t port)
{
	struct ringtap_capture *cap = test_capture(dir);

	exchange(port, 10);
	rt_thread_enter(rt_thread_self);
	alarm(60); /* ends the test if the probe waits forever */
	return cap;
}

static void test_stop_waits_for_a_hook_for_a_bounded_time(void **state)
{
	uint16_t port = test_port_make("net_ring_x");
	struct ringtap_capture *cap = record_with_odd_epoch(port);

	rt_probe_limits.patience_ms = 50;
	ringtap_probe_stop();
	rt_probe_limits.patience_ms = 1000;
	assert_int_equal(ringtap_probe_start(), 0);
	assert_int_equal(list_sessions(), 1);
	rt_thread_exit(rt_thread_self);
	while (list_sessions())
		sched_yield();
	alarm(0);
	ringtap_capture_close(cap);
	test_port_remove(port);
}

static void *stop_in_thread(void *arg)
{
	ringtap_probe_stop();
	return NULL;
}

static void test_ports_are_watched_until_sessions_have_ended(void **state)
{
	uint16_t port = test_port_make("net_ring_x");
	struct ringtap_capture *cap = record_with_odd_epoch(port);
	uint32_t generation = rt_port_generation(port);
	struct ringtap_monitor *monitor;
	struct pollfd closed = {.events = POLLIN};
	pthread_t stopping;
	char err[256], byte;

	assert_int_equal(ringtap_monitor_open(&monitor, dir,
				 &(struct ringtap_monitor_options){
					 .size = sizeof(struct ringtap_monitor_options),
					 .collectors = RINGTAP_POLLS,
					 .latency_every = 1},
				 err, sizeof(err)),
		0);
	rt_probe_limits.patience_ms = UINT32_MAX;
	assert_int_equal(pthread_create(&stopping, NULL, stop_in_thread, NULL), 0);
	closed.fd = ringtap_monitor_fd(monitor);
	assert_int_equal(poll(&closed, 1, -1), 1);
	assert_int_equal(recv(closed.fd, &byte, 1, 0), 0);
	test_port_remove(port);
	rt_thread_exit(rt_thread_self);
	pthread_join(stopping, NULL);
	alarm(0);
	rt_probe_limits.patience_ms = 1000;
	assert_int_not_equal(rt_port_generation(port), generation);
	ringtap_monitor_close(monitor);
	ringtap_capture_close(cap);
}

#define probing(f) cmocka_unit_test_setup_teardown(f, start, stop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		probing(test_events_do_not_wait_for_the_control_lock),
		probing(test_next_port_with_an_id_is_another_port),
		cmocka_unit_test_setup_teardown(test_other_requests_do_not_wait_for_a_filter,
			compile_everything, compile_normally),
		probing(test_stop_waits_for_a_hook_for_a_bounded_time),
		probing(test_ports_are_watched_until_sessions_have_ended),
	};

	test_eal_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
