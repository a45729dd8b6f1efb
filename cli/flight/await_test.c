/* SPDX-License-Identifier: BSD-3-Clause */
/* How often an application is attached to that cannot be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "await.h"
#include "base/util.h"

static void test_delays_double_up_to_a_minute(void **state)
{
	const unsigned seconds[] = {1, 2, 4, 8, 16, 32, 60, 60, 60};
	struct await a = {0};

	(void)state;
	for (size_t i = 0; i < sizeof(seconds) / sizeof(seconds[0]); i++)
		assert_int_equal(await_delay(&a, 4711), seconds[i] * NS_PER_S);
	/* For ever. */
	for (unsigned i = 0; i < 1000; i++)
		assert_int_equal(await_delay(&a, 4711), 60 * NS_PER_S);
}

static void test_another_process_begins_anew(void **state)
{
	struct await a = {0};

	(void)state;
	for (unsigned i = 0; i < 10; i++)
		await_delay(&a, 4711);
	assert_int_equal(await_delay(&a, 4712), NS_PER_S);
	assert_int_equal(await_delay(&a, 4712), 2 * NS_PER_S);
}

/* One in another PID namespace has none here. */
static void test_unknown_process(void **state)
{
	struct await a = {0};

	(void)state;
	assert_int_equal(await_delay(&a, 0), NS_PER_S);
	assert_int_equal(await_delay(&a, 0), 2 * NS_PER_S);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_delays_double_up_to_a_minute),
		cmocka_unit_test(test_another_process_begins_anew),
		cmocka_unit_test(test_unknown_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
