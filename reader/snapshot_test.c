/* SPDX-License-Identifier: BSD-3-Clause */
/* Snapshots of what a probe, honest or not, counts. */
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

#include "common/atomics.h"
#include "test_monitor.h"

/* ---- snapshots ---- */

static void test_a_snapshot_shows_what_was_counted(void **state)
{
	struct rt_stat_hook *h = test_hook(&fig, 3, 1, 5, RT_DIR_RX);

	h->burst[0] = 10;
	h->burst[32] = 4;
	h->burst[RT_STAT_BURSTS] = 1;
	h->big_polls = 2;
	h->big_packets = 2000;
	h->bytes = 640;
	h->byte_packets = 10;
	h->max_burst = 64;
	fig.ports[1].imissed = 3;
	fig.threads[3].busy_cycles = 500;
	fig.threads[3].idle_cycles = 400;
	must_attach();
	assert_int_equal(f->port_count, 2);
	assert_string_equal(ringtap_snapshot_port(f, 1)->name, "port1");
	assert_int_equal(ringtap_snapshot_port(f, 1)->imissed, 3);
	assert_false(ringtap_snapshot_port(f, 1)->gone);
	assert_int_equal(f->thread_count, 1);
	assert_int_equal(ringtap_snapshot_thread(f, 0)->slot, 3);
	assert_int_equal(ringtap_snapshot_thread(f, 0)->generation, 7);
	assert_true(ringtap_snapshot_thread(f, 0)->alive);
	assert_string_equal(ringtap_snapshot_thread(f, 0)->name, "lcore-worker-1");
	assert_int_equal(ringtap_snapshot_thread(f, 0)->busy_cycles, 500);
	assert_int_equal(ringtap_snapshot_thread(f, 0)->idle_cycles, 400);
	assert_int_equal(f->queue_count, 1);
	assert_int_equal(ringtap_snapshot_queue(f, 0)->port, 1);
	assert_int_equal(ringtap_snapshot_queue(f, 0)->queue, 5);
	assert_int_equal(ringtap_snapshot_queue(f, 0)->direction, RINGTAP_RX);
	assert_int_equal(ringtap_snapshot_queue(f, 0)->polls, 17);
	assert_int_equal(ringtap_snapshot_queue(f, 0)->empty_polls, 10);
	assert_int_equal(ringtap_snapshot_queue(f, 0)->packets, 4 * 32 + RT_STAT_BURSTS + 2000);
	assert_int_equal(ringtap_snapshot_queue(f, 0)->bytes, 640);
	assert_int_equal(ringtap_snapshot_queue(f, 0)->max_burst, 64);
	assert_int_equal(f->collectors, RT_COLLECT_ALL);
}

static void test_the_period_that_lasts_counts(void **state)
{
	uint64_t before = rt_tsc();

	fig.threads[3].busy_cycles = 500;
	fig.threads[3].idle_cycles = 400;
	fig.threads[3].since_tsc = before;
	fig.threads[3].is_busy = 1;
	must_attach();
	assert_true(ringtap_snapshot_thread(f, 0)->busy_cycles > 500);
	assert_true(ringtap_snapshot_thread(f, 0)->busy_cycles <= 500 + rt_tsc() - before);
	assert_int_equal(ringtap_snapshot_thread(f, 0)->idle_cycles, 400);
	before = ringtap_snapshot_thread(f, 0)->busy_cycles;
	/* The probe's sum is less than the estimate was: a sum never goes back. */
	fig.threads[3].since_tsc = 0;
	fig.threads[3].busy_cycles = 501;
	assert_int_equal(look_again(), 0);
	assert_int_equal(ringtap_snapshot_thread(f, 0)->busy_cycles, before);
	/* Nor does it grow while the collector is off. */
	fig.threads[3].since_tsc = 1;
	fig.h->collectors = 0;
	assert_int_equal(look_again(), 0);
	assert_int_equal(ringtap_snapshot_thread(f, 0)->busy_cycles, before);
}

