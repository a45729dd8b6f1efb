/* SPDX-License-Identifier: BSD-3-Clause */
/* Ten minutes of values, with a clock that is set. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/test_util.h"
#include "base/util.h"
#include "common/test_now.h"
#include "history.h"

static struct history h;
static struct series_list l;

static int begin(void **state)
{
	test_now_set(TEST_NOW_MONO_NS, TEST_NOW_REAL_NS);
	history_begin(&h, 0);
	return 0;
}

static int end(void **state)
{
	series_free(&l);
	return 0;
}

/* A second with this value, and one without. */
static void second(double value)
{
	test_now_pass(NS_PER_S);
	history_step(&h);
	series_set(&l, &h, SERIES_BUSY, "x", value);
}

static void silent_second(void)
{
	test_now_pass(NS_PER_S);
	history_step(&h);
}

static double at(uint64_t step)
{
	return series_at(l.list[0], &h, step);
}

static void nothing_is_kept_at_first(void **state)
{
	assert_int_equal(h.origin_ns, TEST_NOW_REAL_NS);
	assert_int_equal(h.steps, 0);
	assert_int_equal(history_first(&h), 0);
}

static void values_are_those_of_their_step(void **state)
{
	for (unsigned i = 0; i < 5; i++)
		second(i);
	for (unsigned i = 0; i < 5; i++) {
		assert_true(at(i) == i);
		assert_int_equal(history_from(&h, i), i * NS_PER_S);
		assert_int_equal(history_to(&h, i), (i + 1) * NS_PER_S);
	}
	assert_true(isnan(at(5)));
}

static void the_oldest_are_forgotten(void **state)
{
	for (unsigned i = 0; i < 2 * HISTORY_STEPS + 7; i++)
		second(i);
	assert_int_equal(history_first(&h), HISTORY_STEPS + 7);
	assert_true(isnan(at(HISTORY_STEPS + 6)));
	for (uint64_t i = history_first(&h); i < h.steps; i++)
		assert_true(at(i) == (double)i);
	assert_int_equal(history_to(&h, h.steps - 1) - history_from(&h, history_first(&h)),
		HISTORY_STEPS * NS_PER_S);
}

static void less_is_kept_on_request(void **state)
{
	history_begin(&h, 20 * NS_PER_S);
	for (unsigned i = 0; i < 100; i++)
		second(i);
	assert_int_equal(history_first(&h), 80);
	assert_true(isnan(at(79)) && at(80) == 80);
}

static void a_pause_is_a_step_that_is_unknown(void **state)
{
	second(1);
	test_now_pass(60 * NS_PER_S);
	second(2);
	assert_int_equal(h.steps, 3);
	assert_true(at(0) == 1 && isnan(at(1)) && at(2) == 2);
	assert_int_equal(history_from(&h, 1), NS_PER_S);
	assert_int_equal(history_to(&h, 1), 61 * NS_PER_S);
	assert_int_equal(history_to(&h, 2), 62 * NS_PER_S);
}

static void a_late_step_is_no_pause(void **state)
{
	second(1);
	test_now_pass(NS_PER_S);
	second(2);
	assert_int_equal(h.steps, 2);
	assert_int_equal(history_to(&h, 1), 3 * NS_PER_S);
}

static void a_clock_that_is_set_moves_nothing(void **state)
{
	second(1);
	test_now_step_real(-3600 * (int64_t)NS_PER_S);
	second(2);
	assert_int_equal(history_to(&h, 1), 2 * NS_PER_S);
	assert_int_equal(h.origin_ns, TEST_NOW_REAL_NS);
}

static void what_a_series_lacks_is_unknown(void **state)
{
	silent_second();
	second(1);
	silent_second();
	silent_second();
	second(2);
	assert_true(isnan(at(0)) && at(1) == 1 && isnan(at(2)) && isnan(at(3)) && at(4) == 2);
	silent_second();
	assert_true(isnan(at(5)));
}

/* The ring still has values of ten minutes ago. */
static void old_values_do_not_come_back(void **state)
{
	for (unsigned i = 0; i < HISTORY_STEPS; i++)
		second(7);
	for (unsigned i = 0; i < HISTORY_STEPS - 10; i++)
		silent_second();
	second(8);
	assert_int_equal(l.count, 1);
	for (uint64_t i = HISTORY_STEPS; i < h.steps - 1; i++)
		assert_true(isnan(at(i)));
	assert_true(at(HISTORY_STEPS - 1) == 7 && at(h.steps - 1) == 8);
}

static void a_series_without_values_is_forgotten(void **state)
{
	second(1);
	for (unsigned i = 0; i < HISTORY_STEPS - 1; i++)
		silent_second();
	series_prune(&l, &h);
	assert_int_equal(l.count, 1);
	silent_second();
	series_prune(&l, &h);
	assert_int_equal(l.count, 0);
}

static void groups_and_names_are_different_series(void **state)
{
	silent_second();
	series_set(&l, &h, SERIES_BUSY, "x", 1);
	series_set(&l, &h, SERIES_POOL, "x", 2);
	series_set(&l, &h, SERIES_BUSY, "y", 3);
	series_set(&l, &h, SERIES_BUSY, "x", 4);
	assert_int_equal(l.count, 3);
	assert_true(at(0) == 4);
}

static void the_number_of_series_is_bounded(void **state)
{
	char name[16];

	silent_second();
	for (unsigned i = 0; i < HISTORY_SERIES; i++) {
		snprintf(name, sizeof(name), "%u", i);
		assert_non_null(series_set(&l, &h, SERIES_BUSY, name, 1));
	}
	assert_null(series_set(&l, &h, SERIES_BUSY, "one more", 1));
	assert_non_null(series_set(&l, &h, SERIES_BUSY, "0", 1));
	assert_int_equal(l.count, HISTORY_SERIES);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(nothing_is_kept_at_first),
		CASE(values_are_those_of_their_step),
		CASE(the_oldest_are_forgotten),
		CASE(less_is_kept_on_request),
		CASE(a_pause_is_a_step_that_is_unknown),
		CASE(a_late_step_is_no_pause),
		CASE(a_clock_that_is_set_moves_nothing),
		CASE(what_a_series_lacks_is_unknown),
		CASE(old_values_do_not_come_back),
		CASE(a_series_without_values_is_forgotten),
		CASE(groups_and_names_are_different_series),
		CASE(the_number_of_series_is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
