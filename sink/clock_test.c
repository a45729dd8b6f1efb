/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>

#include "base/test_util.h"
#include "clock.h"

static void settings_are_summed_until_the_report(void **state)
{
	struct host_clock c = {0};
	char text[CLOCK_TEXT_LEN];

	assert_false(clock_note(&c, 5000000000));
	assert_false(clock_note(&c, 5000099999));
	assert_false(clock_note(&c, 4999900001));
	assert_true(clock_note(&c, 6500000000));
	assert_false(clock_note(&c, 6500000010));
	clock_report(text, &c);
	assert_non_null(strstr(text, " set_ns=+1500000000"));
	assert_true(clock_note(&c, 4000000000));
	clock_report(text, &c);
	assert_non_null(strstr(text, " set_ns=-1000000000"));
	c.set_ns = 0;
	clock_report(text, &c);
	assert_null(strstr(text, "set_ns"));
}

static void steps_of_small_size_add_up(void **state)
{
	struct host_clock c = {0};

	assert_false(clock_note(&c, 0));
	assert_false(clock_note(&c, 60000));
	assert_true(clock_note(&c, 120000));
	assert_int_equal(c.set_ns, 120000);
}

static void a_clock_that_runs_was_not_set(void **state)
{
	struct host_clock c = {0};

	for (int i = 0; i < 1000; i++)
		assert_false(clock_check(&c));
}

static void texts_are_as_specified(void **state)
{
	char text[CLOCK_TEXT_LEN], word[16] = "";
	struct host_clock c = {0};

	clock_of_interface(text, "tsc", 2599998750);
	assert_int_equal(
		sscanf(text, "clock: timestamp=tsc tsc_hz=2599998750 synchronized=%15s", word), 1);
	assert_true(!strcmp(word, "yes") || !strcmp(word, "no") || !strcmp(word, "unknown"));
	clock_of_interface(text, "nic", 0);
	assert_int_equal(strncmp(text, "clock: timestamp=nic synchronized=", 34), 0);
	clock_report(text, &c);
	assert_int_equal(strncmp(text, "clock: synchronized=", 20), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(settings_are_summed_until_the_report),
		cmocka_unit_test(steps_of_small_size_add_up),
		cmocka_unit_test(a_clock_that_runs_was_not_set),
		cmocka_unit_test(texts_are_as_specified),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
