/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <pthread.h>
#include <time.h>

#include "now.h"
#include "test_clock_sim.h"

/* ---- conversion ---- */

/* floor(delta * mult / 2^40) from 32-bit halves: independent of 128-bit arithmetic. */
static int64_t scale_by_halves(int64_t delta, uint64_t mult)
{
	uint64_t d = delta < 0 ? -(uint64_t)delta : (uint64_t)delta;
	uint64_t a = d >> 32, b = (uint32_t)d, c = mult >> 32, e = (uint32_t)mult;
	uint64_t mid = b * c, low = b * e, carry;
	uint64_t high, lo64;
	bool inexact;

	carry = (low >> 32) + (uint32_t)mid + (uint32_t)(a * e);
	high = a * c + (mid >> 32) + ((a * e) >> 32) + (carry >> 32);
	lo64 = carry << 32 | (uint32_t)low;
	inexact = lo64 & ((1ull << 40) - 1);
	d = high << 24 | lo64 >> 40;
	return delta < 0 ? -(int64_t)d - inexact : (int64_t)d;
}

static void test_conversion_is_exact_over_days(void **state)
{
	for (size_t i = 0; i < HZ_COUNT; i++) {
		struct rt_clock_line l = {.tsc_base = 1ull << 63,
			.ns_base = EPOCH,
			.mult = (uint64_t)(1e9 / (double)clock_hz[i] * 0x1p40)};

		/* A prime step, so that all kinds of remainders occur. */
		for (uint64_t d = 0; d < 10 * 86400 * clock_hz[i];
			d += 7919 * clock_hz[i] + 12347) {
			assert_int_equal(rt_clock_ns(&l, l.tsc_base + d),
				EPOCH + (uint64_t)scale_by_halves((int64_t)d, l.mult));
			assert_int_equal(rt_clock_ns(&l, l.tsc_base - d),
				EPOCH + (uint64_t)scale_by_halves(-(int64_t)d, l.mult));
		}
	}
}

static void test_conversion_follows_the_wall_over_days(void **state)
{
	for (size_t i = 0; i < HZ_COUNT; i++) {
		struct rt_clock_line l = {.tsc_base = 12345,
			.ns_base = EPOCH,
			.mult = (uint64_t)(1e9 / (double)clock_hz[i] * 0x1p40 + 0.5)};

		for (uint64_t s = 0; s < 5 * 86400; s += 997) {
			int64_t off = (int64_t)(rt_clock_ns(&l, 12345 + s * clock_hz[i]) -
						(EPOCH + s * S));
			/* The slope's rounding may cost 2^-40 ns for each tick. */
			assert_true(llabs(off) <= (int64_t)(s * clock_hz[i] >> 40) + 1);
		}
	}
}

static void test_conversion_works_where_the_counter_wraps(void **state)
{
	struct rt_clock_line l = {.tsc_base = UINT64_MAX - 5, .ns_base = EPOCH, .mult = 1ull << 40};

	assert_int_equal(rt_clock_ns(&l, 4), EPOCH + 10);
	l.tsc_base = 4;
	assert_int_equal(rt_clock_ns(&l, UINT64_MAX - 5), EPOCH - 10);
}

static void test_conversion_rounds_down_on_both_sides(void **state)
{
	struct rt_clock_line l = {.tsc_base = 1000, .ns_base = EPOCH, .mult = 1ull << 39};

	assert_int_equal(rt_clock_ns(&l, 1001), EPOCH);
	assert_int_equal(rt_clock_ns(&l, 999), EPOCH - 1);
}

/* ---- discipline ---- */

static void test_discipline_survives_a_wrong_first_guess(void **state)
{
	for (size_t i = 0; i < HZ_COUNT; i++) {
		for (int sign = -1; sign <= 1; sign += 2) {
			struct sim m = machine(clock_hz[i]);
			struct rt_clock_point now = sample(&m);

			rt_clock_begin(&m.clock, &now, &now,
				(uint64_t)((double)clock_hz[i] * (1 + sign * 0.004)));
			assert_within(run_for(&m, 10 * S, INTERVAL_NS), MS);
			assert_within(run_for(&m, 10 * S, INTERVAL_NS), 2 * US + 2 * tick_ns(&m));
		}
	}
}

