/* SPDX-License-Identifier: BSD-3-Clause */
/* The clock that unit tests set. */
#include <unistd.h>

#include "base/test_util.h"
#include "now.h"
#include "test_now.h"

static unsigned long long order;

static int set(void **state)
{
	order = 0;
	test_now_set(1000, 5000);
	return 0;
}

static void append(void *arg)
{
	order = order * 10 + (unsigned long long)(uintptr_t)arg;
}

static void only_waiting_lets_time_pass(void **state)
{
	assert_int_equal(rt_now_ns(CLOCK_MONOTONIC), 1000);
	assert_int_equal(rt_now_ns(CLOCK_BOOTTIME), 1000);
	assert_int_equal(rt_now_ns(CLOCK_REALTIME), 5000);
	rt_sleep_ns(30);
	assert_int_equal(rt_now_ns(CLOCK_MONOTONIC), 1030);
	assert_int_equal(rt_now_ns(CLOCK_REALTIME), 5030);
	test_now_step_real(-100);
	assert_int_equal(rt_now_ns(CLOCK_MONOTONIC), 1030);
	assert_int_equal(rt_now_ns(CLOCK_REALTIME), 4930);
}

static void a_poll_takes_its_time_unless_something_is_readable(void **state)
{
	int fd[2];
	struct pollfd p = {.events = POLLIN};

	assert_int_equal(pipe(fd), 0);
	p.fd = fd[0];
	assert_int_equal(rt_poll_ns(&p, 1, 50), 0);
	assert_int_equal(rt_now_ns(CLOCK_MONOTONIC), 1050);
	assert_int_equal(write(fd[1], "x", 1), 1);
	assert_int_equal(rt_poll_ns(&p, 1, 50), 1);
	assert_int_equal(rt_poll_ns(&p, 1, RT_WAIT_ENDLESS), 1);
	assert_int_equal(rt_now_ns(CLOCK_MONOTONIC), 1050);
	close(fd[0]);
	close(fd[1]);
}

static void write_one(void *arg)
{
	assert_int_equal(write(*(int *)arg, "x", 1), 1);
}

static void a_plan_ends_a_poll(void **state)
{
	int fd[2];
	struct pollfd p = {.events = POLLIN};

	assert_int_equal(pipe(fd), 0);
	p.fd = fd[0];
	test_now_after(20, write_one, &fd[1]);
	assert_int_equal(rt_poll_ns(&p, 1, 50), 1);
	assert_int_equal(rt_now_ns(CLOCK_MONOTONIC), 1020);
	close(fd[0]);
	close(fd[1]);
}

static void plans_are_executed_in_the_order_of_time(void **state)
{
	test_now_after(30, append, (void *)3);
	test_now_after(10, append, (void *)1);
	test_now_after(20, append, (void *)2);
	test_now_after(31, append, (void *)4);
	test_now_pass(30);
	assert_int_equal(order, 123);
	test_now_pass(1);
	assert_int_equal(order, 1234);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(only_waiting_lets_time_pass, set),
		cmocka_unit_test_setup(a_poll_takes_its_time_unless_something_is_readable, set),
		cmocka_unit_test_setup(a_plan_ends_a_poll, set),
		cmocka_unit_test_setup(plans_are_executed_in_the_order_of_time, set),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
