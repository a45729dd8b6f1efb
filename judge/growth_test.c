/* SPDX-License-Identifier: BSD-3-Clause */
/* Growth of a mempool's use, from readings twice a second, each taken twice. */
#include <string.h>

#include "limits.h"
#include "base/test_util.h"
#include "base/util.h"
#include "rules.h"

#define READ_NS   (NS_PER_S / 4)
#define NEEDED    (512 + 512 + LIMIT_BURST) /* descriptors, and the burst of one thread */
#define POOL_SIZE 8192

static struct ringtap_port_stats port;
static struct ringtap_thread_stats thread;
static struct ringtap_pool_stats pool;
static struct ringtap_snapshot snapshot;
static struct pool_readings readings;
static struct examination e;
static uint64_t ns;

static int setup(void **state)
{
	port = (struct ringtap_port_stats){
		.rx_queues = 1, .tx_queues = 1, .rx_descriptors = 512, .tx_descriptors = 512};
	thread = (struct ringtap_thread_stats){.alive = true};
	pool = (struct ringtap_pool_stats){
		.name = "pool", .size = POOL_SIZE, .available = POOL_SIZE, .buffer_bytes = 2176};
	snapshot = (struct ringtap_snapshot){.port_count = 1,
		.thread_count = 1,
		.pool_count = 1,
		.ports = {&port, sizeof(port)},
		.threads = {&thread, sizeof(thread)},
		.pools = {&pool, sizeof(pool)}};
	readings = (struct pool_readings){0};
	e = (struct examination){
		.span = {.from = &snapshot, .to = &snapshot}, .pools = &readings, .pool_count = 1};
	ns = NS_PER_S;
	return 0;
}

static void read_twice(uint32_t in_use)
{
	for (unsigned i = 0; i < 2; i++) {
		pool_use_add(&readings.use, ns, in_use);
		ns += READ_NS;
	}
}

static bool grows(void)
{
	return examination_growing(&e) == 0;
}

static void test_steady_growth_is_found(void **state)
{
	struct diagnosis d = {0};

	for (uint32_t i = 0; i < 10; i++)
		read_twice(2000 + 60 * i);
	assert_true(grows());
	rule_growth(&e, &d);
	assert_int_equal(d.count, 1);
	assert_int_equal(d.verdict[0].id, VERDICT_POOL_GROWS);
	assert_int_equal(d.verdict[0].grade, GRADE_FAULT);
	assert_string_equal(d.verdict[0].where, "pool");
	assert_string_equal(d.verdict[0].evidence[0],
		"2,000 of its 8,192 buffers were in use at first and 2,540 at last, more in each "
		"quarter of 4.8 s: about 118 a second more");
	assert_string_equal(
		d.verdict[0].evidence[1], "descriptors, caches and bursts take 1,056 at most");
	assert_string_equal(d.verdict[0].evidence[2], "at this rate it is empty in 47.9 s");
	assert_int_equal(d.verdict[0].evidence_count, 3);
}

static void test_constant_use_does_not_grow(void **state)
{
	for (uint32_t i = 0; i < 100; i++)
		read_twice(6000);
	assert_false(grows());
}

/* Pauses of the application, or of the thread that reads its pools. */
static void test_pauses_do_not_hide_growth(void **state)
{
	for (uint32_t at = 0; at < 20; at++) {
		readings.use = (struct pool_use){0};
		for (uint32_t i = 0; i < 20; i++)
			read_twice(2000 + 60 * (i < at ? i : i < at + 3 ? at : i - 3));
		assert_true(grows());
	}
}

/* By an application that has just started, and was filled in two thirds of the time. */
static void test_a_pool_that_is_filled_once_does_not_grow(void **state)
{
	for (uint32_t until = 1; until < 14; until++) {
		readings.use = (struct pool_use){0};
		for (uint32_t i = 0; i < 20; i++)
			read_twice(1500 + 300 * (i < until ? i : until));
		assert_false(grows());
	}
}

