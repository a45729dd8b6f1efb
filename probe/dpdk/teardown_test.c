/* SPDX-License-Identifier: BSD-3-Clause */
/* The cleanup of DPDK with all kinds of readers attached. Only once per process. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include <rte_bus.h>
#include <rte_eal.h>
#include <rte_ethdev.h>

#include "common/segment.h"
#include "compat.h"
#include "probe/control/control.h"
#include "ringtap/monitor.h"
#include "ringtap/probe.h"
#include "teardown.h"
#include "probe/test_eal.h"
#include "probe/test_ports.h"

#define SLOW_MS 200

static char dir[256], socket_path[300];
static struct ringtap_monitor *monitor;

static int any(const struct rte_bus *bus, const void *data)
{
	return 0;
}

/* Buses that are cleaned up before would remove ports that the control thread uses. */
static void test_bus_is_the_first(void **state)
{
	const struct rte_bus *first = rte_bus_find(NULL, any, NULL);

	assert_string_equal(rt_compat_bus_name(first), "ringtap");
	assert_ptr_equal(rte_bus_find_by_name("ringtap"), first);
	assert_non_null(rte_bus_find_by_name("vdev"));
	assert_true(rte_eal_hotplug_add("ringtap", "ringtap0", "") < 0);
}

static void test_monitor_is_attached(void **state)
{
	char err[256];

	snprintf(dir, sizeof(dir), "%s", rte_eal_get_runtime_dir());
	snprintf(socket_path, sizeof(socket_path), "%s/%s", dir, RT_SOCKET_NAME);
	assert_non_null(test_pool());
	assert_int_equal(ringtap_probe_start(), 0);
	assert_int_equal(ringtap_monitor_open(&monitor, dir,
				 &(struct ringtap_monitor_options){
					 .size = sizeof(struct ringtap_monitor_options),
					 .collectors = RINGTAP_POLLS | RINGTAP_POOLS,
					 .latency_every = 1},
				 err, sizeof(err)),
		0);
	assert_int_equal(access(socket_path, F_OK), 0);
}

/* A child has none of the threads, and must not wait for them or remove the socket. */
static void test_exit_of_a_child_does_not_stop_the_probe(void **state)
{
	uint64_t begun = rt_now_ms();
	int status;
	pid_t child = fork();

	if (!child) {
		rt_teardown();
		_exit(rt_now_ms() - begun < 500 ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(access(socket_path, F_OK), 0);
	assert_false(rt_teardown_begun());
}

static void *hold(void *arg)
{
	struct timespec slow = {.tv_nsec = SLOW_MS * 1000000};

	assert_true(rt_teardown_hold());
	pthread_barrier_wait(arg);
	nanosleep(&slow, NULL); /* delays the query */
	rt_teardown_release();
	return NULL;
}

static void test_cleanup_waits_for_queries_and_ends_all(void **state)
{
	uint64_t begun = rt_now_ms();
	pthread_barrier_t barrier;
	pthread_t user;
	char byte;

	pthread_barrier_init(&barrier, NULL, 2);
	assert_int_equal(pthread_create(&user, NULL, hold, &barrier), 0);
	pthread_barrier_wait(&barrier);
	/* Before 22.11 the calls of other objects are replaced; those of its own, as here, are not.
	 */
	if (!RT_COMPAT_BUS_CLEANUP)
		rt_teardown();
	assert_int_equal(rte_eal_cleanup(), 0);
	assert_true(rt_now_ms() - begun >= SLOW_MS);
	assert_true(rt_now_ms() - begun < 2000);
	pthread_join(user, NULL);
	assert_true(rt_teardown_begun());
	/* The monitor's connection is closed, and the socket is removed. */
	assert_int_equal(recv(ringtap_monitor_fd(monitor), &byte, 1, 0), 0);
	assert_int_equal(access(socket_path, F_OK), -1);
	ringtap_monitor_close(monitor);
}

static void test_no_restart_after_cleanup(void **state)
{
	assert_int_equal(ringtap_probe_start(), -ESHUTDOWN);
	assert_int_equal(rt_control_start(false), -ESHUTDOWN);
	assert_int_equal(rt_control_query(RT_COLLECT_POOLS, NULL, NULL), -ESHUTDOWN);
	assert_false(rt_teardown_hold());
	ringtap_probe_stop();
	assert_int_equal(ringtap_probe_start(), -ESHUTDOWN);
	assert_int_equal(ringtap_probe_port_name(0, "name"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bus_is_the_first),
		cmocka_unit_test(test_monitor_is_attached),
		cmocka_unit_test(test_exit_of_a_child_does_not_stop_the_probe),
		cmocka_unit_test(test_cleanup_waits_for_queries_and_ends_all),
		cmocka_unit_test(test_no_restart_after_cleanup),
	};

	test_eal_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
