/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls of drivers while a port is closed. */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "common/atomics.h"
#include "port_call.h"
#include "probe/tunables.h"

static uint32_t calls;

/* The driver uses memory that exists until the port's event has been handled. */
static void *call_often(void *arg)
{
	uint32_t *memory = arg;

	while (rt_port_call_begin(3)) {
		for (int i = 0; i < 100; i++)
			*memory += 1; /* ThreadSanitizer detects it behind the bar */
		rt_port_call_end();
		rt_fetch_add(&calls, 1);
	}
	return NULL;
}

static void test_event_waits_for_the_call_and_prevents_the_next(void **state)
{
	static uint32_t memory;
	pthread_t caller;

	rt_probe_limits.port_call_ms = 60000;
	for (int i = 0; i < 200; i++) {
		rt_store(&calls, 0);
		rt_port_call_bar(3, false);
		assert_int_equal(pthread_create(&caller, NULL, call_often, &memory), 0);
		while (rt_load(&calls) < 3)
			sched_yield();
		rt_port_call_bar(3, true);
		memory = 0;
		pthread_join(caller, NULL);
		assert_int_equal(memory, 0);
	}
}

static void *bar(void *arg)
{
	rt_port_call_bar(3, true);
	return NULL;
}

static void test_event_waits_for_a_bounded_time(void **state)
{
	pthread_t event;

	rt_probe_limits.port_call_ms = 4;
	rt_port_call_unbar_all();
	assert_true(rt_port_call_begin(3));
	assert_int_equal(pthread_create(&event, NULL, bar, NULL), 0);
	pthread_join(event, NULL);
	rt_port_call_end();
	assert_false(rt_port_call_begin(3));
}

static void test_events_of_other_ports_do_not_wait(void **state)
{
	rt_probe_limits.port_call_ms = UINT32_MAX;
	rt_port_call_unbar_all();
	assert_true(rt_port_call_begin(3));
	rt_port_call_bar(4, true);
	rt_port_call_bar(3, false); /* a new port */
	rt_port_call_end();
	assert_false(rt_port_call_begin(4));
	assert_true(rt_port_call_begin(3));
	rt_port_call_end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_event_waits_for_the_call_and_prevents_the_next),
		cmocka_unit_test(test_event_waits_for_a_bounded_time),
		cmocka_unit_test(test_events_of_other_ports_do_not_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
