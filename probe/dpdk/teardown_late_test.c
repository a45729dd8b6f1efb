/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * DPDK ends, and has stopped waiting for the control thread, which then ends by itself and uses
 * nothing of DPDK, whose memory may be unmapped. The linker wraps the functions that it would call.
 */
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include <rte_eal.h>
#include <rte_ethdev.h>

#include "probe/control/control.h"
#include "port_call.h"
#include "ringtap/monitor.h"
#include "ringtap/probe.h"
#include "ringtap/reader.h"
#include "teardown.h"
#include "probe/test_eal.h"
#include "probe/test_ports.h"

static uint32_t calls;

#define WRAP(result, function, parameters, arguments) \
	result __real_##function parameters;          \
	result __wrap_##function parameters;          \
	result __wrap_##function parameters           \
	{                                             \
		rt_fetch_add(&calls, 1);              \
		return __real_##function arguments;   \
	}

WRAP(int, rte_eth_stats_get, (uint16_t port, struct rte_eth_stats *out), (port, out))
WRAP(int, rte_eth_remove_rx_callback,
	(uint16_t port, uint16_t queue, const struct rte_eth_rxtx_callback *callback),
	(port, queue, callback))
WRAP(int, rte_eth_remove_tx_callback,
	(uint16_t port, uint16_t queue, const struct rte_eth_rxtx_callback *callback),
	(port, queue, callback))
WRAP(int, rte_eth_dev_callback_unregister,
	(uint16_t port, enum rte_eth_event_type event, rte_eth_dev_cb_fn f, void *arg),
	(port, event, f, arg))

static pthread_barrier_t shown, leave;

static void show_until_released(struct rt_stats *f, uint64_t collecting_ms, void *arg)
{
	pthread_barrier_wait(&shown);
	pthread_barrier_wait(&leave);
}

static void *hold_lock(void *arg)
{
	return (void *)(intptr_t)rt_control_query(RT_COLLECT_POOLS, show_until_released, NULL);
}

static void test_late_control_thread_ends_without_dpdk(void **state)
{
	const char *dir = rte_eal_get_runtime_dir();
	uint16_t port = test_port_make("net_ring_x");
	struct ringtap_monitor *monitor;
	struct ringtap_capture *cap;
	struct pollfd closed = {.events = POLLIN};
	uint64_t begun_ms;
	pthread_t holder;
	char err[256], byte;

	assert_int_equal(ringtap_probe_start(), 0);
	cap = test_capture(dir);
	assert_int_equal(ringtap_monitor_open(&monitor, dir,
				 &(struct ringtap_monitor_options){
					 .size = sizeof(struct ringtap_monitor_options),
					 .collectors = RINGTAP_POLLS | RINGTAP_POOLS,
					 .latency_every = 1},
				 err, sizeof(err)),
		0);
	pthread_barrier_init(&shown, NULL, 2);
	pthread_barrier_init(&leave, NULL, 2);
	assert_int_equal(pthread_create(&holder, NULL, hold_lock, NULL), 0);
	pthread_barrier_wait(&shown);
	begun_ms = rt_now_ms();
	rt_teardown();
	assert_true(rt_now_ms() - begun_ms >= 1000);
	assert_true(rt_teardown_late());
	rt_store(&calls, 0);
	pthread_barrier_wait(&leave);
	pthread_join(holder, NULL);
	closed.fd = ringtap_monitor_fd(monitor);
	assert_int_equal(poll(&closed, 1, 5000), 1);
	assert_int_equal(recv(closed.fd, &byte, 1, 0), 0);
	ringtap_probe_stop(); /* returns when the thread has ended */
	assert_int_equal(rt_load(&calls), 0);
	assert_false(rt_port_call_begin(port));
	assert_int_equal(test_port_callbacks(port), 2);
	ringtap_monitor_close(monitor);
	ringtap_capture_close(cap);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_late_control_thread_ends_without_dpdk),
	};

	test_eal_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
