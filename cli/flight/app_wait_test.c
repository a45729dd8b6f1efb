/* SPDX-License-Identifier: BSD-3-Clause */
/* How often an application is attached to that cannot be. */
#include <setjmp.h>
#include <stdarg.h>
#include <signal.h>
#include <stddef.h>

#include <cmocka.h>

#include "app_wait.h"
#include "base/signals.h"
#include "base/util.h"
#include "measure/fake_monitor.h"
#include "common/test_now.h"

static void test_delays_double_up_to_a_minute(void **state)
{
	const unsigned seconds[] = {1, 2, 4, 8, 16, 32, 60, 60, 60};
	struct retry a = {0};

	(void)state;
	for (size_t i = 0; i < sizeof(seconds) / sizeof(seconds[0]); i++)
		assert_int_equal(retry_delay(&a, 4711), seconds[i] * NS_PER_S);
	/* For ever. */
	for (unsigned i = 0; i < 1000; i++)
		assert_int_equal(retry_delay(&a, 4711), 60 * NS_PER_S);
}

static void test_another_process_begins_anew(void **state)
{
	struct retry a = {0};

	(void)state;
	for (unsigned i = 0; i < 10; i++)
		retry_delay(&a, 4711);
	assert_int_equal(retry_delay(&a, 4712), NS_PER_S);
	assert_int_equal(retry_delay(&a, 4712), 2 * NS_PER_S);
}

/* One in another PID namespace has none here. */
static void test_unknown_process(void **state)
{
	struct retry a = {0};

	(void)state;
	assert_int_equal(retry_delay(&a, 0), NS_PER_S);
	assert_int_equal(retry_delay(&a, 0), 2 * NS_PER_S);
}

/* ---- with a clock that is set */

static const struct flight_config quiet = {.quiet = true};

static int begin(void **state)
{
	(void)state;
	test_now_set(TEST_NOW_MONO_NS, TEST_NOW_REAL_NS);
	fake_apps_begin();
	return 0;
}

static int end(void **state)
{
	(void)state;
	fake_apps_end();
	stop_forget();
	return 0;
}

static uint64_t now(void)
{
	return rt_now_ns(CLOCK_MONOTONIC) - TEST_NOW_MONO_NS;
}

static void appear(void *app)
{
	((struct fake_app *)app)->absent = false;
}

static void vanish(void *app)
{
	((struct fake_app *)app)->absent = true;
}

static void restart(void *app)
{
	((struct fake_app *)app)->pid++;
}

static void interrupt(void *arg)
{
	(void)arg;
	raise(SIGTERM);
}

static void test_one_that_runs_is_not_waited_for(void **state)
{
	struct flight_config named = {.quiet = true, .words = {"app"}};

	(void)state;
	assert_true(app_wait(&quiet));
	assert_true(app_wait(&named));
	assert_int_equal(now(), 0);
}

static void test_one_that_starts_is_found_within_half_a_second(void **state)
{
	struct flight_config other = {.quiet = true, .words = {"other"}};

	(void)state;
	fake_app_add("other")->absent = true;
	test_now_after(33 * NS_PER_S / 10, appear, &fake_apps[1]);
	assert_true(app_wait(&other));
	assert_in_range(now(), 33 * NS_PER_S / 10, 38 * NS_PER_S / 10);
}

static void test_a_signal_ends_the_waiting(void **state)
{
	(void)state;
	fake_apps[0].absent = true;
	test_now_after(5 * NS_PER_S, interrupt, NULL);
	assert_false(app_wait(&quiet));
	assert_int_equal(now(), 5 * NS_PER_S);
}

static void test_retries_take_their_delays(void **state)
{
	struct retry a = {0};

	(void)state;
	assert_true(app_wait_retry(&quiet, &a));
	assert_int_equal(now(), NS_PER_S);
	assert_true(app_wait_retry(&quiet, &a));
	assert_int_equal(now(), 3 * NS_PER_S);
	assert_true(app_wait_retry(&quiet, &a));
	assert_int_equal(now(), 7 * NS_PER_S);
}

static void test_a_restart_ends_the_delay(void **state)
{
	struct retry a = {.pid = fake_apps[0].pid, .delay_ns = 30 * NS_PER_S};

	(void)state;
	test_now_after(12 * NS_PER_S, restart, &fake_apps[0]);
	assert_true(app_wait_retry(&quiet, &a));
	assert_in_range(now(), 12 * NS_PER_S, 13 * NS_PER_S);
	assert_int_equal(a.delay_ns, 0);
}

static void test_an_end_is_followed_by_waiting(void **state)
{
	struct retry a = {.pid = fake_apps[0].pid, .delay_ns = 30 * NS_PER_S};

	(void)state;
	test_now_after(12 * NS_PER_S, vanish, &fake_apps[0]);
	test_now_after(100 * NS_PER_S, appear, &fake_apps[0]);
	assert_true(app_wait_retry(&quiet, &a));
	assert_in_range(now(), 100 * NS_PER_S, 101 * NS_PER_S);
}

static void test_a_signal_ends_the_delay(void **state)
{
	struct retry a = {.pid = fake_apps[0].pid, .delay_ns = 30 * NS_PER_S};

	(void)state;
	test_now_after(12 * NS_PER_S, interrupt, NULL);
	assert_false(app_wait_retry(&quiet, &a));
	assert_int_equal(now(), 12 * NS_PER_S);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_delays_double_up_to_a_minute),
		cmocka_unit_test(test_another_process_begins_anew),
		cmocka_unit_test(test_unknown_process),
		CASE(test_one_that_runs_is_not_waited_for),
		CASE(test_one_that_starts_is_found_within_half_a_second),
		CASE(test_a_signal_ends_the_waiting),
		CASE(test_retries_take_their_delays),
		CASE(test_a_restart_ends_the_delay),
		CASE(test_an_end_is_followed_by_waiting),
		CASE(test_a_signal_ends_the_delay),
	};

	if (stop_catch())
		return 1;

	return cmocka_run_group_tests(tests, NULL, NULL);
}
