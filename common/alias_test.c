/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "alias.h"

static void test_aliases_are_made(void **state)
{
	char alias[RT_ALIAS_LEN];

	assert_string_equal(rt_alias_make(alias, 3, RT_ALIAS_ALL_PORTS), "rt3");
	assert_string_equal(rt_alias_make(alias, 0, 0), "rt0p0");
	assert_string_equal(
		rt_alias_make(alias, SIZE_MAX, UINT16_MAX), "rt18446744073709551615p65535");
}

static void test_aliases_are_parsed(void **state)
{
	size_t app;
	int port;

	assert_true(rt_alias_parse("rt12", &app, &port));
	assert_true(app == 12 && port == RT_ALIAS_ALL_PORTS);
	assert_true(rt_alias_parse("rt0p65535", &app, &port));
	assert_true(app == 0 && port == 65535);
	assert_true(rt_alias_parse("rt18446744073709551615p0", &app, &port));
	assert_true(app == SIZE_MAX && port == 0);
}

/* Each port has one alias only. */
static void test_other_names_are_no_aliases(void **state)
{
	static const char *const bad[] = {"", "r", "rt", "rtp0", "rt0p", "rt0p0x", "rt0p65536",
		"rt-1", "rt+1", "rt 0", "rt00", "rt0p01", "rt18446744073709551616", "art0",
		"rt0p0p0", "rt0P0"};
	size_t app;
	int port;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		if (rt_alias_parse(bad[i], &app, &port))
			fail_msg("'%s' is taken for an alias", bad[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_aliases_are_made),
		cmocka_unit_test(test_aliases_are_parsed),
		cmocka_unit_test(test_other_names_are_no_aliases),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
