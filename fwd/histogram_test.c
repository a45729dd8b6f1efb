/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "histogram.h"
#include "rate.h"

static struct histogram h;

static int clear(void **state)
{
	memset(&h, 0, sizeof(h));
	return 0;
}

static void empty(void **state)
{
	assert_true(histogram_percentile(&h, 50) == 0);
	assert_true(histogram_mean(&h) == 0);
}

/* The median of three values is within 0.4 % of the middle one. */
static void every_value_within_its_bucket(void **state)
{
	uint64_t random = 3;

	for (unsigned i = 0; i < 20000; i++) {
		uint64_t v = random_next(&random) >> (i % 64);
		unsigned b = rt_log_bucket(v, HISTOGRAM_BITS);

		assert_true(b < HISTOGRAM_BUCKETS);
		memset(&h, 0, sizeof(h));
		histogram_add(&h, v, 1);
		histogram_add(&h, UINT64_MAX, 1); /* results are clamped to min and max */
		histogram_add(&h, 0, 1);
		assert_true(fabs(histogram_percentile(&h, 50) - (double)v) <= 0.004 * (double)v);
	}
	assert_int_equal(rt_log_bucket(UINT64_MAX, HISTOGRAM_BITS), HISTOGRAM_BUCKETS - 1);
}

static void buckets_rise_without_gaps(void **state)
{
	unsigned last = 0;

	for (uint64_t v = 1; v < 100000; v++) {
		unsigned b = rt_log_bucket(v, HISTOGRAM_BITS);

		assert_true(b == last || b == last + 1);
		last = b;
	}
}

static void percentiles_of_a_ramp(void **state)
{
	for (uint64_t v = 1; v <= 10000; v++)
		histogram_add(&h, v, 1);
	assert_true(fabs(histogram_percentile(&h, 50) - 5000) < 50);
	assert_true(fabs(histogram_percentile(&h, 90) - 9000) < 90);
	assert_true(fabs(histogram_percentile(&h, 99) - 9900) < 99);
	assert_true(histogram_percentile(&h, 0) == 1);
	assert_true(histogram_percentile(&h, 100) >= 9990);
	assert_true(histogram_mean(&h) == 5000.5);
	assert_int_equal(h.min, 1);
	assert_int_equal(h.max, 10000);
}

static void weights_and_large_sums(void **state)
{
	histogram_add(&h, 10, 99);
	histogram_add(&h, UINT64_MAX, 1);
	assert_true(histogram_percentile(&h, 99) == 10);
	assert_true(histogram_percentile(&h, 99.5) > 1e19);
	histogram_add(&h, UINT64_MAX, 100);
	assert_true(fabs(histogram_mean(&h) / 0x1p64 - 101.0 / 200) < 1e-6);
}

static void shares_keep_their_sum(void **state)
{
	static struct histogram shared;

	histogram_add_share(&shared, 95, 32); /* 2.97 each */
	histogram_add_share(&shared, 33, 32);
	assert_int_equal(shared.count, 64);
	assert_true(histogram_mean(&shared) == 2.0);
	assert_int_equal(shared.min, 1);
	assert_int_equal(shared.max, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shares_keep_their_sum),
		cmocka_unit_test_setup(empty, clear),
		cmocka_unit_test_setup(every_value_within_its_bucket, clear),
		cmocka_unit_test_setup(buckets_rise_without_gaps, clear),
		cmocka_unit_test_setup(percentiles_of_a_ramp, clear),
		cmocka_unit_test_setup(weights_and_large_sums, clear),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
