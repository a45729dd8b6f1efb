/* SPDX-License-Identifier: BSD-3-Clause */
/* The clock where the TSC jumps (suspend, guests that are restored or moved) and CLOCK_REALTIME is
 * set. */
#include <time.h>

#include "test_clock_sim.h"

enum what { RESETS, STANDS, RUNS_ON }; /* the TSC, while the machine sleeps */

static void suspend(struct sim *m, uint64_t ns, enum what tsc)
{
	m->real += ns;
	m->asleep += ns;
	if (tsc == RESETS)
		m->ticks = 0;
	else if (tsc == RUNS_ON)
		m->ticks += (long double)ns * m->hz / 1e9L;
	m->jumped = true;
}

static void jump(struct sim *m, double seconds)
{
	m->ticks += (long double)seconds * m->hz;
	m->jumped = true;
}

/* From the first update after a jump on, there is no error. */
static void assert_recovered(struct sim *m)
{
	assert_within(run_for(m, 5 * S, INTERVAL_NS), MS);
	assert_within(run_for(m, 60 * S, INTERVAL_NS), 100 * US + 2 * tick_ns(m));
}

static void test_after_suspend_time_is_right_at_once(void **state)
{
	for (size_t i = 0; i < HZ_COUNT; i++) {
		for (enum what tsc = RESETS; tsc <= RUNS_ON; tsc++) {
			struct sim m = settled(clock_hz[i]);
			int64_t worst;

			suspend(&m, 8 * HOUR, tsc);
			worst = tick(&m, INTERVAL_NS);
			/* A TSC that has stood still cannot be recognised before the update. */
			assert_within(worst, tsc == STANDS ? 8 * HOUR + MS : COARSE_NS + MS);
			assert_recovered(&m);
		}
	}
}

static void test_after_a_restore_time_is_right_at_once(void **state)
{
	static const double back[] = {3600, 86400, 1000, 11};

	for (size_t i = 0; i < HZ_COUNT; i++) {
		for (size_t k = 0; k < sizeof(back) / sizeof(back[0]); k++) {
			struct sim m = settled(clock_hz[i]);

			jump(&m, -back[k]);
			assert_within(tick(&m, INTERVAL_NS), COARSE_NS + MS);
			assert_recovered(&m);
		}
	}
}

/* A jump back by less than the line's age is not recognised before the update: time stands still
 * until then. */
static void test_small_jumps_back_cost_one_interval(void **state)
{
	static const double back[] = {0.002, 0.02, 0.05, 0.2, 1, 9.9};

	for (size_t k = 0; k < sizeof(back) / sizeof(back[0]); k++) {
		struct sim m = settled(2893202000);

		run_for(&m, INTERVAL_NS, INTERVAL_NS);
		pass(&m, INTERVAL_NS / 2);
		look(&m);
		jump(&m, -back[k]);
		assert_within(tick(&m, INTERVAL_NS / 2), INTERVAL_NS / 2 + MS);
		assert_recovered(&m);
	}
}

static void test_forward_jump_is_not_followed(void **state)
{
	static const double forward[] = {11, 3600, 86400, 365 * 86400};

	for (size_t i = 0; i < HZ_COUNT; i++) {
		for (size_t k = 0; k < sizeof(forward) / sizeof(forward[0]); k++) {
			struct sim m = settled(clock_hz[i]);

			jump(&m, forward[k]);
			assert_within(tick(&m, INTERVAL_NS), COARSE_NS + MS);
			assert_recovered(&m);
		}
	}
}