static void test_single_steps_are_no_growth(void **state)
{
	for (uint32_t at = 0; at < 10; at++) {
		readings.use = (struct pool_use){0};
		for (uint32_t i = 0; i < 10; i++)
			read_twice(2000 + 512 * (i >= at));
		assert_false(grows());
	}
}

/* Queues that fill and empty. */
static void test_growth_that_comes_and_goes_is_none(void **state)
{
	static const uint32_t levels[] = {0, 900, 300, 1200, 100, 1500, 800, 50, 1100, 600};

	for (uint32_t first = 0; first < 10; first++) {
		readings.use = (struct pool_use){0};
		for (uint32_t i = 0; i < 40; i++)
			read_twice(2000 + levels[(first + i) % 10]);
		assert_false(grows());
	}
}

/* A leak beside a queue: it takes longer to tell. */
static void test_growth_above_what_comes_and_goes_is_found(void **state)
{
	static const uint32_t levels[] = {0, 200, 50, 150, 100};

	for (uint32_t i = 0; i < 10; i++)
		read_twice(2000 + 10 * i + levels[i % 5]);
	assert_false(grows());
	for (uint32_t i = 10; i < 80; i++)
		read_twice(2000 + 10 * i + levels[i % 5]);
	assert_true(grows());
}

static void test_what_descriptors_explain_is_no_growth(void **state)
{
	for (uint32_t i = 0; i < 10; i++)
		read_twice(NEEDED - 900 + 100 * i);
	assert_int_equal(readings.use.last, NEEDED);
	assert_int_equal(pool_needed(&e, &pool), NEEDED);
	assert_false(grows());
	read_twice(NEEDED + 100);
	assert_true(grows());
}

static void test_less_than_bursts_is_no_growth(void **state)
{
	for (uint32_t i = 0; i < 10; i++)
		read_twice(2000 + 7 * i);
	assert_false(grows());
}

static void test_too_few_readings(void **state)
{
	for (uint32_t i = 0; i < 7; i++) {
		pool_use_add(&readings.use, ns += READ_NS, 2000 + 500 * i);
		assert_false(grows());
	}
	pool_use_add(&readings.use, ns += READ_NS, 6000);
	assert_true(grows());
}

/* An hour: parts are merged again and again. */
static void test_long_watches(void **state)
{
	struct pool_use *u = &readings.use;

	for (uint32_t i = 0; i < 7200; i++)
		read_twice(2000 + i / 2);
	assert_true(u->parts <= USE_PARTS && u->parts > USE_PARTS / 2);
	assert_int_equal(u->part[0].least, 2000);
	assert_int_equal(u->part[u->parts - 1].most, 2000 + 7199 / 2);
	assert_int_equal((u->parts - 1) * u->each + u->in_last, 2 * 7200);
	assert_true(grows());
	for (uint32_t i = 0; i < 7200; i++)
		read_twice(2000 + 7199 / 2);
	assert_false(grows());
}

static void test_pools_without_packets_and_freed_ones(void **state)
{
	for (uint32_t i = 0; i < 10; i++)
		read_twice(2000 + 100 * i);
	pool.gone = true;
	assert_false(grows());
	pool.gone = false;
	pool.buffer_bytes = 0;
	assert_false(grows());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_steady_growth_is_found, setup),
		cmocka_unit_test_setup(test_constant_use_does_not_grow, setup),
		cmocka_unit_test_setup(test_pauses_do_not_hide_growth, setup),
		cmocka_unit_test_setup(test_a_pool_that_is_filled_once_does_not_grow, setup),
		cmocka_unit_test_setup(test_single_steps_are_no_growth, setup),
		cmocka_unit_test_setup(test_growth_that_comes_and_goes_is_none, setup),
		cmocka_unit_test_setup(test_growth_above_what_comes_and_goes_is_found, setup),
		cmocka_unit_test_setup(test_what_descriptors_explain_is_no_growth, setup),
		cmocka_unit_test_setup(test_less_than_bursts_is_no_growth, setup),
		cmocka_unit_test_setup(test_too_few_readings, setup),
		cmocka_unit_test_setup(test_long_watches, setup),
		cmocka_unit_test_setup(test_pools_without_packets_and_freed_ones, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
