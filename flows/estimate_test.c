/* SPDX-License-Identifier: BSD-3-Clause */
/* The bounds of estimates. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

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

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double quantile_of(const double *sorted, unsigned n, double share)
{
	double at = ceil(share * n) - 1;

	return sorted[at < 0 ? 0 : at < n ? (unsigned)at : n - 1];
}

/* A third of the packets: their share, the mean and quantiles of their values. */
static void bounds_of_parts_hold(void **state)
{
	enum { PACKETS = 60000, EVERY = 64, PART = PACKETS / 3 };
	static double value[PART], sorted[PART], chosen[PART];
	unsigned share = 0, mean = 0, median = 0, high_one = 0;
	double truth = 0;

	random_state = 3;
	for (unsigned i = 0; i < PART; i++)
		truth += value[i] = sorted[i] = -1000 * log(1 - uniform());
	qsort(sorted, PART, sizeof(*sorted), by_value);
	for (int run = 0; run < 100; run++) {
		double sum = 0, squares = 0, low, high;
		unsigned n = 0, all = 0;
		struct estimate e;

		for (unsigned i = 0; i < PACKETS; i++) {
			if (uniform() * EVERY >= 1)
				continue;
			all++;
			if (i >= PART)
				continue;
			chosen[n++] = value[i];
			sum += value[i];
			squares += value[i] * value[i];
		}
		qsort(chosen, n, sizeof(*chosen), by_value);
		e = estimate_share(EVERY, n, all);
		share += fabs(e.value - 1.0 / 3) <= e.bound;
		e = estimate_mean(EVERY, n, sum, squares);
		mean += fabs(e.value - truth / PART) <= e.bound;
		estimate_quantile(EVERY, n, 0.5, &low, &high);
		median += quantile_of(chosen, n, low) <= quantile_of(sorted, PART, 0.5) &&
			  quantile_of(chosen, n, high) >= quantile_of(sorted, PART, 0.5);
		estimate_quantile(EVERY, n, 0.95, &low, &high);
		high_one += high <= 1 &&
			    quantile_of(chosen, n, low) <= quantile_of(sorted, PART, 0.95) &&
			    quantile_of(chosen, n, high) >= quantile_of(sorted, PART, 0.95);
	}
	assert_in_range(share, 88, 100);
	assert_in_range(mean, 88, 100);
	assert_in_range(median, 88, 100);
	assert_in_range(high_one, 88, 100);
}

static void few_packets_have_no_bounds(void **state)
{
	double low, high;

	assert_true(isnan(estimate_mean(64, 1, 60, 3600).bound));
	assert_true(estimate_mean(64, 0, 0, 0).bound == 0);
	assert_true(estimate_share(64, 0, 0).bound == 0);
	assert_true(estimate_share(64, 0, 100).bound > 0.015);
	estimate_quantile(64, 50, 0.99, &low, &high);
	assert_true(low < 0.99 && high > 1);
}

static void all_packets_need_no_bounds(void **state)
{
	double low, high;
	struct estimate e = estimate_sum(1, 10, 1000, 200000);

	assert_true(e.value == 1000 && e.bound == 0);
	e = estimate_packets(64, 0);
	assert_true(e.value == 0 && e.bound == 0);
	e = estimate_share(1, 1, 4);
	assert_true(e.value == 0.25 && e.bound == 0);
	e = estimate_mean(1, 1, 60, 3600);
	assert_true(e.value == 60 && e.bound == 0);
	estimate_quantile(1, 100, 0.99, &low, &high);
	assert_true(low == 0.99 && high == 0.99);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bounds_hold),
		cmocka_unit_test(bounds_of_parts_hold),
		cmocka_unit_test(few_packets_have_no_bounds),
		cmocka_unit_test(all_packets_need_no_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
