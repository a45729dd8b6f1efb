/* SPDX-License-Identifier: BSD-3-Clause */
/* The bounds of estimates. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "estimate.h"

static uint64_t random_state = 1;

static double uniform(void)
{
	random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (double)(random_state >> 11) * 0x1p-53;
}

/* The truth is within the bounds of 95 of 100 samples; 88 of 100 at least, with these seeds. */
static void bounds_hold(void **state)
{
	static const struct {
		uint32_t every, packets;
	} cases[] = {{2, 50}, {2, 5000}, {16, 200}, {64, 5000}, {64, 100000}, {1024, 20000},
		{1024, 300000}};

	for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
		unsigned inside = 0, inside_bytes = 0;

		random_state = c + 1;
		for (int run = 0; run < 100; run++) {
			double bytes = 0, sum = 0, squares = 0;
			struct estimate e;
			uint64_t n = 0;

			for (uint32_t i = 0; i < cases[c].packets; i++) {
				double length = uniform() < 0.5 ? 60 : 1500;

				bytes += length;
				if (uniform() * cases[c].every >= 1)
					continue;
				n++;
				sum += length;
				squares += length * length;
			}
			e = estimate_packets(cases[c].every, n);
			inside += fabs(e.value - cases[c].packets) <= e.bound;
			e = estimate_sum(cases[c].every, n, sum, squares);
			inside_bytes += fabs(e.value - bytes) <= e.bound;
		}
		assert_in_range(inside, 88, 100);
		assert_in_range(inside_bytes, 88, 100);
	}
}

static void all_packets_need_no_bounds(void **state)
{
	struct estimate e = estimate_sum(1, 10, 1000, 200000);

	assert_true(e.value == 1000 && e.bound == 0);
	e = estimate_packets(64, 0);
	assert_true(e.value == 0 && e.bound == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bounds_hold),
		cmocka_unit_test(all_packets_need_no_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
