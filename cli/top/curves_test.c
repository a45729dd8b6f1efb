/* SPDX-License-Identifier: BSD-3-Clause */
/* The last minute of a row: steps, what is unknown, and other rows. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/test_util.h"
#include "cli/top/curves.h"
#include "measure/watch.h"

#define SECOND NS_PER_S
#define BEGIN  (300 * SECOND) /* a step begins then */

static struct watched app = {.info.pid = 7}, later = {.info.pid = 8};
static struct row row = {.app = &app, .index = 3};
static struct curves curves;

static int begin(void **state)
{
	free(curves.list);
	curves = (struct curves){0};
	return 0;
}

static void put(uint64_t from_s, uint64_t to_s, double value)
{
	curves_put(&curves, 1, &row, value, BEGIN + from_s * SECOND, BEGIN + to_s * SECOND);
}

/* The bars as text: blank is unknown, 0 to 9 are tenths. */
static const char *bars(const struct row *r, bool share)
{
	static char text[METRIC_BARS + 1];
	struct metric_value v = {0};

	curves_get(&curves, 1, r, share, &v);
	for (unsigned i = 0; i < METRIC_BARS; i++)
		text[i] = v.bar[i] > 0 ? (char)('0' + (int)(9 * v.bar[i])) : ' ';
	return text;
}

static void a_bar_is_the_largest_of_three_seconds(void **state)
{
	put(0, 1, 500);
	put(1, 2, 1000);
	put(2, 3, 0);
	put(3, 4, 0);
	assert_string_equal(bars(&row, false), "                  90");
}

static void shares_are_of_one(void **state)
{
	put(0, 1, 0.5);
	assert_string_equal(bars(&row, true), "                   4");
}

static void an_interval_covers_its_steps(void **state)
{
	put(0, 10, 8);
	assert_string_equal(bars(&row, false), "                9999");
}

static void time_without_values_is_unknown(void **state)
{
	put(0, 1, 8);
	put(10, 11, 4);
	put(12, 13, NAN);
	assert_string_equal(bars(&row, false), "               9  4 ");
	put(3600, 3601, 2);
	assert_string_equal(bars(&row, false), "                   9");
}

static void a_minute_is_kept(void **state)
{
	for (uint64_t s = 0; s < 120; s++)
		put(s, s + 1, s < 64 ? 9 : 3);
	assert_string_equal(bars(&row, false), "93333333333333333333");
}

static void rows_are_different(void **state)
{
	struct row queue = {.app = &app, .index = 4}, again = {.app = &app, .index = 3};

	put(0, 1, 8);
	assert_string_equal(bars(&queue, false), "                    ");
	again.app = &later;
	assert_string_equal(bars(&again, false), "                    ");
	/* Another process at the same address. */
	app.info.pid = 9;
	assert_string_equal(bars(&row, false), "                    ");
	app.info.pid = 7;
	curves_put(&curves, 1, &queue, 1, BEGIN + 70 * SECOND, BEGIN + 71 * SECOND);
	assert_int_equal(curves.count, 2);
	curves_prune(&curves);
	assert_int_equal(curves.count, 1);
	assert_string_equal(bars(&queue, false), "                   9");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_bar_is_the_largest_of_three_seconds, begin),
		cmocka_unit_test_setup(shares_are_of_one, begin),
		cmocka_unit_test_setup(an_interval_covers_its_steps, begin),
		cmocka_unit_test_setup(time_without_values_is_unknown, begin),
		cmocka_unit_test_setup(a_minute_is_kept, begin),
		cmocka_unit_test_setup(rows_are_different, begin),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	free(curves.list);
	return failed;
}
