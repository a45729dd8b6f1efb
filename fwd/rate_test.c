/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "config.h"
#include "rate.h"

#define START 123456789012345

/* rate_due() is floor(t * rate / hz) + 1 at any time t, independent of previous calls. */
static void check(uint64_t rate, uint64_t hz, uint64_t seconds, uint64_t step)
{
	struct rate_clock c;

	rate_start(&c, START, rate, hz);
	assert_int_equal(rate_due(&c, START - 1), 0);
	for (uint64_t t = 0; t < seconds * hz; t += step)
		assert_int_equal(
			rate_due(&c, START + t), (uint64_t)((unsigned __int128)t * rate / hz) + 1);
}

static void rates_are_exact_at_any_time(void **state)
{
	static const uint64_t rates[] = {1, 3, 1000, 100000, 1000000, 5000000, 14880952, RATE_MAX};
	static const uint64_t clocks[] = {25000000, 1000000000, 2596139798, 5000000000};

	for (size_t r = 0; r < sizeof(rates) / sizeof(rates[0]); r++)
		for (size_t h = 0; h < sizeof(clocks) / sizeof(clocks[0]); h++) {
			check(rates[r], clocks[h], 7, clocks[h] / 977 + 1);
			/* days, with one call per hour */
			check(rates[r], clocks[h], 5 * 86400, 3600 * clocks[h] + 17);
		}
}

static void a_pause_is_silent(void **state)
{
	struct rate_clock c;

	rate_start(&c, START, 0, 1000000000);
	assert_int_equal(rate_due(&c, START + 5000000000), 0);
}

static void totals_of_stages(void **state)
{
	assert_int_equal(rate_total(1000, 1000000000), 1000);
	assert_int_equal(rate_total(10000000, 5000000000), 50000000);
	assert_int_equal(rate_total(3, 500000000), 2); /* at 0 and 333 ms */
	assert_int_equal(rate_total(1, 1), 1);
	assert_int_equal(rate_total(RATE_MAX, 86400000000000), RATE_MAX * 86400);
}

static void given_times_repeat(void **state)
{
	static const uint64_t ticks[] = {0, 10, 10, 500};
	const struct rate_times times = {.ticks = ticks, .count = 4, .round = 1000};
	struct rate_clock c;

	rate_start(&c, START, 7, 1000000000);
	rate_follow(&c, &times);
	assert_int_equal(rate_due(&c, START - 1), 0);
	assert_int_equal(rate_due(&c, START), 1);
	assert_int_equal(rate_due(&c, START + 9), 1);
	assert_int_equal(rate_due(&c, START + 10), 3);
	assert_int_equal(rate_due(&c, START + 999), 4);
	assert_int_equal(rate_due(&c, START + 1010), 7);
	/* Far behind, in bounded steps. */
	assert_int_equal(rate_due(&c, START + 10000500), 7 + 4096);
	while (rate_due(&c, START + 10000500) < 40004)
		;
	assert_int_equal(rate_due(&c, START + 10000500), 40004);
}

/* Mean and variance of the count of a Poisson process are rate * t; both within five standard
 * deviations. */
static void poisson_has_the_mean_and_the_spread(void **state)
{
	const uint64_t hz = 2600000000, rate = 100000;
	const unsigned pieces = 10000; /* 1 ms each: 100 packets on average */
	double sum = 0, squares = 0, mean, variance;
	struct rate_clock c;
	uint64_t before = 0;

	rate_start(&c, START, rate, hz);
	rate_randomize(&c, 7);
	for (unsigned i = 1; i <= pieces; i++) {
		uint64_t due = rate_due(&c, START + i * (hz / 1000));
		double n = (double)(due - before);

		sum += n;
		squares += n * n;
		before = due;
	}
	mean = sum / pieces;
	variance = squares / pieces - mean * mean;
	assert_true(fabs(mean - 100) < 5 * sqrt(100.0 / pieces));
	assert_true(fabs(variance - 100) < 5 * sqrt(2.0 * 100 * 100 / pieces));
}

static void poisson_catches_up_in_bounded_steps(void **state)
{
	struct rate_clock c;
	uint64_t due = 0, next, calls = 0;

	rate_start(&c, START, 1000000, 1000000000);
	rate_randomize(&c, 1);
	while ((next = rate_due(&c, START + 1000000000)) != due) {
		assert_true(next - due <= 4096);
		due = next;
		calls++;
	}
	assert_true(calls > 200);
	assert_true(fabs((double)due - 1e6) < 5e3);
}

static void poisson_after_a_stall(void **state)
{
	struct rate_clock c, often;
	uint64_t due = 0;

	rate_start(&c, START, 1000000, 1000000000);
	rate_randomize(&c, 1);
	often = c;
	for (uint64_t t = 0; t <= 1000000000; t += 1000000)
		due = rate_due(&often, START + t);
	assert_int_equal(rate_due_all(&c, START + 1000000000), due);
	assert_int_equal(rate_due(&c, START + 1000000000), due);
}

/* Around 2^40 packets, which takes 20 minutes at RATE_MAX. */
static void poisson_goes_on_for_ever(void **state)
{
	const uint64_t before = (UINT64_C(1) << 40) - 100000;
	struct rate_clock c;
	uint64_t due;

	rate_start(&c, START, 1000000, 1000000000);
	rate_randomize(&c, 1);
	c.base = before; /* as after this number of arrivals */
	c.arrived = before;
	c.next += before << 24;
	due = rate_due_all(&c, START + 1000000000) - before;
	assert_true(fabs((double)due - 1e6) < 5e3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rates_are_exact_at_any_time),
		cmocka_unit_test(a_pause_is_silent),
		cmocka_unit_test(totals_of_stages),
		cmocka_unit_test(given_times_repeat),
		cmocka_unit_test(poisson_has_the_mean_and_the_spread),
		cmocka_unit_test(poisson_catches_up_in_bounded_steps),
		cmocka_unit_test(poisson_after_a_stall),
		cmocka_unit_test(poisson_goes_on_for_ever),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
