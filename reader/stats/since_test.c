/* SPDX-License-Identifier: BSD-3-Clause */
/* Differences of snapshots, and latency histograms. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/clock.h"
#include "monitor_state.h"
#include "reader/test_stats.h"
#include "reader/test_peer.h"

static struct test_stats stats;
static struct test_peer peer;
static struct ringtap_monitor *mon;
static struct ringtap_snapshot *before, *after;

static int set_up(void **state)
{
	char err[RT_TEXT_LEN];

	test_stats_make(&stats);
	peer = (struct test_peer){.stats_fd = stats.fd};
	test_peer_start(&peer, true);
	return ringtap_monitor_open(&mon, peer.dir,
		&(struct ringtap_monitor_options){.size = sizeof(struct ringtap_monitor_options),
			.collectors = RT_COLLECT_ALL,
			.latency_every = 1},
		err, sizeof(err));
}

static int tear_down(void **state)
{
	ringtap_snapshot_free(before);
	ringtap_snapshot_free(after);
	before = after = NULL;
	ringtap_monitor_close(mon);
	test_peer_stop(&peer);
	test_stats_free(&stats);
	return 0;
}

static void take(struct ringtap_snapshot **f)
{
	assert_int_equal(ringtap_monitor_read(mon, f), 0);
}

static void test_counters_become_differences(void **state)
{
	struct rt_stat_hook *h = test_hook(&stats, 3, 0, 0, RT_DIR_RX);
	struct rt_stat_pair *p = test_pair(&stats, 3, 0, 1);

	h->burst[4] = 10;
	stats.ports[0].ipackets = 40;
	stats.ports[0].tx_before = 100;
	stats.ports[0].tx_after = 110;
	stats.ports[1].tx_after = 10;
	stats.ports[1].epoch = 2;
	stats.ports[1].tx_unknown = 100;
	stats.threads[3].busy_period_packets[2] = 6;
	stats.pools[0].available = 1000;
	stats.h->pool_count = 1;
	p->bucket[100] = 7;
	p->min = 5;
	stats.h->no_thread_polls = 2;
	stats.xstats[0].value = 10;
	stats.xstats[1].value = 1000;
	stats.h->xstat_count = 2;
	stats.devices[0].value = 10;
	stats.lcores[0].total_cycles = 50;
	stats.lcores[0].busy_cycles = 30;
	stats.h->device_count = stats.h->lcore_count = 1;
	take(&before);
	h->burst[4] = 15;
	h->burst[0] = 3;
	stats.ports[0].ipackets = 60;
	stats.ports[0].tx_before = 150;
	stats.ports[0].tx_after = 165;
	stats.ports[1].tx_before = 9;
	stats.ports[1].tx_after = 12;
	stats.ports[1].epoch = 3;
	stats.ports[1].tx_unknown = 130;
	stats.threads[3].busy_period_packets[2] = 8;
	stats.pools[0].available = 900;
	p->bucket[100] = 9;
	p->bucket[101] = 1;
	stats.h->no_thread_polls = 5;
	stats.xstats[0].value = 14;
	stats.xstats[1].value = 3; /* reset */
	stats.xstats[2].value = 8;
	stats.h->xstat_count = 3;
	stats.devices[0].value = 14;
	stats.lcores[0].total_cycles = 90;
	stats.lcores[0].busy_cycles = 35;
	take(&after);
	ringtap_snapshot_since(after, before);
	assert_int_equal(ringtap_snapshot_queue(after, 0)->burst[4], 5);
	assert_int_equal(ringtap_snapshot_queue(after, 0)->polls, 8);
	assert_int_equal(ringtap_snapshot_queue(after, 0)->empty_polls, 3);
	assert_int_equal(ringtap_snapshot_queue(after, 0)->packets, 20);
	assert_int_equal(ringtap_snapshot_port(after, 0)->ipackets, 20);
	assert_int_equal(ringtap_snapshot_port(after, 0)->tx_before, 40);
	assert_int_equal(ringtap_snapshot_port(after, 0)->tx_after, 65);
	assert_int_equal(ringtap_snapshot_port(after, 0)->epoch, 0);
	assert_int_equal(ringtap_snapshot_port(after, 1)->tx_before, 0);
	assert_int_equal(ringtap_snapshot_port(after, 1)->epoch, 1);
	assert_int_equal(ringtap_snapshot_port(after, 1)->tx_unknown, 30);
	assert_int_equal(ringtap_snapshot_thread(after, 0)->busy_period_packets[2], 2);
	assert_int_equal(ringtap_snapshot_pool(after, 0)->available, 900);
	assert_int_equal(ringtap_snapshot_pair(after, 0)->bucket[100], 2);
	assert_int_equal(ringtap_snapshot_pair(after, 0)->bucket[101], 1);
	assert_int_equal(ringtap_snapshot_pair(after, 0)->count, 3);
	assert_int_equal(ringtap_snapshot_pair(after, 0)->min, 5);
	assert_int_equal(after->no_thread_polls, 3);
	assert_int_equal(ringtap_snapshot_xstat(after, 0)->value, 4);
	assert_int_equal(ringtap_snapshot_xstat(after, 1)->value, 3);
	assert_int_equal(ringtap_snapshot_xstat(after, 2)->value, 8);
	assert_int_equal(ringtap_snapshot_device_stat(after, 0)->value, 4);
	assert_int_equal(ringtap_snapshot_lcore(after, 0)->total_cycles, 40);
	assert_int_equal(ringtap_snapshot_lcore(after, 0)->busy_cycles, 5);
	assert_true(after->interval_ns > 0 && before->interval_ns == 0);
}