static void put_gap(uint32_t window, int at, uint64_t cycles, uint16_t port)
{
	struct rt_stat_window *w = &fig.threads[3].window[window % RT_STAT_WINDOWS];

	w->number = window;
	w->gap[at] = (struct rt_stat_gap){
		.tsc = rt_tsc(), .cycles = cycles, .port_index = port, .queue = 2};
	w->burst[at] = (struct rt_stat_burst){.tsc = rt_tsc(), .cycles = 9, .packets = cycles};
}

static void test_entries_that_change_are_left_out(void **state)
{
	put_gap(40, 0, 100, 0);
	fig.threads[3].window[40 % RT_STAT_WINDOWS].gap[0].cycles = 0;
	fig.threads[3].since_tsc = 0; /* nor is there a period that lasts */
	must_attach();
	assert_int_equal(ringtap_snapshot_thread(f, 0)->gap_count, 0);
	assert_int_equal(ringtap_snapshot_thread(f, 0)->microburst_count, 1);
	assert_int_equal(ringtap_snapshot_thread(f, 0)->idle_cycles, 0);
}

static void test_worst_of_all_recent_windows_longest_first(void **state)
{
	put_gap(40, 0, 100, 0);
	put_gap(41, 3, 900, 1);
	put_gap(41, 5, 300, 9);
	put_gap(20, 0, 5000, 0); /* long ago */
	must_attach();
	assert_int_equal(ringtap_snapshot_thread(f, 0)->gap_count, 3);
	assert_int_equal(ringtap_thread_gap(ringtap_snapshot_thread(f, 0), 0)->cycles, 900);
	assert_int_equal(ringtap_thread_gap(ringtap_snapshot_thread(f, 0), 0)->port, 1);
	assert_int_equal(ringtap_thread_gap(ringtap_snapshot_thread(f, 0), 1)->cycles, 300);
	assert_int_equal(
		ringtap_thread_gap(ringtap_snapshot_thread(f, 0), 1)->port, RINGTAP_NO_INDEX);
	assert_int_equal(ringtap_thread_gap(ringtap_snapshot_thread(f, 0), 2)->cycles, 100);
	assert_int_equal(ringtap_snapshot_thread(f, 0)->microburst_count, 3);
	assert_int_equal(ringtap_thread_microburst(ringtap_snapshot_thread(f, 0), 0)->packets, 900);
	assert_in_range(ringtap_thread_gap(ringtap_snapshot_thread(f, 0), 0)->start_ns,
		f->taken_ns - 1000000000, f->taken_ns);
	assert_in_range(ringtap_thread_gap(ringtap_snapshot_thread(f, 0), 0)->ns,
		900 * 1e9 / f->tsc_hz - 1, 900 * 1e9 / f->tsc_hz);
}

/* 2.6 GHz, of which DPDK believes 2.594. */
static void test_frequency_is_measured_and_doubted(void **state)
{
	static struct ringtap_monitor m = {.open_tsc = 1000, .open_mono_ns = 5000};
	const uint64_t told = 2594000000, hz = 2600000000;

	m.stats.h.tsc_hz = told;
	/* Not yet. */
	assert_int_equal(rt_measure_hz(&m, 1000 + hz / 20, 5000 + 50000000), told);
	assert_int_equal(rt_measure_hz(&m, 1000 + hz / 5, 5000 + 200000000), hz);
	assert_int_equal(rt_measure_hz(&m, 1000 + hz * 60, 5000 + 60000000000), hz);
	/* Two milliseconds between the two clocks; and a guest that was moved. */
	assert_int_equal(rt_measure_hz(&m, 1000 + hz / 5, 5000 + 202000000), told);
	assert_int_equal(rt_measure_hz(&m, 1000 + hz / 5, 5000 + 198000000), told);
	assert_int_equal(rt_measure_hz(&m, 1000, 5000 + 200000000), told);
}