static void test_discipline_takes_the_slope_from_two_samples(void **state)
{
	struct rt_clock c;

	/* 2.01 GHz where 2 GHz were promised. */
	rt_clock_init(&c, 1000, EPOCH, 1000 + 201000000, EPOCH + 100 * MS, 2000000000);
	assert_within((int64_t)(rt_clock_ns(&c.line, 1000 + 402000000) - EPOCH - 200 * MS), 1);
}

static void test_discipline_doubts_samples_across_a_step(void **state)
{
	struct rt_clock c;

	/* An hour passed in 100 ms: the clock has been set. */
	rt_clock_init(&c, 1000, EPOCH, 1000 + 200000000, EPOCH + 3600 * S, 2000000000);
	assert_within(
		(int64_t)(rt_clock_ns(&c.line, 1000 + 400000000) - EPOCH - 3600 * S - 100 * MS), 1);
}

static void test_discipline_needs_no_guess(void **state)
{
	for (size_t i = 0; i < HZ_COUNT; i++) {
		struct sim m = machine(clock_hz[i]);
		struct rt_clock_point early = sample(&m), now;

		pass(&m, INTERVAL_NS);
		now = sample(&m);
		rt_clock_begin(&m.clock, &early, &now, 0);
		assert_within(run_for(&m, 20 * S, INTERVAL_NS), 2 * US + 2 * tick_ns(&m));
	}
}

static void test_discipline_gets_over_a_step_in_the_first_interval(void **state)
{
	struct sim m = machine(2400000000);
	struct rt_clock_point now = sample(&m);

	rt_clock_begin(&m.clock, &now, &now, 2400000000);
	m.real += 4 * MS;
	run_for(&m, INTERVAL_NS, INTERVAL_NS);
	assert_within(run_for(&m, 20 * S, INTERVAL_NS), 2 * US);
}

static void test_discipline_follows_frequency_drift_for_a_day(void **state)
{
	struct sim m = settled(2893202000);
	int64_t worst = 0;

	/* Up and down by 100 ppm in steps, as ntpd does it. */
	for (int minute = 0; minute < 24 * 60; minute++) {
		m.ppm = minute % 20 < 10 ? 10 * (minute % 20) : 10 * (20 - minute % 20);
		worst = worse(worst, run_for(&m, 60 * S, 2 * INTERVAL_NS));
	}
	assert_within(worst, MS);
}

static void test_discipline_follows_the_largest_frequency_change(void **state)
{
	struct sim m = settled(2893202000);

	/* adjtimex() allows 500 ppm each way. */
	m.ppm = 500;
	assert_within(run_for(&m, 60 * S, INTERVAL_NS), MS);
	m.ppm = 0;
	assert_within(run_for(&m, 60 * S, INTERVAL_NS), MS);
}

static void test_discipline_averages_jitter(void **state)
{
	struct sim m = settled(2400000000);

	m.jitter_ns = 20 * US;
	assert_within(run_for(&m, 3600 * S, INTERVAL_NS), 100 * US);
}

static void test_discipline_survives_single_outliers(void **state)
{
	struct sim m = settled(2400000000);

	for (int i = 0; i < 200; i++) {
		/* The thread was preempted between the two readings of a sample. */
		m.jitter_ns = i % 10 ? 1000 : 400 * US;
		assert_within(tick(&m, INTERVAL_NS), MS);
	}
}

static void test_discipline_stands_irregular_intervals(void **state)
{
	for (size_t i = 0; i < HZ_COUNT; i++) {
		struct sim m = settled(clock_hz[i]);

		m.ppm = 20;
		m.jitter_ns = 5 * US;
		for (int k = 0; k < 20000; k++)
			assert_within(tick(&m, 10 * MS + rnd(&m) % (5 * S)), MS);
	}
}

