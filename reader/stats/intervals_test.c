/* SPDX-License-Identifier: BSD-3-Clause */
/* Logs of intervals, of a probe that may lie. */
#include <errno.h>

#include "common/atomics.h"
#include "reader/test_monitor.h"

#define KEPT 20000

static struct ringtap_interval got[KEPT];
static uint32_t count;
static uint64_t lost;

static void keep(void *ctx, const struct ringtap_interval *v)
{
	assert_in_range(count, 0, KEPT - 1);
	got[count++] = *v;
}

static void read_all(void)
{
	count = 0;
	lost = 0;
	assert_int_equal(ringtap_monitor_intervals(mon, keep, NULL, &lost), 0);
}

static struct rt_stat_interval gap(uint32_t packets)
{
	return (struct rt_stat_interval){.tsc = rt_tsc(),
		.cycles = stats.h->tsc_hz / 20000,
		.packets = packets,
		.port_index = 1,
		.kind = RT_INTERVAL_GAP,
		.queue = 3};
}

static void log_gaps(uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		struct rt_stat_interval v = gap(i);

		test_interval(&stats, 0, &v);
	}
}

static void test_intervals_are_read_once(void **state)
{
	must_attach();
	log_gaps(3);
	test_interval(&stats, 0,
		&(struct rt_stat_interval){.tsc = rt_tsc(),
			.cycles = 1000000,
			.packets = 9,
			.port_index = UINT8_MAX,
			.kind = RT_INTERVAL_BUSY});
	assert_int_equal(take_snapshot(), 0);
	read_all();
	assert_int_equal(count, 4);
	assert_int_equal(got[2].packets, 2);
	assert_int_equal(got[2].port, 1);
	assert_int_equal(got[2].queue, 3);
	assert_int_equal(got[2].kind, RINGTAP_INTERVAL_GAP);
	assert_int_equal(got[2].thread, 0);
	assert_in_range(got[2].ns, 49900, 50100);
	assert_in_range(got[2].start_ns, got[0].start_ns, f->taken_ns + 50000);
	assert_int_equal(got[3].kind, RINGTAP_INTERVAL_BUSY);
	assert_int_equal(got[3].port, RINGTAP_NO_INDEX);
	assert_int_equal(lost, 0);
	read_all();
	assert_int_equal(count, 0);
	log_gaps(1);
	read_all();
	assert_int_equal(count, 1);
}

static void test_what_was_there_before_is_left_out(void **state)
{
	log_gaps(5);
	must_attach();
	log_gaps(2);
	read_all();
	assert_int_equal(count, 2);
	assert_int_equal(lost, 0);
}

static void test_what_was_written_over_is_lost(void **state)
{
	must_attach();
	log_gaps(RT_STAT_INTERVALS + 10);
	assert_int_equal(take_snapshot(), 0);
	read_all();
	/* One may be overwritten at the moment. */
	assert_int_equal(lost, 11);
	assert_int_equal(count, RT_STAT_INTERVALS - 1);
	assert_int_equal(got[0].packets, 11);
}

/* A thread for which no log was populated yet. */
static void test_intervals_without_a_log_are_lost(void **state)
{
	stats.h->no_log_intervals = 5;
	must_attach();
	read_all();
	assert_int_equal(lost, 0);
	stats.h->no_log_intervals = 12;
	read_all();
	assert_int_equal(lost, 7);
	log_gaps(1);
	assert_int_equal(take_snapshot(), 0);
	read_all();
	assert_int_equal(count, 1);
	assert_int_equal(lost, 0);
	stats.h->no_log_intervals = 3; /* it lies */
	read_all();
	assert_int_equal(lost, 0);
}

static void test_a_head_that_lies_costs_no_more_than_a_log(void **state)
{
	static const uint64_t heads[] = {UINT64_MAX, 1, UINT64_MAX / 2, 0, 1ull << 40};

	must_attach();
	log_gaps(20);
	assert_int_equal(take_snapshot(), 0);
	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
		stats.logs[0].head = heads[i];
		read_all();
		assert_in_range(count, 0, RT_STAT_INTERVALS);
	}
	log_gaps(1);
	read_all();
	assert_int_equal(count, 1);
}

static void test_entries_that_lie(void **state)
{
	struct rt_stat_interval v[] = {gap(1), gap(2), gap(3), gap(4), gap(5)};

	v[0].kind = 77;
	v[1].cycles = 0;
	v[2].cycles = UINT64_MAX / 2;
	v[3].port_index = 200;
	must_attach();
	for (size_t i = 0; i < sizeof(v) / sizeof(v[0]); i++)
		test_interval(&stats, 0, &v[i]);
	assert_int_equal(take_snapshot(), 0);
	read_all();
	assert_true(count == 2 || count == 3);
	assert_int_equal(got[count - 2].packets, 4);
	assert_int_equal(got[count - 2].port, RINGTAP_NO_INDEX);
	assert_int_equal(got[count - 1].packets, 5);
}

static void test_logs_that_lie(void **state)
{
	must_attach();
	log_gaps(1);
	stats.logs[0].thread = RT_STAT_THREADS;
	assert_int_equal(take_snapshot(), -EBADMSG);
	stats.logs[0].thread = 3;
	stats.h->log_count = UINT32_MAX;
	assert_int_equal(take_snapshot(), 0);
	read_all();
	assert_int_equal(count, 1);
}

static void test_an_earlier_probe_has_none(void **state)
{
	stats.h->log_offset = 0;
	must_attach();
	log_gaps(1);
	assert_int_equal(take_snapshot(), 0);
	read_all();
	assert_int_equal(count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		MONITOR_TEST(test_intervals_are_read_once),
		MONITOR_TEST(test_what_was_there_before_is_left_out),
		MONITOR_TEST(test_what_was_written_over_is_lost),
		MONITOR_TEST(test_intervals_without_a_log_are_lost),
		MONITOR_TEST(test_a_head_that_lies_costs_no_more_than_a_log),
		MONITOR_TEST(test_entries_that_lie),
		MONITOR_TEST(test_logs_that_lie),
		MONITOR_TEST(test_an_earlier_probe_has_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
