/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "util.h"

static void names_are_shortened_in_their_middle(void **state)
{
	static const struct {
		const char *text;
		size_t columns;
		const char *shown;
	} cases[] = {
		{"net_ring0", 9, "net_ring0"},
		{"net_ring0", 8, "net…ing0"},
		{"0000:03:00.0", 3, "0…0"},
		{"äöüßäöüß", 8, "äöüßäöüß"},
		{"äöüßäöüß", 5, "äö…üß"},
		{"", 5, ""},
	};
	char buf[64];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_ptr_equal(
			text_shorten(buf, sizeof(buf), cases[i].text, cases[i].columns), buf);
		assert_string_equal(buf, cases[i].shown);
		assert_true(text_columns(buf) <= cases[i].columns);
		text_cell(buf, sizeof(buf), cases[i].text, cases[i].columns);
		assert_int_equal(text_columns(buf), cases[i].columns);
		assert_memory_equal(buf, cases[i].shown, strlen(cases[i].shown));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_shortened_in_their_middle),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
