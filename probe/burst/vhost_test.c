/* SPDX-License-Identifier: BSD-3-Clause */
/* Ports of the vhost library: what it does with real guests is in e2e/ovs/. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "probe/capture/request.h"
#include "probe/dpdk/ports.h"
#include "probe/hook/hook.h"
#include "probe/test_eal.h"
#include "probe/test_ports.h"
#include "test_vhost.h"

#define FIRST ((uint16_t)RTE_MAX_ETHPORTS)

static uint16_t send_to(int vid, uint16_t queue, uint16_t n)
{
	struct rte_mbuf *m[BURST];
	uint16_t sent;

	for (uint16_t i = 0; i < n; i++)
		m[i] = test_frame(i, 60);
	sent = app->enqueue(vid, queue, m, n);
	rte_pktmbuf_free_bulk(m, n);
	return sent;
}

static bool is_named(uint16_t port, const char *name)
{
	char is[RT_NAME_LEN];

	return !rt_port_name(port, is) && !strcmp(is, name);
}

static void test_ports_appear_when_they_are_polled(void **state)
{
	struct rt_msg_port d;
	uint32_t queues[2];

	assert_true(rt_vhost_is_on());
	assert_int_equal(rt_port_next(0), RT_MAX_PORTS);
	lib.path[3] = "/run/vm0";
	lib.rings = 8;
	assert_int_equal(test_vhost_poll(3, FROM), BURST);
	assert_int_equal(rt_port_next(0), FIRST);
	assert_int_equal(rt_port_next(FIRST + 1), RT_MAX_PORTS);
	assert_true(is_named(FIRST, "/run/vm0"));
	assert_int_equal(rt_port_describe(FIRST, &d), 0);
	assert_string_equal(d.driver, "vhost-user");
	assert_true(d.link_up && d.port_id == FIRST && d.nb_tx_queues == 4);
	assert_int_equal(rt_port_queues(FIRST, queues), 0);
	assert_true(queues[0] == 4 && queues[1] == 4);
	rt_vhost_tick();
	rt_vhost_tick();
	rt_vhost_tick();
	assert_int_equal(rt_port_describe(FIRST, &d), 0);
	assert_false(d.link_up); /* nothing polls it */
}

static void test_a_path_is_a_port_and_numbers_are_not(void **state)
{
	uint32_t generation;
	char name[64];

	lib.path[0] = "/run/a";
	lib.path[1] = "/run/b";
	test_vhost_poll(0, FROM);
	test_vhost_poll(1, FROM);
	uint16_t a = rt_port_next(0), b = rt_port_next(a + 1);
	assert_true(is_named(a, "/run/a") && is_named(b, "/run/b"));
	/* The guest of b reconnects, and gets the number that a had. */
	generation = rt_port_generation(b);
	lib.path[0] = "/run/b";
	app->name(0, name, sizeof(name));
	assert_string_equal(name, "/run/b");
	test_vhost_poll(0, FROM);
	assert_int_equal(rt_port_generation(b), generation);
	assert_int_equal(rt_port_next(b + 1), RT_MAX_PORTS);
	/* Without its name: within a round. */
	lib.path[0] = "/run/c";
	rt_vhost_tick();
	test_vhost_poll(0, FROM);
	uint16_t c = rt_port_next(b + 1);
	assert_true(is_named(c, "/run/c"));
	/* Removed, and added again. */
	assert_int_equal(app->unregister("/refused"), -1);
	assert_int_equal(app->unregister("/run/none"), 0);
	assert_int_equal(app->unregister("/run/b"), 0);
	assert_false(rt_port_alive(b));
	assert_int_not_equal(rt_port_generation(b), generation);
	lib.path[5] = "/run/b";
	test_vhost_poll(5, FROM);
	assert_true(rt_port_alive(b) && is_named(b, "/run/b"));
}

static void test_odd_devices_and_names(void **state)
{
	static char longer[10000];

	memset(longer, 'x', sizeof(longer) - 1);
	for (int vid = -1; vid < 5000; vid += 1000)
		assert_int_equal(test_vhost_poll(vid, FROM), BURST); /* have no name */
	lib.path[7] = "/run/queues";
	assert_int_equal(test_vhost_poll(7, UINT16_MAX), BURST);
	assert_int_equal(rt_port_next(0), RT_MAX_PORTS);
	lib.path[2] = longer;
	lib.rings = UINT16_MAX;
	test_vhost_poll(2, FROM);
	uint16_t p = rt_port_next(0);
	char name[RT_NAME_LEN];
	uint32_t queues[2];

	assert_int_equal(rt_port_name(p, name), 0);
	assert_int_equal(strlen(name), RT_NAME_LEN - 1);
	assert_int_equal(rt_port_queues(p, queues), 0);
	assert_true(queues[0] == 128 && queues[1] == 128);
}