static void test_new_entries_count_from_zero(void **state)
{
	take(&before);
	test_hook(&stats, 3, 1, 0, RT_DIR_TX)->burst[4] = 15;
	test_pair(&stats, 3, 0, 1)->bucket[4] = 15;
	stats.threads[5].generation = 1;
	stats.threads[5].idle_cycles = 11;
	take(&after);
	ringtap_snapshot_since(after, before);
	assert_int_equal(ringtap_snapshot_queue(after, 0)->packets, 60);
	assert_int_equal(ringtap_snapshot_pair(after, 0)->count, 15);
	assert_int_equal(ringtap_snapshot_thread(after, 1)->idle_cycles, 11);
}

static void test_a_counter_that_was_reset_counts_from_there(void **state)
{
	stats.ports[0].ipackets = 40;
	take(&before);
	stats.ports[0].ipackets = 3;
	take(&after);
	ringtap_snapshot_since(after, before);
	assert_int_equal(ringtap_snapshot_port(after, 0)->ipackets, 3);
}

static void test_earlier_gaps_are_removed(void **state)
{
	struct rt_stat_window *w = &stats.threads[3].window[1];

	w->number = 1;
	w->gap[0] = (struct rt_stat_gap){.tsc = rt_tsc() - stats.h->tsc_hz / 10, .cycles = 900};
	w->burst[0] = (struct rt_stat_burst){.tsc = rt_tsc() - stats.h->tsc_hz / 10, .packets = 9};
	take(&before);
	assert_int_equal(ringtap_snapshot_thread(before, 0)->gap_count, 1);
	/* The clock line is seconds old: use a time in the future, as a margin. */
	w->gap[1] = (struct rt_stat_gap){.tsc = rt_tsc() + stats.h->tsc_hz / 10, .cycles = 100};
	w->burst[1] = (struct rt_stat_burst){.tsc = rt_tsc() + stats.h->tsc_hz / 10, .packets = 3};
	take(&after);
	ringtap_snapshot_since(after, before);
	assert_int_equal(ringtap_snapshot_thread(after, 0)->gap_count, 1);
	assert_int_equal(ringtap_thread_gap(ringtap_snapshot_thread(after, 0), 0)->cycles, 100);
	assert_int_equal(ringtap_snapshot_thread(after, 0)->microburst_count, 1);
	assert_int_equal(
		ringtap_thread_microburst(ringtap_snapshot_thread(after, 0), 0)->packets, 3);
}

/* ---- histograms ---- */

static void test_buckets_are_within_one_percent_and_without_gaps(void **state)
{
	uint64_t next = 0, width;

	for (uint32_t b = 0; b < ringtap_latency_buckets(); b++) {
		uint64_t low = ringtap_latency_low(b, &width);

		assert_int_equal(low, next);
		assert_int_equal(rt_stat_bucket(low), b);
		assert_int_equal(rt_stat_bucket(low + width - 1), b);
		assert_true((double)width / 2 <= 0.01 * (double)low || width == 1);
		next = low + width;
	}
	assert_int_equal(next, 1ull << RT_STAT_LAT_MAX);
	assert_int_equal(rt_stat_bucket(UINT64_MAX), ringtap_latency_buckets() - 1);
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void test_quantiles_are_those_of_the_values(void **state)
{
	static const double shares[] = {0, 0.001, 0.01, 0.5, 0.9, 0.99, 0.999, 0.9999, 1};
	enum { COUNT = 10000 };
	uint64_t *bucket = calloc(ringtap_latency_buckets(), sizeof(*bucket));
	uint64_t *value = calloc(COUNT, sizeof(*value)), seed = 88172645463325252ull;

	assert_int_equal(ringtap_latency_quantile(bucket, 0.5), 0);
	for (int i = 0; i < COUNT; i++) {
		seed ^= seed << 13;
		seed ^= seed >> 7;
		seed ^= seed << 17;
		value[i] = (seed >> 33) >> (seed & 31); /* over all octaves */
		bucket[rt_stat_bucket(value[i])]++;
	}
	qsort(value, COUNT, sizeof(*value), by_value);
	for (size_t i = 0; i < sizeof(shares) / sizeof(shares[0]); i++) {
		uint64_t at = (uint64_t)(shares[i] * COUNT + 0.5);
		double exact = (double)value[at ? at - 1 : 0];
		double got = ringtap_latency_quantile(bucket, shares[i]);

		assert_true(got >= exact * 0.99 && got <= exact * 1.01);
	}
	free(value);
	free(bucket);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(test_counters_become_differences),
		TEST(test_new_entries_count_from_zero),
		TEST(test_a_counter_that_was_reset_counts_from_there),
		TEST(test_earlier_gaps_are_removed),
		cmocka_unit_test(test_buckets_are_within_one_percent_and_without_gaps),
		cmocka_unit_test(test_quantiles_are_those_of_the_values),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