/* Records already have the later time: time waits for it, and then goes on. */
static void test_small_jumps_forward_are_waited_for(void **state)
{
	static const double forward[] = {0.002, 0.1, 1, 9.9};

	for (size_t k = 0; k < sizeof(forward) / sizeof(forward[0]); k++) {
		struct sim m = settled(2893202000);
		uint64_t wait = (uint64_t)(forward[k] * 1e9) / (RT_CLOCK_SLOW - 1) * RT_CLOCK_SLOW;
		uint64_t before;

		jump(&m, forward[k]);
		assert_within(tick(&m, INTERVAL_NS), (uint64_t)(forward[k] * 1e9) + MS);
		before = m.shown;
		run_for(&m, wait + 2 * S, INTERVAL_NS);
		assert_true(m.shown > before + wait / RT_CLOCK_SLOW);
		assert_recovered(&m);
	}
}

/* A guest that is moved to a machine with another frequency. */
static void test_another_frequency_is_measured(void **state)
{
	static const double times[] = {0.5, 0.9, 0.97, 1.03, 1.2, 3};

	for (size_t k = 0; k < sizeof(times) / sizeof(times[0]); k++) {
		struct sim m = settled(2400000000);

		m.hz *= times[k];
		m.ticks = 1e12L;
		m.jumped = true;
		assert_within(tick(&m, INTERVAL_NS), COARSE_NS + MS);
		run_for(&m, 3 * S, INTERVAL_NS);
		assert_recovered(&m);
	}
}

static void test_counter_that_stands_is_followed_by_the_kernels_clock(void **state)
{
	struct sim m = settled(2400000000);
	long double hz = m.hz;

	m.hz = 0;
	assert_within(run_for(&m, 10 * S, INTERVAL_NS), INTERVAL_NS + MS);
	m.hz = hz;
	run_for(&m, S, INTERVAL_NS);
	assert_recovered(&m);
}

/* The whole process stands still (a debugger), TSC and kernel go on. */
static void test_stop_of_the_process_costs_nothing(void **state)
{
	struct sim m = settled(2893202000);

	pass(&m, 3 * HOUR);
	assert_within(look(&m), COARSE_NS + MS);
	update(&m);
	assert_recovered(&m);
}

/* ---- before the start ---- */

/* The probe is loaded, and attached to an hour later. */
static struct sim attached(uint64_t hz, double guess_off, void (*meanwhile)(struct sim *m))
{
	struct sim m = machine(hz);
	struct rt_clock_point early = sample(&m), now;

	pass(&m, HOUR / 2);
	if (meanwhile)
		meanwhile(&m);
	pass(&m, HOUR / 2);
	now = sample(&m);
	rt_clock_begin(&m.clock, &early, &now, (uint64_t)((double)hz * (1 + guess_off)));
	m.jumped = false;
	return m;
}

static void set_forward(struct sim *m)
{
	m->real += 100 * S;
}

static void set_back(struct sim *m)
{
	m->real -= 100 * S;
}

static void test_setting_the_clock_before_the_start_costs_nothing(void **state)
{
	for (size_t i = 0; i < HZ_COUNT; i++) {
		struct sim a = attached(clock_hz[i], 0.004, set_forward);
		struct sim b = attached(clock_hz[i], 0.004, set_back);

		assert_within(run_for(&a, 20 * S, INTERVAL_NS), 2 * US + 2 * tick_ns(&a));
		assert_within(run_for(&b, 20 * S, INTERVAL_NS), 2 * US + 2 * tick_ns(&b));
	}
}

static void sleep_and_reset(struct sim *m)
{
	suspend(m, 100 * S, RESETS);
}

static void sleep_and_stand(struct sim *m)
{
	suspend(m, 100 * S, STANDS);
}

static void sleep_and_run(struct sim *m)
{
	suspend(m, 100 * S, RUNS_ON);
}

static void go_back(struct sim *m)
{
	jump(m, -3600);
}

/* Only the guess remains: 0.4 % of one interval. */
static void test_suspend_before_the_start_is_known(void **state)
{
	void (*const events[])(struct sim *) = {
		sleep_and_reset, sleep_and_stand, sleep_and_run, go_back};

	for (size_t i = 0; i < HZ_COUNT; i++) {
		for (size_t k = 0; k < sizeof(events) / sizeof(events[0]); k++) {
			struct sim m = attached(clock_hz[i], 0.004, events[k]);

			assert_within(run_for(&m, S, INTERVAL_NS), INTERVAL_NS / 200);
			assert_recovered(&m);
		}
	}
}