static void test_discipline_stays_calm_with_long_intervals(void **state)
{
	struct sim m = settled(2400000000);

	/* A correction that lasts longer than its error comes back larger. */
	m.real += 800 * US;
	run_for(&m, 60 * S, 5 * S);
	assert_within(run_for(&m, 600 * S, 5 * S), 50 * US);
}

static const uint64_t steps_ns[] = {
	1 * US, 50 * US, 900 * US, 2 * MS, 300 * MS, S, 37 * S, 3600 * S, 5 * 3600 * S};

static void test_discipline_follows_steps_forward_at_once(void **state)
{
	for (size_t i = 0; i < sizeof(steps_ns) / sizeof(steps_ns[0]); i++) {
		struct sim m = settled(2893202000);

		m.real += steps_ns[i];
		tick(&m, INTERVAL_NS);
		assert_within(run_for(&m, 5 * S, INTERVAL_NS), MS);
		assert_within(run_for(&m, 60 * S, INTERVAL_NS), 100 * US);
	}
}

/* look() checks that time never goes back meanwhile. */
static void test_discipline_converges_after_steps_back(void **state)
{
	for (size_t i = 0; i < sizeof(steps_ns) / sizeof(steps_ns[0]); i++) {
		struct sim m = settled(2893202000);

		m.real -= steps_ns[i];
		run_for(&m, steps_ns[i] / (RT_CLOCK_SLOW - 1) * RT_CLOCK_SLOW + 2 * S, INTERVAL_NS);
		assert_within(run_for(&m, 5 * S, INTERVAL_NS), MS);
		run_for(&m, 20 * S, INTERVAL_NS);
		assert_within(run_for(&m, 60 * S, INTERVAL_NS), 100 * US);
	}
}

static void test_discipline_goes_on_while_it_waits_for_real_time(void **state)
{
	struct sim m = settled(2893202000);
	uint64_t before;

	m.real -= 3600 * S;
	tick(&m, INTERVAL_NS);
	before = m.shown;
	run_for(&m, 8 * S, INTERVAL_NS);
	/* Packets a second apart must not get the same time. */
	assert_true(m.shown >= before + S / 2);
}

static void test_discipline_keeps_its_rate_across_two_steps(void **state)
{
	struct sim m = settled(2893202000);

	m.real += 7 * S;
	tick(&m, INTERVAL_NS);
	/* 4 ms in 50 do not make a frequency. */
	m.real += 4 * MS;
	tick(&m, INTERVAL_NS);
	assert_within(run_for(&m, 10 * S, INTERVAL_NS), MS);
}

static void test_discipline_survives_many_steps(void **state)
{
	struct sim m = settled(2893202000);

	for (int i = 0; i < 1000; i++) {
		uint64_t by = rnd(&m) % (i % 2 ? 100 * MS : 2 * MS);

		m.real += i % 3 ? (long double)by : -(long double)by;
		run_for(&m, rnd(&m) % (3 * S), 10 * MS + rnd(&m) % (90 * MS));
	}
	run_for(&m, 300 * S, INTERVAL_NS);
	assert_within(run_for(&m, 60 * S, INTERVAL_NS), 100 * US);
}

static void test_sample_is_real_time(void **state)
{
	struct timespec a, b;
	uint64_t before = rt_tsc(), tsc, ns;

	clock_gettime(CLOCK_REALTIME, &a);
	rt_clock_sample(&tsc, &ns);
	clock_gettime(CLOCK_REALTIME, &b);
	assert_in_range(ns, (uint64_t)a.tv_sec * S + (uint64_t)a.tv_nsec,
		(uint64_t)b.tv_sec * S + (uint64_t)b.tv_nsec);
	assert_in_range(tsc, before, rt_tsc());
}

/* ---- publishing ---- */

#define PUBLICATIONS 200000u

static struct rt_seg_clock shared;
static uint32_t published;

/* Three fields that belong together. */
static struct rt_clock_line line_of(uint64_t i)
{
	return (struct rt_clock_line){.tsc_base = i, .ns_base = i * 3, .mult = ~i};
}

