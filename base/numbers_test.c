/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "numbers.h"

static void counts_have_commas(void **state)
{
	char buf[FORMAT_LEN];

	assert_string_equal(format_count(buf, 0), "0");
	assert_string_equal(format_count(buf, 999), "999");
	assert_string_equal(format_count(buf, 1000), "1,000");
	assert_string_equal(format_count(buf, UINT64_MAX), "18,446,744,073,709,551,615");
}

static void numbers_have_three_digits_and_a_prefix(void **state)
{
	char buf[FORMAT_LEN];

	assert_string_equal(format_si(buf, 0), "0");
	assert_string_equal(format_si(buf, 999.4), "999");
	assert_string_equal(format_si(buf, 999.5), "1.0 k");
	assert_string_equal(format_si(buf, 99.94e6), "99.9 M");
	assert_string_equal(format_si(buf, 99.96e6), "100 M");
	assert_string_equal(format_si(buf, 5e15), "5000 T");
	assert_string_equal(format_binary(buf, 1000), "1.0 K");
	assert_string_equal(format_binary(buf, 2 << 20), "2.0 M");
	assert_string_equal(format_ns(buf, 331), "331 ns");
	assert_string_equal(format_ns(buf, 12345), "12.3 us");
	assert_string_equal(format_ns(buf, 5e12), "5000 s");
}

static void units_have_prefixes_in_both_directions(void **state)
{
	char buf[FORMAT_LEN];

	assert_string_equal(format_unit(buf, 331.1e-9, 3, "s"), "331 ns");
	assert_string_equal(format_unit(buf, 12.34e-6, 3, "s"), "12.3 µs");
	assert_string_equal(format_unit(buf, 0, 3, "s"), "0 s");
	assert_string_equal(format_unit(buf, 1500, 3, "B"), "1.5 kB");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counts_have_commas),
		cmocka_unit_test(numbers_have_three_digits_and_a_prefix),
		cmocka_unit_test(units_have_prefixes_in_both_directions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
