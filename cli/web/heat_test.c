/* SPDX-License-Identifier: BSD-3-Clause */
/* Latencies of the seconds that are kept. */
#include <math.h>
#include <string.h>

#include "base/test_util.h"
#include "base/util.h"
#include "common/test_now.h"
#include "heat.h"

#define BUCKETS 8192

static struct history h;
static struct heat heat;
static uint64_t buckets[2][BUCKETS];
static struct ringtap_pair_stats pairs[2];
static struct ringtap_port_stats ports[2];
static struct ringtap_snapshot snapshots[2];
static struct span span = {.from = &snapshots[0], .to = &snapshots[1], .seconds = 1, .tsc_hz = 1e9};

static int begin(void **state)
{
	assert_true(ringtap_latency_buckets() <= BUCKETS);
	test_now_set(TEST_NOW_MONO_NS, TEST_NOW_REAL_NS);
	history_begin(&h, 0);
	memset(buckets, 0, sizeof(buckets));
	for (unsigned i = 0; i < 2; i++) {
		pairs[i] = (struct ringtap_pair_stats){.tx_port = 1, .bucket = buckets[i]};
		snapshots[i] = (struct ringtap_snapshot){.port_count = 2,
			.pair_count = 1,
			.collectors = RINGTAP_LATENCY,
			.ports = {ports, sizeof(ports[0])},
			.pairs = {&pairs[i], sizeof(pairs[0])}};
	}
	return 0;
}

static int end(void **state)
{
	heat_free(&heat);
	return 0;
}

/* The bucket of a number of cycles, which are ns here. */
static uint32_t bucket_of(uint64_t ns)
{
	uint64_t width;
	uint32_t b = 0;

	while (ringtap_latency_low(b, &width) + width <= ns)
		b++;
	return b;
}

static void second(void)
{
	test_now_pass(NS_PER_S);
	history_step(&h);
	heat_add(&heat, &h, &span);
}

static void packets_are_in_the_row_of_their_latency(void **state)
{
	const struct heat_step *s;

	buckets[0][bucket_of(1100)] = 7; /* before */
	buckets[1][bucket_of(1100)] = 107;
	buckets[1][bucket_of(20000)] = 3;
	buckets[1][bucket_of(30)] = 2;
	buckets[1][bucket_of(0)] = 1;
	buckets[1][ringtap_latency_buckets() - 1] = 1;
	second();
	s = heat_at(&heat, 0);
	assert_non_null(s);
	/* 1024 to 1218 ns. */
	assert_int_equal(s->packets[10 * HEAT_OCTAVE], 100);
	assert_int_equal(s->packets[(int)(HEAT_OCTAVE * log2(20000))], 3);
	assert_int_equal(s->packets[(int)(HEAT_OCTAVE * log2(30))], 2);
	assert_int_equal(s->packets[0], 1);
	assert_int_equal(s->packets[HEAT_ROWS - 1], 1);
	assert_in_range((uint64_t)s->p50_ns, 1089, 1111);
	assert_in_range((uint64_t)s->p99_ns, 19800, 20200);
}

static void what_is_not_counted_is_unknown(void **state)
{
	second(); /* without packets */
	snapshots[1].collectors = 0;
	second();
	assert_true(isnan(heat_at(&heat, 0)->p50_ns));
	assert_null(heat_at(&heat, 1));
	assert_int_equal(heat.last, 1);
	for (unsigned i = 0; i < HISTORY_STEPS; i++)
		second();
	assert_null(heat_at(&heat, HISTORY_STEPS));
	assert_true(heat.last <= history_first(&h));
}

static void counts_end_at_the_largest_number(void **state)
{
	buckets[1][bucket_of(1100)] = buckets[1][bucket_of(1110)] = UINT32_MAX;
	buckets[1][bucket_of(1150)] = UINT64_C(1) << 40;
	second();
	assert_int_equal(heat_at(&heat, 0)->packets[10 * HEAT_OCTAVE], UINT32_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			packets_are_in_the_row_of_their_latency, begin, end),
		cmocka_unit_test_setup_teardown(what_is_not_counted_is_unknown, begin, end),
		cmocka_unit_test_setup_teardown(counts_end_at_the_largest_number, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