static uint16_t poll_path(const char *path)
{
	lib.path[0] = path;
	rt_vhost_tick();
	assert_int_equal(test_vhost_poll(0, FROM), BURST);
	return rt_vhost_ids[0];
}

static void test_more_paths_than_ports(void **state)
{
	static char path[RT_VHOST_PORTS + 1][32];

	for (int i = 0; i <= RT_VHOST_PORTS; i++)
		snprintf(path[i], sizeof(path[i]), "/run/many%d", i);
	for (int i = 0; i < RT_VHOST_PORTS; i++)
		assert_true(rt_port_alive(poll_path(path[i])));
	assert_int_equal(poll_path(path[RT_VHOST_PORTS]), RT_VHOST_NONE);
	/* One that is gone makes room, as soon as sessions have noticed. */
	assert_int_equal(app->unregister(path[17]), 0);
	assert_int_equal(poll_path(path[RT_VHOST_PORTS]), RT_VHOST_NONE);
	assert_true(is_named(poll_path(path[RT_VHOST_PORTS]), path[RT_VHOST_PORTS]));
	assert_int_equal(poll_path(path[17]), RT_VHOST_NONE);
}

static struct rt_session *capture(uint32_t on_full)
{
	return test_vhost_capture(
		&(struct rt_msg_open){.buffer_size = TEST_RING, .on_full = on_full}, NULL);
}

static void test_what_was_accepted_is_recorded_once(void **state)
{
	struct rt_session *s;
	uint64_t before;

	lib.path[1] = "/run/vm1";
	test_vhost_poll(1, FROM);
	s = capture(RT_ON_FULL_DROP);
	assert_int_equal(rt_session_linked(s), 2);
	assert_int_equal(test_vhost_poll(1, FROM), BURST);
	assert_int_equal(test_session_sum(s).captured, BURST);
	lib.ring = &s->rings[rt_thread_self->index];
	lib.most = 3;
	before = rt_tsc();
	assert_int_equal(send_to(1, TO, 5), 3);
	assert_int_equal(test_session_sum(s).captured, BURST + 3);
	lib.most = 0;
	assert_int_equal(send_to(1, TO, 2), 0);
	assert_int_equal(test_session_sum(s).seen, BURST + 3);
	/* The ring was busy while the guest could answer, and the time is before that. */
	assert_true(lib.ring_at && !rt_load(&lib.ring->pub->busy));
	lib.most = 1;
	struct rt_clock_line line = rt_latch_read(&rt_hook_clock);
	lib.ticks = true;
	assert_int_equal(send_to(1, TO, 1), 1);
	lib.ticks = false;
	assert_true(lib.ring->last_ns <= rt_clock_ns(&line, lib.tsc));
	assert_true(lib.ring->last_ns >= rt_clock_ns(&line, before));
	test_session_end(s);
	assert_int_equal(send_to(1, TO, 1), 1);
	rt_session_free(s);
}

static bool refuses;

int __real_mprotect(void *at, size_t size, int protection);
int __wrap_mprotect(void *at, size_t size, int protection);

int __wrap_mprotect(void *at, size_t size, int protection)
{
	errno = EACCES;
	return refuses ? -1 : __real_mprotect(at, size, protection);
}

static void test_a_refusal_is_logged(void **state)
{
	char *text = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&text, &size);

	rt_ports_unwatch();
	rte_openlog_stream(f);
	rte_log_set_global_level(RTE_LOG_WARNING);
	refuses = true;
	assert_false(rt_ports_watch(rt_hook_cut));
	refuses = false;
	rte_log_set_global_level(RTE_LOG_ERR);
	rte_openlog_stream(NULL);
	fclose(f);
	assert_false(rt_vhost_is_on());
	assert_non_null(
		strstr(text, "vhost-user ports are not visible: cannot divert calls: Perm"));
	free(text);
	lib.path[1] = "/run/vm1";
	assert_int_equal(test_vhost_poll(1, FROM), BURST); /* as before */
	assert_int_equal(rt_port_next(0), RT_MAX_PORTS);
}