static void *publish_many(void *arg)
{
	for (uint64_t i = 1; i <= PUBLICATIONS; i++) {
		struct rt_clock_line l = line_of(i);

		rt_clock_publish(&shared, &l);
	}
	/* Pairs with the acquire in test_readers_never_see_a_torn_line(). */
	rt_store_release(&published, 1);
	return NULL;
}

static void test_readers_never_see_a_torn_line(void **state)
{
	struct rt_clock_line l = line_of(0);
	uint64_t last = 0;
	pthread_t writer;
	bool over;

	rt_clock_publish(&shared, &l);
	assert_int_equal(pthread_create(&writer, NULL, publish_many, NULL), 0);
	do {
		struct rt_clock_line expected;

		over = rt_load_acquire(&published);
		if (rt_clock_read(&shared, &l))
			continue;
		expected = line_of(l.tsc_base);
		assert_memory_equal(&l, &expected, sizeof(l));
		assert_true(l.tsc_base >= last);
		last = l.tsc_base;
	} while (!over);
	assert_int_equal(last, PUBLICATIONS);
	assert_int_equal(pthread_join(writer, NULL), 0);
}

static void test_reader_gives_up_on_a_dead_writer(void **state)
{
	struct rt_seg_clock c = {.seq = 7};
	struct rt_clock_line l;

	assert_int_equal(rt_clock_read(&c, &l), -EAGAIN);
	assert_int_equal(rt_clock_wait(&c, &l), -EAGAIN);
}

/* Longer than all tries of rt_clock_read(). */
static void *publish_without_a_cpu(void *arg)
{
	struct rt_clock_line l = line_of(3);

	rt_sleep_ns(5000000);
	rt_store(&shared.seq, 8);
	rt_clock_publish(&shared, &l);
	return arg;
}

static void test_reader_waits_for_a_writer_that_lost_its_cpu(void **state)
{
	struct rt_clock_line l, expected = line_of(3);
	pthread_t writer;

	shared.seq = 7;
	assert_int_equal(rt_clock_read(&shared, &l), -EAGAIN);
	assert_int_equal(pthread_create(&writer, NULL, publish_without_a_cpu, NULL), 0);
	assert_int_equal(rt_clock_wait(&shared, &l), 0);
	assert_int_equal(pthread_join(writer, NULL), 0);
	assert_int_equal(rt_clock_wait(&shared, &l), 0);
	assert_memory_equal(&l, &expected, sizeof(l));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_conversion_is_exact_over_days),
		cmocka_unit_test(test_conversion_follows_the_wall_over_days),
		cmocka_unit_test(test_conversion_works_where_the_counter_wraps),
		cmocka_unit_test(test_conversion_rounds_down_on_both_sides),
		cmocka_unit_test(test_discipline_survives_a_wrong_first_guess),
		cmocka_unit_test(test_discipline_takes_the_slope_from_two_samples),
		cmocka_unit_test(test_discipline_doubts_samples_across_a_step),
		cmocka_unit_test(test_discipline_needs_no_guess),
		cmocka_unit_test(test_discipline_gets_over_a_step_in_the_first_interval),
		cmocka_unit_test(test_discipline_follows_frequency_drift_for_a_day),
		cmocka_unit_test(test_discipline_follows_the_largest_frequency_change),
		cmocka_unit_test(test_discipline_averages_jitter),
		cmocka_unit_test(test_discipline_survives_single_outliers),
		cmocka_unit_test(test_discipline_stands_irregular_intervals),
		cmocka_unit_test(test_discipline_stays_calm_with_long_intervals),
		cmocka_unit_test(test_discipline_follows_steps_forward_at_once),
		cmocka_unit_test(test_discipline_converges_after_steps_back),
		cmocka_unit_test(test_discipline_goes_on_while_it_waits_for_real_time),
		cmocka_unit_test(test_discipline_keeps_its_rate_across_two_steps),
		cmocka_unit_test(test_discipline_survives_many_steps),
		cmocka_unit_test(test_sample_is_real_time),
		cmocka_unit_test(test_readers_never_see_a_torn_line),
		cmocka_unit_test(test_reader_gives_up_on_a_dead_writer),
		cmocka_unit_test(test_reader_waits_for_a_writer_that_lost_its_cpu),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
