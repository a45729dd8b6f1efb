/* SPDX-License-Identifier: BSD-3-Clause */
/* Use of DPDK's heap by readers that come and go. The test acts as the control thread. */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include <rte_ethdev.h>
#include <rte_malloc.h>

#include "hook.h"
#include "probe/test_eal.h"
#include "probe/test_ports.h"
#include "probe/tunables.h"

#define TOGGLES  100000u
#define CALLBACK 1024u /* bytes; no callback with its header takes as many */

static uint16_t port;
static struct rt_hook *hook;

static size_t heap_bytes(void)
{
	struct rte_malloc_socket_stats s;
	size_t sum = 0;

	for (unsigned i = 0; i < RTE_MAX_NUMA_NODES; i++)
		sum += rte_malloc_get_socket_stats((int)i, &s) ? 0 : s.heap_allocsz_bytes;
	return sum;
}

static void toggle(unsigned times)
{
	for (unsigned i = 0; i < times; i++) {
		assert_int_equal(rt_hook_use(hook), 0);
		assert_non_null(hook->callback);
		if (i % 3 == 0)
			rt_hook_cut(port); /* as if the application removed and added it */
		rt_hook_unuse(hook);
		rt_hook_reclaim();
	}
}

/* All but the limits of time, for threads without a slot. */
static void free_removed(void)
{
	rt_hook_remove_unused(true);
	rt_probe_limits.deferred_ms = 0;
	while (hook->waiting)
		rt_hook_reclaim();
}

static int restore(void **state)
{
	free_removed();
	rt_probe_limits.deferred_ms = 1000;
	rt_probe_limits.hook_rest_ms = 1000000;
	return 0;
}

static void test_users_that_follow_each_other_allocate_nothing(void **state)
{
	size_t before = heap_bytes(), after;

	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(rt_hook_use(hook), 0);
		rt_hook_unuse(hook);
	}
	after = heap_bytes();
	for (unsigned i = 0; i < TOGGLES; i++) {
		assert_int_equal(rt_hook_use(hook), 0);
		rt_hook_unuse(hook);
	}
	assert_int_equal(heap_bytes(), after);
	/* It is in place for the next user, not for ever. */
	rt_hook_remove_unused(false);
	assert_non_null(hook->callback);
	rt_probe_limits.hook_rest_ms = 0;
	rt_hook_remove_unused(false);
	assert_null(hook->callback);
	free_removed();
	assert_int_equal(heap_bytes(), before);
}

static uint32_t polled, leave;

static void *poll_once_and_sleep(void *arg)
{
	test_port_poll(port, 1);
	rt_store_release(&polled, 1);
	while (!rt_load(&leave))
		sched_yield();
	return NULL;
}

/* A thread that has a slot and polls no more delays all that waits to be freed. */
static void test_callbacks_that_wait_to_be_freed_are_bounded(void **state)
{
	size_t before = heap_bytes();
	pthread_t sleeper;

	rt_probe_limits.hook_rest_ms = 0;
	rt_store(&leave, 0);
	assert_int_equal(rt_hook_use(hook), 0);
	assert_int_equal(pthread_create(&sleeper, NULL, poll_once_and_sleep, NULL), 0);
	while (!rt_load_acquire(&polled))
		sched_yield();
	rt_hook_unuse(hook);
	toggle(TOGGLES);
	assert_int_equal(hook->waiting, RT_HOOK_WAITING);
	assert_in_range(heap_bytes() - before, 1, (RT_HOOK_WAITING + 1) * CALLBACK);
	rt_store(&leave, 1);
	pthread_join(sleeper, NULL);
	free_removed();
	rt_hook_remove_unused(false);
	assert_null(hook->callback);
	free_removed();
	assert_int_equal(heap_bytes(), before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(
			test_users_that_follow_each_other_allocate_nothing, restore),
		cmocka_unit_test_teardown(
			test_callbacks_that_wait_to_be_freed_are_bounded, restore),
	};

	test_stats_start();
	port = test_port_make("net_ring_h");
	hook = rt_hook_get(port, 0, RT_DIR_RX);
	restore(NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