static void test_pairs(void **state)
{
	struct rt_stat_pair *p = test_pair(&fig, 3, 0, 1);
	struct rt_stat_pair *none = test_pair(&fig, 3, UINT16_MAX, 1);

	p->bucket[rt_stat_bucket(5000)] = 3;
	p->bucket[rt_stat_bucket(70)] = 2;
	p->sum = 15140;
	p->min = 70;
	p->max = 5000;
	p->inferred = 7; /* what is not 0 is 1 */
	none->unstamped = 8;
	must_attach();
	assert_int_equal(f->pair_count, 2);
	assert_int_equal(ringtap_snapshot_pair(f, 0)->rx_port, 0);
	assert_int_equal(ringtap_snapshot_pair(f, 0)->tx_port, 1);
	assert_int_equal(ringtap_snapshot_pair(f, 0)->count, 5);
	assert_int_equal(ringtap_snapshot_pair(f, 0)->inferred, 1);
	assert_int_equal(ringtap_snapshot_pair(f, 1)->inferred, 0);
	assert_int_equal(ringtap_snapshot_pair(f, 0)->bucket[rt_stat_bucket(5000)], 3);
	assert_int_equal(ringtap_snapshot_pair(f, 1)->rx_port, RINGTAP_NO_INDEX);
	assert_int_equal(ringtap_snapshot_pair(f, 1)->unstamped, 8);
	assert_int_equal(ringtap_snapshot_pair(f, 1)->count, 0);
}

static void test_pools(void **state)
{
	memcpy(fig.pools[0].name, "mb\x1b[2J", 7);
	memset(fig.pools[0].ops, 'x', sizeof(fig.pools[0].ops));
	fig.pools[0].size = 8192;
	fig.pools[0].memory = 77;
	fig.pools[0].cache[4] = 250;
	fig.pools[0].state = RT_IF_GONE;
	fig.h->pool_count = 1;
	must_attach();
	assert_int_equal(f->pool_count, 1);
	assert_string_equal(ringtap_snapshot_pool(f, 0)->name, "mb?[2J");
	assert_int_equal(strlen(ringtap_snapshot_pool(f, 0)->ops), sizeof(fig.pools[0].ops) - 1);
	assert_int_equal(ringtap_snapshot_pool(f, 0)->size, 8192);
	assert_int_equal(ringtap_snapshot_pool(f, 0)->memory, RINGTAP_MEMORY_UNKNOWN);
	assert_int_equal(ringtap_snapshot_pool(f, 0)->cache[4], 250);
	assert_true(ringtap_snapshot_pool(f, 0)->gone);
}

static void test_runs(void **state)
{
	test_sample_run(&fig, 0, 6, 20);
	test_sample_run(&fig, 0, 5, RT_STAT_RUN);
	test_sample_run(&fig, 0, 7, RT_STAT_RUN + 1); /* impossible */
	must_attach();
	assert_int_equal(f->sample_run_count, 2);
	assert_int_equal(ringtap_snapshot_sample_run(f, 0)->number, 5);
	assert_int_equal(ringtap_snapshot_sample_run(f, 0)->count, RT_STAT_RUN);
	assert_int_equal(ringtap_snapshot_sample_run(f, 1)->number, 6);
	assert_int_equal(ringtap_snapshot_sample_run(f, 1)->count, 20);
	assert_int_equal(ringtap_snapshot_sample_run(f, 1)->thread, 0);
	assert_int_equal(
		ringtap_sample_run_at(ringtap_snapshot_sample_run(f, 1), 19)->address, 1019);
	assert_int_equal(ringtap_sample_run_at(ringtap_snapshot_sample_run(f, 1), 19)->iova, 5019);
	assert_int_equal(ringtap_sample_run_at(ringtap_snapshot_sample_run(f, 1), 19)->port, 1);
	assert_int_equal(switch_to(RINGTAP_POLLS), 0);
	assert_int_equal(look_again(), 0);
	assert_int_equal(f->sample_run_count, 0);
}

/* ---- threads come and go ---- */

