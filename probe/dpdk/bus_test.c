/* SPDX-License-Identifier: BSD-3-Clause */
/* Layouts of struct rte_bus by release, and an application of a release that is not known yet. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <rte_bus.h>
#include <rte_version.h>

#include "build.h"
#include "bus.h"
#include "probe/control/control.h"
#include "ringtap/probe.h"
#include "probe/test_eal.h"

const char *__wrap_rte_version(void);
const char *__wrap_rte_version(void)
{
	return "DPDK 99.11.0";
}

#define NAME ((uintptr_t)name)
#define CODE ((uintptr_t)test_pool) /* any function */

static const char name[] = "other";

/* A bus of 22.11, and one of 26.07. */
static uintptr_t before[RT_BUS_WORDS] = {
	0, 1, NAME, CODE, CODE, CODE, CODE, 0, CODE, 0, 0, 0, 2, CODE, 0, 0, 0, CODE};
static uintptr_t after[RT_BUS_WORDS] = {0, 1, NAME, 1, CODE, CODE, CODE, CODE, CODE, CODE, CODE, 0,
	CODE, 0, 0, 0, CODE, CODE, 0, 0, CODE, CODE, 0, 1, 0, 1};

static void test_layouts_are_known_by_release(void **state)
{
	const struct rt_bus_layout *old = rt_bus_layout("DPDK 22.11.5"),
				   *new = rt_bus_layout("DPDK 26.07.0-rc1");

	assert_null(rt_bus_layout("DPDK 21.08.0"));
	assert_non_null(rt_bus_layout("DPDK 21.11.9"));
	assert_ptr_equal(rt_bus_layout("DPDK 22.07.0"), rt_bus_layout("DPDK 21.11.9"));
	assert_non_null(old);
	assert_ptr_equal(rt_bus_layout("DPDK 26.03.0"), old);
	assert_ptr_not_equal(new, old);
	assert_non_null(new);
	assert_null(rt_bus_layout("DPDK 26.11.0"));
	assert_null(rt_bus_layout("a build of our own"));
}

static void test_bus_of_another_release_does_not_fit(void **state)
{
	const struct rt_bus_layout *old = rt_bus_layout("DPDK 22.11.5"),
				   *new = rt_bus_layout("DPDK 26.07.0");

	assert_true(rt_bus_fits(old, before));
	assert_true(rt_bus_fits(new, after));
	assert_false(rt_bus_fits(old, after));
	assert_false(rt_bus_fits(new, before));
	/* One more member at any place. */
	for (size_t i = 3; i < 25; i++) {
		uintptr_t moved[RT_BUS_WORDS + 1];

		memcpy(moved, after, sizeof(after));
		memmove(&moved[i + 1], &after[i], (RT_BUS_WORDS - i) * sizeof(*moved));
		moved[i] = NAME; /* data */
		assert_false(rt_bus_fits(new, moved));
	}
}

static void test_own_bus_fits(void **state)
{
	static const char *const releases[] = {"21.11.0", "22.11.0", "26.07.0"};

	for (size_t i = 0; i < sizeof(releases) / sizeof(releases[0]); i++) {
		const struct rt_bus_layout *l = rt_bus_layout(releases[i]);
		uintptr_t bus[RT_BUS_WORDS] = {0};

		rt_bus_lay_out(l, bus);
		assert_true(rt_bus_fits(l, bus));
		assert_false(rt_bus_fits(rt_bus_layout(releases[i == 2 ? 0 : 2]), bus));
	}
}

/* Its end would be noticed too late: DPDK's memory is unmapped then. */
static void test_nothing_starts_in_an_unknown_release(void **state)
{
	assert_null(rte_bus_find_by_name("ringtap"));
	assert_int_equal(ringtap_probe_start(), -ENOTSUP);
	assert_int_equal(rt_control_start(false), -ENOTSUP);
	assert_non_null(strstr(rt_build_why(), "struct rte_bus of DPDK 99.11.0"));
	assert_true(strlen(rt_build_why()) + 1 < RT_BUILD_TEXT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_layouts_are_known_by_release),
		cmocka_unit_test(test_bus_of_another_release_does_not_fit),
		cmocka_unit_test(test_own_bus_fits),
		cmocka_unit_test(test_nothing_starts_in_an_unknown_release),
	};

	test_eal_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
