/* SPDX-License-Identifier: BSD-3-Clause */
/* The end of a run and the intervals of its statistics, with a clock that waiting moves on and
 * without threads: a role's counters are set by the test. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "app.h"
#include "common/test_now.h"
#include "signals.h"
#include "base/util.h"

#define MS UINT64_C(1000000)

static struct fwd_config config;
static struct app a;
static struct role sink, generator;
static struct generator g;
static struct link from;

/* Events while the main thread waits: packets of a time until a moment, polls, a stall, a
 * signal. In ms of the run. */
static uint64_t ms, packets_until, polls_once, stall_at, stall_ms, signal_at;

void report_second(const struct app *it, const struct second *s)
{
	(void)it;
	(void)s;
}

int signals_wait(uint64_t ns)
{
	test_now_pass(ns);
	ms += ns / MS;
	if (stall_at && ms >= stall_at) {
		stall_at = 0;
		test_now_pass(stall_ms * MS);
		ms += stall_ms;
	}
	sink.counters[0].rx_empty += polls_once;
	if (ms <= packets_until) {
		sink.counters[0].rx_packets += 5;
		sink.counters[0].rx_nonzero++;
	}
	return signal_at && ms >= signal_at ? 15 : 0;
}

static int setup(void **state)
{
	(void)state;
	config_init(&config);
	config.plane = PLANE_PACKET;
	config.json = true;
	memset(&a, 0, sizeof(a));
	memset(&sink, 0, sizeof(sink));
	memset(&generator, 0, sizeof(generator));
	memset(&g, 0, sizeof(g));
	memset(&run, 0, sizeof(run));
	run.hz = 1000000000;
	sink.kind = ROLE_SINK;
	sink.from = &from;
	sink.config = generator.config = &config;
	generator.kind = ROLE_GENERATE;
	generator.generator = &g;
	config.roles[0].kind = ROLE_SINK;
	config.role_count = 1;
	a.config = &config;
	a.roles[0] = &sink;
	a.role_count = 1;
	ms = packets_until = stall_at = stall_ms = signal_at = 0;
	polls_once = 200;
	test_now_set(TEST_NOW_MONO_NS, TEST_NOW_REAL_NS);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	free(a.seconds);
	return 0;
}

static void with_generator(void)
{
	config.roles[1].kind = ROLE_GENERATE;
	config.role_count = a.role_count = 2;
	a.roles[1] = &generator;
	g.done = true;
}

static void signal_ends_it(void **state)
{
	(void)state;
	signal_at = 500;
	assert_int_equal(app_run(&a), 0);
	assert_int_equal(a.end, END_SIGNAL);
	assert_true(run.stop);
	assert_int_equal(a.start_ns, TEST_NOW_REAL_NS);
}

static void duration_ends_it(void **state)
{
	(void)state;
	config.duration_ns = 300 * MS;
	assert_int_equal(app_run(&a), 0);
	assert_int_equal(a.end, END_DURATION);
	assert_true(a.elapsed >= 0.3 && a.elapsed < 0.303);
}

static void received_packets_end_it(void **state)
{
	(void)state;
	config.count = 100;
	packets_until = UINT64_MAX;
	assert_int_equal(app_run(&a), 0);
	assert_int_equal(a.end, END_COUNT);
	assert_int_equal(sink.counters[0].rx_packets, 100);
}

/* 100 ms after the last packet. */
static void generators_that_are_done_end_it(void **state)
{
	(void)state;
	with_generator();
	packets_until = 50;
	assert_int_equal(app_run(&a), 0);
	assert_int_equal(a.end, END_STAGES);
	assert_true(a.elapsed >= 0.15 && a.elapsed < 0.16);
	setup(state);
	with_generator();
	config.count = 7;
	assert_int_equal(app_run(&a), 0);
	assert_int_equal(a.end, END_COUNT);
}

static void role_that_did_not_poll_is_waited_for(void **state)
{
	(void)state;
	with_generator();
	polls_once = 0;
	assert_int_equal(app_run(&a), 0);
	assert_true(a.elapsed >= 5 && a.elapsed < 5.01);
}

static void generators_that_go_on_do_not_end_it(void **state)
{
	(void)state;
	with_generator();
	g.done = false;
	signal_at = 60000;
	assert_int_equal(app_run(&a), 0);
	assert_int_equal(a.end, END_SIGNAL);
}

static void missing_replies_are_waited_for(void **state)
{
	(void)state;
	with_generator();
	config.rtt = true;
	config.timeout_ns = 3000 * MS;
	g.number = 5;
	g.replies.unique = 4;
	assert_int_equal(app_run(&a), 0);
	assert_true(a.elapsed >= 3 && a.elapsed < 3.01);
	setup(state);
	with_generator();
	config.rtt = true;
	config.timeout_ns = 3000 * MS;
	g.number = g.replies.unique = 5;
	assert_int_equal(app_run(&a), 0);
	assert_true(a.elapsed < 0.12);
}

static uint64_t sum(void)
{
	uint64_t n = 0;

	for (size_t i = 0; i < a.second_count; i++)
		n += a.seconds[i].counters.rx_packets;
	return n;
}

static void intervals_add_up(void **state)
{
	double length = 0;

	(void)state;
	config.stats_ns = NS_PER_S;
	signal_at = 2500;
	packets_until = UINT64_MAX;
	assert_int_equal(app_run(&a), 0);
	assert_int_equal(a.second_count, 3);
	for (size_t i = 0; i < 3; i++)
		length += a.seconds[i].seconds;
	assert_true(length == a.elapsed);
	assert_true(a.seconds[0].at >= 1 && a.seconds[0].at < 1.01);
	assert_true(a.seconds[1].at >= 2 && a.seconds[1].at < 2.01);
	assert_true(a.seconds[2].at == a.elapsed);
	assert_int_equal(sum(), sink.counters[0].rx_packets);
}

/* The time of the stall is in one interval; those after it have the usual length. */
static void intervals_after_a_stall(void **state)
{
	unsigned longer = 0;

	(void)state;
	config.stats_ns = NS_PER_S;
	stall_at = 1400;
	stall_ms = 3200;
	signal_at = 7500;
	packets_until = UINT64_MAX;
	assert_int_equal(app_run(&a), 0);
	assert_int_equal(a.second_count, 6);
	assert_true(a.seconds[1].at >= 4.6 && a.seconds[1].at < 4.61);
	assert_true(a.seconds[2].at >= 5 && a.seconds[2].at < 5.01); /* at whole seconds again */
	for (size_t i = 0; i < a.second_count; i++) {
		longer += a.seconds[i].seconds > 2.5;
		assert_true(a.seconds[i].seconds > 0.3);
	}
	assert_int_equal(longer, 1);
	assert_int_equal(sum(), sink.counters[0].rx_packets);
}

static void no_statistics_without_the_option(void **state)
{
	(void)state;
	signal_at = 2500;
	assert_int_equal(app_run(&a), 0);
	assert_int_equal(a.second_count, 0);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(signal_ends_it),
		TEST(duration_ends_it),
		TEST(received_packets_end_it),
		TEST(generators_that_are_done_end_it),
		TEST(role_that_did_not_poll_is_waited_for),
		TEST(generators_that_go_on_do_not_end_it),
		TEST(missing_replies_are_waited_for),
		TEST(intervals_add_up),
		TEST(intervals_after_a_stall),
		TEST(no_statistics_without_the_option),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