static void test_a_slots_new_owner_counts_on(void **state)
{
	struct rt_stat_hook *h = test_hook(&fig, 3, 0, 0, RT_DIR_RX);

	h->burst[1] = 5;
	fig.threads[3].busy_cycles = 500;
	must_attach();
	fig.threads[3].generation = 8;
	fig.threads[3].busy_cycles = 503;
	h->burst[1] = 6;
	assert_int_equal(look_again(), 0);
	assert_int_equal(f->thread_count, 1);
	assert_int_equal(ringtap_snapshot_thread(f, 0)->generation, 8);
	assert_int_equal(ringtap_snapshot_thread(f, 0)->busy_cycles, 503);
	assert_int_equal(ringtap_snapshot_queue(f, 0)->packets, 6);
}

static void test_a_block_that_is_not_complete_is_left_out(void **state)
{
	test_hook(&fig, 3, 999, 0, RT_DIR_RX)->generation = 0;
	test_hook(&fig, 3, 1, 6, RT_DIR_TX);
	test_pair(&fig, 3, 999, 0)->generation = 0;
	test_sample_run(&fig, 1, 4, 10);
	must_attach();
	assert_int_equal(f->queue_count, 1);
	assert_int_equal(ringtap_snapshot_queue(f, 0)->queue, 6);
	assert_int_equal(f->pair_count, 0);
	assert_int_equal(f->sample_run_count, 1);
	/* It comes behind those that were there. */
	fig.hooks[0].port_index = 0;
	fig.hooks[0].generation = 7;
	assert_int_equal(look_again(), 0);
	assert_int_equal(f->queue_count, 2);
	assert_int_equal(ringtap_snapshot_queue(f, 0)->queue, 6);
	assert_int_equal(ringtap_snapshot_queue(f, 1)->direction, RINGTAP_RX);
}

static void test_ports_and_threads_that_appear(void **state)
{
	must_attach();
	fig.threads[60].generation = 1;
	test_hook(&fig, 60, 2, 0, RT_DIR_RX);
	fig.h->port_count = 3;
	assert_int_equal(look_again(), 0);
	assert_int_equal(f->thread_count, 2);
	assert_int_equal(f->port_count, 3);
	assert_int_equal(ringtap_snapshot_queue(f, 0)->thread, 1);
	assert_int_equal(ringtap_snapshot_thread(f, 1)->slot, 60);
	assert_int_equal(ringtap_snapshot_queue(f, 0)->port, 2);
}

/* ---- lies ---- */

static void assert_nonsense(void)
{
	assert_int_equal(look_again(), -EBADMSG);
	assert_null(f);
}

/* read_ns is 0 while the probe changes the counters. */
static void test_a_drivers_counters_are_of_one_reading(void **state)
{
	struct rt_stat_port *p = &fig.ports[0];

	must_attach();
	p->read_ns = 5;
	p->opackets = 70;
	p->tx_before = 71;
	p->tx_after = 72;
	assert_int_equal(look_again(), 0);
	assert_int_equal(ringtap_snapshot_port(f, 0)->read_ns, 5);
	assert_int_equal(ringtap_snapshot_port(f, 0)->opackets, 70);
	assert_int_equal(ringtap_snapshot_port(f, 0)->tx_before, 71);
	assert_int_equal(ringtap_snapshot_port(f, 0)->tx_after, 72);
	p->read_ns = 0;
	assert_int_equal(look_again(), 0);
	assert_int_equal(ringtap_snapshot_port(f, 0)->read_ns, 0);
}

static void test_impossible_owners_are_nonsense(void **state)
{
	struct rt_stat_hook *h = test_hook(&fig, 3, 0, 0, RT_DIR_RX);
	struct rt_stat_pair *p;

	assert_int_equal(attach(), 0);
	h->port_index = 2;
	assert_nonsense();
	h->port_index = 0;
	h->direction = 2;
	assert_nonsense();
	h->direction = 0;
	h->thread = RT_STAT_THREADS;
	assert_nonsense();
	h->thread = 4; /* nobody has that slot */
	assert_nonsense();
	h->thread = 3;
	assert_int_equal(look_again(), 0);
	p = test_pair(&fig, 3, 0, 0);
	p->tx_index = UINT16_MAX;
	assert_nonsense();
	p->tx_index = 1;
	p->rx_index = 63;
	assert_nonsense();
	p->rx_index = 0;
	test_sample_run(&fig, 0, 1, 1);
	fig.samplers[0].thread = UINT32_MAX;
	assert_nonsense();
}