static void *send_one(void *arg)
{
	return send_to(1, TO, 1) == 1 ? arg : NULL;
}

static void test_a_thread_that_is_inside_holds_up_the_end(void **state)
{
	struct rt_session *s;
	pthread_t thread;
	void *ok = NULL;

	lib.path[1] = "/run/vm1";
	test_vhost_poll(1, FROM);
	s = capture(RT_ON_FULL_DROP);
	rt_store(&lib.hold, 1);
	assert_false(pthread_create(&thread, NULL, send_one, &lib));
	while (!rt_load(&lib.held))
		sched_yield();
	rt_session_stop(s);
	assert_false(rt_session_stopped(s));
	rt_vhost_end();
	assert_false(rt_session_stopped(s));
	rt_store(&lib.hold, 0);
	while (!rt_session_stopped(s))
		sched_yield();
	pthread_join(thread, &ok);
	assert_ptr_equal(ok, &lib);
	assert_int_equal(test_session_sum(s).captured, 0); /* unlinked before the call returned */
	rt_session_free(s);
}

static void test_a_call_that_outlives_the_end_leaves_no_port(void **state)
{
	lib.path[1] = "/run/vm1";
	assert_int_equal(test_vhost_poll(1, FROM), BURST);
	lib.meanwhile = rt_ports_unwatch;
	assert_int_equal(test_vhost_poll(1, FROM), BURST);
	lib.meanwhile = NULL;
	assert_int_equal(rt_port_next(0), RT_MAX_PORTS);
	assert_false(rt_ports_watch(rt_hook_cut));
	assert_int_equal(rt_port_next(0), RT_MAX_PORTS);
	assert_int_equal(test_vhost_poll(1, FROM), BURST);
	assert_true(is_named(rt_port_next(0), "/run/vm1"));
}

static struct {
	uint32_t stop;
	uint64_t sent;
} traffic;

static void *keep_sending(void *arg)
{
	while (!rt_load(&traffic.stop)) {
		(void)test_vhost_poll(1, FROM);
		rt_store(&traffic.sent, traffic.sent + send_to(1, TO, 2));
	}
	return NULL;
}

static void test_calls_are_diverted_again_and_again_under_traffic(void **state)
{
	uint64_t captured = 0;
	pthread_t thread;

	lib.path[1] = "/run/vm1";
	assert_false(pthread_create(&thread, NULL, keep_sending, NULL));
	for (int i = 0; i < 50; i++) {
		struct rt_session *s = capture(RT_ON_FULL_DROP);
		uint64_t sent = rt_load(&traffic.sent);

		while (rt_load(&traffic.sent) < sent + 4) {
			rt_session_rescan(s);
			sched_yield();
		}
		test_session_end(s);
		captured += test_session_sum(s).seen;
		rt_session_free(s);
		rt_ports_unwatch();
		assert_int_equal(rt_port_next(0), RT_MAX_PORTS);
		assert_false(rt_ports_watch(rt_hook_cut));
	}
	rt_store(&traffic.stop, 1);
	pthread_join(thread, NULL);
	assert_true(captured > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			test_ports_appear_when_they_are_polled, test_watch, test_unwatch),
		cmocka_unit_test_setup_teardown(
			test_a_path_is_a_port_and_numbers_are_not, test_watch, test_unwatch),
		cmocka_unit_test_setup_teardown(
			test_odd_devices_and_names, test_watch, test_unwatch),
		cmocka_unit_test_setup_teardown(
			test_more_paths_than_ports, test_watch, test_unwatch),
		cmocka_unit_test_setup_teardown(
			test_what_was_accepted_is_recorded_once, test_watch, test_unwatch),
		cmocka_unit_test_setup_teardown(test_a_refusal_is_logged, test_watch, test_unwatch),
		cmocka_unit_test_setup_teardown(
			test_a_thread_that_is_inside_holds_up_the_end, test_watch, test_unwatch),
		cmocka_unit_test_setup_teardown(
			test_a_call_that_outlives_the_end_leaves_no_port, test_watch, test_unwatch),
		cmocka_unit_test_setup_teardown(
			test_calls_are_diverted_again_and_again_under_traffic, test_watch,
			test_unwatch),
	};

	test_stats_start();
	return test_load_app() || cmocka_run_group_tests(tests, NULL, NULL);
}