/* ---- days ---- */

/* Ten days, each with a suspend, the clock set forward and back by 100 s, and NTP at work. */
static void test_days(void **state)
{
	static const uint64_t hz[] = {25000000, 2893202000};

	for (size_t i = 0; i < sizeof(hz) / sizeof(hz[0]); i++) {
		struct sim m = settled(hz[i]);

		for (int day = 0; day < 10; day++) {
			m.ppm = day % 2 ? 500 : 0;
			m.real += 100 * S;
			tick(&m, INTERVAL_NS);
			run_for(&m, 2 * S, INTERVAL_NS);
			assert_within(run_for(&m, HOUR, 10 * INTERVAL_NS), MS);
			suspend(&m, 8 * HOUR, (enum what)(day % 3));
			tick(&m, INTERVAL_NS);
			assert_recovered(&m);
			m.real -= 100 * S;
			run_for(&m, 115 * S, INTERVAL_NS);
			assert_recovered(&m);
			assert_within(run_for(&m, 14 * HOUR, 20 * INTERVAL_NS), MS);
		}
	}
}

/* ---- the real clocks ---- */

static uint64_t now_of(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * S + (uint64_t)ts.tv_nsec;
}

static void test_point_is_one_moment_on_all_clocks(void **state)
{
	uint64_t tsc = rt_tsc(), mono = now_of(CLOCK_MONOTONIC), real = now_of(CLOCK_REALTIME);
	struct rt_clock_point p;

	rt_clock_take(&p);
	assert_in_range(p.tsc, tsc, rt_tsc());
	assert_in_range(p.mono_ns, mono, now_of(CLOCK_MONOTONIC));
	assert_in_range(p.real_ns, real, now_of(CLOCK_REALTIME));
}

static void test_a_line_that_says_nothing_is_not_used(void **state)
{
	const uint64_t hz = 2000000000; /* more or less: it is not measured here */
	static const int away_s[] = {-3600, -1, 60, 3600};
	uint64_t before = now_of(CLOCK_REALTIME);
	struct rt_clock_line l = {.ns_base = EPOCH, .mult = (uint64_t)(1e9 / (double)hz * 0x1p40)};

	for (size_t i = 0; i < sizeof(away_s) / sizeof(away_s[0]); i++) {
		l.tsc_base = rt_tsc() - (uint64_t)away_s[i] * hz;
		/* It may lag by a timer interrupt; there are at least 100 a second. */
		assert_in_range(rt_clock_now(&l), before - 20 * MS, now_of(CLOCK_REALTIME));
	}
	l.tsc_base = rt_tsc() - hz;
	assert_in_range(rt_clock_now(&l), EPOCH + S, EPOCH + 9 * S);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_after_suspend_time_is_right_at_once),
		cmocka_unit_test(test_after_a_restore_time_is_right_at_once),
		cmocka_unit_test(test_small_jumps_back_cost_one_interval),
		cmocka_unit_test(test_forward_jump_is_not_followed),
		cmocka_unit_test(test_small_jumps_forward_are_waited_for),
		cmocka_unit_test(test_another_frequency_is_measured),
		cmocka_unit_test(test_counter_that_stands_is_followed_by_the_kernels_clock),
		cmocka_unit_test(test_stop_of_the_process_costs_nothing),
		cmocka_unit_test(test_setting_the_clock_before_the_start_costs_nothing),
		cmocka_unit_test(test_suspend_before_the_start_is_known),
		cmocka_unit_test(test_days),
		cmocka_unit_test(test_point_is_one_moment_on_all_clocks),
		cmocka_unit_test(test_a_line_that_says_nothing_is_not_used),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