static void test_owners_stay_what_they_were(void **state)
{
	struct rt_stat_hook *h = test_hook(&fig, 3, 1, 4, RT_DIR_TX);

	must_attach();
	h->port_index = 999;
	h->thread = 999;
	h->queue = 1;
	fig.h->hook_count = fig.h->port_count = 0;
	assert_int_equal(look_again(), 0);
	assert_int_equal(f->port_count, 2);
	assert_int_equal(f->queue_count, 1);
	assert_int_equal(ringtap_snapshot_queue(f, 0)->port, 1);
	assert_int_equal(ringtap_snapshot_queue(f, 0)->queue, 4);
}

static void test_counts_stay_within_their_tables(void **state)
{
	for (uint32_t i = 0; i < RT_STAT_HOOKS; i++)
		test_hook(&fig, 3, 0, (uint16_t)i, RT_DIR_RX);
	fig.h->hook_count = UINT32_MAX;
	fig.h->port_count = UINT32_MAX;
	fig.h->pool_count = RT_STAT_POOLS + 1;
	fig.h->ports_beyond = 5;
	fig.h->pools_beyond = 6;
	must_attach();
	assert_int_equal(f->ports_beyond, 5);
	assert_int_equal(f->pools_beyond, 6);
	assert_int_equal(f->queue_count, RT_STAT_HOOKS);
	assert_int_equal(f->port_count, RT_STAT_PORTS);
	assert_int_equal(f->pool_count, RT_STAT_POOLS);
}

/* Reading unused entries would allocate it. */
static void test_unused_entries_are_not_read(void **state)
{
	struct stat before, after;

	test_hook(&fig, 3, 0, 0, RT_DIR_RX);
	fig.h->thread_count = 4;
	must_attach();
	assert_int_equal(fstat(fig.fd, &before), 0);
	assert_in_range(before.st_blocks * 512, 4096, 256 << 10);
	assert_int_equal(look_again(), 0);
	assert_int_equal(look_again(), 0);
	assert_int_equal(f->thread_count, 1);
	assert_int_equal(fstat(fig.fd, &after), 0);
	assert_int_equal(after.st_blocks, before.st_blocks);
}

static void test_impossible_count_of_threads_is_bounded(void **state)
{
	fig.h->thread_count = UINT32_MAX;
	must_attach();
	assert_int_equal(f->thread_count, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		MONITOR_TEST(test_a_snapshot_shows_what_was_counted),
		MONITOR_TEST(test_the_period_that_lasts_counts),
		MONITOR_TEST(test_entries_that_change_are_left_out),
		MONITOR_TEST(test_worst_of_all_recent_windows_longest_first),
		MONITOR_TEST(test_frequency_is_measured_and_doubted),
		MONITOR_TEST(test_pairs),
		MONITOR_TEST(test_pools),
		MONITOR_TEST(test_runs),
		MONITOR_TEST(test_a_slots_new_owner_counts_on),
		MONITOR_TEST(test_a_block_that_is_not_complete_is_left_out),
		MONITOR_TEST(test_ports_and_threads_that_appear),
		MONITOR_TEST(test_a_drivers_counters_are_of_one_reading),
		MONITOR_TEST(test_impossible_owners_are_nonsense),
		MONITOR_TEST(test_owners_stay_what_they_were),
		MONITOR_TEST(test_counts_stay_within_their_tables),
		MONITOR_TEST(test_unused_entries_are_not_read),
		MONITOR_TEST(test_impossible_count_of_threads_is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
