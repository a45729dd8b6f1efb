/* SPDX-License-Identifier: BSD-3-Clause */
/* Attaching a monitor, and snapshots of correct and of corrupt statistics. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/atomics.h"
#include "common/ipc.h"
#include "monitor_state.h"
#include "test_stats.h"
#include "test_peer.h"

static struct test_stats stats;
static struct test_peer peer;
static struct ringtap_monitor *mon;
static struct ringtap_snapshot *f;
static char err[RT_TEXT_LEN];

static int set_up(void **state)
{
	test_stats_make(&stats);
	peer = (struct test_peer){.stats_fd = stats.fd};
	test_peer_start(&peer, true);
	memset(err, 0, sizeof(err));
	return 0;
}

static int tear_down(void **state)
{
	ringtap_snapshot_free(f);
	ringtap_monitor_close(mon);
	f = NULL;
	mon = NULL;
	test_peer_stop(&peer);
	test_stats_free(&stats);
	return 0;
}

static int attach(void)
{
	return ringtap_monitor_open(&mon, peer.dir,
		&(struct ringtap_monitor_options){.size = sizeof(struct ringtap_monitor_options),
			.collectors = RT_COLLECT_ALL,
			.latency_every = 16},
		err, sizeof(err));
}

static int switch_to(unsigned collectors)
{
	const struct ringtap_monitor_options o = {.size = sizeof(o), .collectors = collectors};

	return ringtap_monitor_switch(mon, &o, err, sizeof(err));
}

static void assert_refused(int code, const char *text)
{
	assert_int_equal(attach(), code);
	assert_null(mon);
	assert_non_null(strstr(err, text));
}

/* Replaces the last snapshot. */
static int take_snapshot(void)
{
	ringtap_snapshot_free(f);
	return ringtap_monitor_read(mon, &f);
}

static void must_attach(void)
{
	assert_int_equal(attach(), 0);
	assert_int_equal(take_snapshot(), 0);
}

/* ---- attaching ---- */

static void test_requested_collectors_reach_the_probe(void **state)
{
	struct ringtap_app_info info = {.size = sizeof(info)};

	must_attach();
	assert_int_equal(peer.request.collectors, RT_COLLECT_ALL);
	assert_int_equal(peer.request.latency_every, 16);
	assert_int_equal(switch_to(RINGTAP_POLLS), 0);
	assert_int_equal(peer.request.collectors, RT_COLLECT_POLLS);
	assert_int_equal(ringtap_monitor_app(mon, &info), 0);
	assert_string_equal(info.prefix, "test");
}

static void test_unknown_collectors_are_refused(void **state)
{
	must_attach();
	assert_int_equal(switch_to(1u << 20), -EINVAL);
	assert_int_equal(ringtap_monitor_switch(mon, &(struct ringtap_monitor_options){0}, NULL, 0),
		-EINVAL);
	assert_int_equal(take_snapshot(), 0);
}

static bool answer_error(struct test_peer *p, int sock, uint16_t type)
{
	struct rt_msg_error m = {.code = -EPROTO, .text = "unknown message"};

	if (type == RT_MSG_HELLO)
		return test_peer_answer(p, sock, type);
	rt_msg_init(&m.h, RT_MSG_ERROR, sizeof(m));
	(void)rt_msg_send(sock, &m.h, NULL, 0);
	return false;
}

static void test_old_probe_has_its_own_error(void **state)
{
	peer.answer = answer_error;
	assert_refused(-EOPNOTSUPP, "restart it");
}

static bool answer_without_memory(struct test_peer *p, int sock, uint16_t type)
{
	if (type == RT_MSG_HELLO)
		return test_peer_answer(p, sock, type);
	test_peer_send(sock, RT_MSG_MONITORING, NULL, 0);
	return true;
}

static void test_missing_memory_is_refused(void **state)
{
	peer.answer = answer_without_memory;
	assert_refused(-EPROTO, "no statistics");
}

static void test_impossible_headers_are_refused(void **state)
{
	const struct rt_stat_header good = *stats.h;
	uint64_t *const offsets[] = {&stats.h->clock_offset, &stats.h->port_offset,
		&stats.h->thread_offset, &stats.h->hook_offset, &stats.h->pair_offset,
		&stats.h->pool_offset, &stats.h->sampler_offset};
	const uint64_t bad[] = {0, 8, sizeof(good) + 8, stats.size - 64 + 8, stats.size, UINT64_MAX,
		UINT64_MAX - 63};

	for (size_t i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++) {
		for (size_t k = 0; k < sizeof(bad) / sizeof(bad[0]); k++) {
			*offsets[i] = bad[k];
			assert_refused(-EBADMSG, "outside");
			*stats.h = good;
		}
	}
	stats.h->segment_size = stats.size + 4096;
	assert_refused(-EBADMSG, "shorter");
	*stats.h = good;
	stats.h->magic[6] = 'X';
	assert_refused(-EBADMSG, "magic");
	*stats.h = good;
	stats.h->tsc_hz = 0;
	assert_refused(-EBADMSG, "frequency");
	*stats.h = good;
	stats.h->version++;
	assert_refused(-EPROTOTYPE, "version");
	*stats.h = good;
	stats.clock->seq = 1;
	assert_refused(-EBADMSG, "clock");
	stats.clock->seq = 2;
	must_attach();
}

static void test_memory_that_may_shrink_is_refused(void **state)
{
	peer.stats_fd = test_memfd(stats.size, F_SEAL_GROW);
	assert_refused(-EBADMSG, "sealed");
	close(peer.stats_fd);
	peer.stats_fd = test_memfd(100, F_SEAL_SHRINK);
	assert_refused(-EBADMSG, "short");
	close(peer.stats_fd);
}

/* ---- snapshots ---- */

static void test_a_snapshot_shows_what_was_counted(void **state)
{
	struct rt_stat_hook *h = test_hook(&stats, 3, 1, 5, RT_DIR_RX);

	h->burst[0] = 10;
	h->burst[32] = 4;
	h->burst[RT_STAT_BURSTS] = 1;
	h->big_polls = 2;
	h->big_packets = 2000;
	h->bytes = 640;
	h->byte_packets = 10;
	h->max_burst = 64;
	stats.ports[1].imissed = 3;
	stats.threads[3].busy_cycles = 500;
	stats.threads[3].idle_cycles = 400;
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

static void test_current_period_counts(void **state)
{
	uint64_t before = rt_tsc();

	stats.threads[3].busy_cycles = 500;
	stats.threads[3].idle_cycles = 400;
	stats.threads[3].since_tsc = before;
	stats.threads[3].is_busy = 1;
	must_attach();
	assert_true(ringtap_snapshot_thread(f, 0)->busy_cycles > 500);
	assert_true(ringtap_snapshot_thread(f, 0)->busy_cycles <= 500 + rt_tsc() - before);
	assert_int_equal(ringtap_snapshot_thread(f, 0)->idle_cycles, 400);
	before = ringtap_snapshot_thread(f, 0)->busy_cycles;
	/* The sum of the probe is less than the estimate: the result must not decrease. */
	stats.threads[3].since_tsc = 0;
	stats.threads[3].busy_cycles = 501;
	assert_int_equal(take_snapshot(), 0);
	assert_int_equal(ringtap_snapshot_thread(f, 0)->busy_cycles, before);
	/* It does not grow while the collector is off. */
	stats.threads[3].since_tsc = 1;
	stats.h->collectors = 0;
	assert_int_equal(take_snapshot(), 0);
	assert_int_equal(ringtap_snapshot_thread(f, 0)->busy_cycles, before);
}

static void put_gap(uint32_t window, int at, uint64_t cycles, uint16_t port)
{
	struct rt_stat_window *w = &stats.threads[3].window[window % RT_STAT_WINDOWS];

	w->number = window;
	w->gap[at] = (struct rt_stat_gap){
		.tsc = rt_tsc(), .cycles = cycles, .port_index = port, .queue = 2};
	w->burst[at] = (struct rt_stat_burst){.tsc = rt_tsc(), .cycles = 9, .packets = cycles};
}

static void test_changing_entries_are_skipped(void **state)
{
	put_gap(40, 0, 100, 0);
	stats.threads[3].window[40 % RT_STAT_WINDOWS].gap[0].cycles = 0;
	stats.threads[3].since_tsc = 0; /* no current period either */
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
	put_gap(20, 0, 5000, 0); /* an old window */
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

/* 2.6 GHz, which DPDK reports as 2.594. */
static void test_implausible_frequency_is_rejected(void **state)
{
	static struct ringtap_monitor m = {.open_tsc = 1000, .open_mono_ns = 5000};
	const uint64_t reported = 2594000000, hz = 2600000000;

	m.stats.h.tsc_hz = reported;
	/* Too early. */
	assert_int_equal(rt_measure_hz(&m, 1000 + hz / 20, 5000 + 50000000), reported);
	assert_int_equal(rt_measure_hz(&m, 1000 + hz / 5, 5000 + 200000000), hz);
	assert_int_equal(rt_measure_hz(&m, 1000 + hz * 60, 5000 + 60000000000), hz);
	/* Two milliseconds between reading the two clocks; and a migrated guest. */
	assert_int_equal(rt_measure_hz(&m, 1000 + hz / 5, 5000 + 202000000), reported);
	assert_int_equal(rt_measure_hz(&m, 1000 + hz / 5, 5000 + 198000000), reported);
	assert_int_equal(rt_measure_hz(&m, 1000, 5000 + 200000000), reported);
}

static void test_pairs(void **state)
{
	struct rt_stat_pair *p = test_pair(&stats, 3, 0, 1);
	struct rt_stat_pair *none = test_pair(&stats, 3, UINT16_MAX, 1);

	p->bucket[rt_stat_bucket(5000)] = 3;
	p->bucket[rt_stat_bucket(70)] = 2;
	p->sum = 15140;
	p->min = 70;
	p->max = 5000;
	p->inferred = 7; /* values other than 0 become 1 */
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
	memcpy(stats.pools[0].name, "mb\x1b[2J", 7);
	memset(stats.pools[0].ops, 'x', sizeof(stats.pools[0].ops));
	stats.pools[0].size = 8192;
	stats.pools[0].memory = 77;
	stats.pools[0].cache[4] = 250;
	stats.pools[0].state = RT_IF_GONE;
	stats.h->pool_count = 1;
	must_attach();
	assert_int_equal(f->pool_count, 1);
	assert_string_equal(ringtap_snapshot_pool(f, 0)->name, "mb?[2J");
	assert_int_equal(strlen(ringtap_snapshot_pool(f, 0)->ops), sizeof(stats.pools[0].ops) - 1);
	assert_int_equal(ringtap_snapshot_pool(f, 0)->size, 8192);
	assert_int_equal(ringtap_snapshot_pool(f, 0)->memory, RINGTAP_MEMORY_UNKNOWN);
	assert_int_equal(ringtap_snapshot_pool(f, 0)->cache[4], 250);
	assert_true(ringtap_snapshot_pool(f, 0)->gone);
}

static void test_runs(void **state)
{
	test_sample_run(&stats, 0, 6, 20);
	test_sample_run(&stats, 0, 5, RT_STAT_RUN);
	test_sample_run(&stats, 0, 7, RT_STAT_RUN + 1); /* impossible */
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
	assert_int_equal(take_snapshot(), 0);
	assert_int_equal(f->sample_run_count, 0);
}

/* ---- threads come and go ---- */

static void test_new_owner_of_a_slot_continues_its_counters(void **state)
{
	struct rt_stat_hook *h = test_hook(&stats, 3, 0, 0, RT_DIR_RX);

	h->burst[1] = 5;
	stats.threads[3].busy_cycles = 500;
	must_attach();
	stats.threads[3].generation = 8;
	stats.threads[3].busy_cycles = 503;
	h->burst[1] = 6;
	assert_int_equal(take_snapshot(), 0);
	assert_int_equal(f->thread_count, 1);
	assert_int_equal(ringtap_snapshot_thread(f, 0)->generation, 8);
	assert_int_equal(ringtap_snapshot_thread(f, 0)->busy_cycles, 503);
	assert_int_equal(ringtap_snapshot_queue(f, 0)->packets, 6);
}

static void test_incomplete_block_is_skipped(void **state)
{
	test_hook(&stats, 3, 999, 0, RT_DIR_RX)->generation = 0;
	test_hook(&stats, 3, 1, 6, RT_DIR_TX);
	test_pair(&stats, 3, 999, 0)->generation = 0;
	test_sample_run(&stats, 1, 4, 10);
	must_attach();
	assert_int_equal(f->queue_count, 1);
	assert_int_equal(ringtap_snapshot_queue(f, 0)->queue, 6);
	assert_int_equal(f->pair_count, 0);
	assert_int_equal(f->sample_run_count, 1);
	/* It is appended to the existing ones. */
	stats.hooks[0].port_index = 0;
	stats.hooks[0].generation = 7;
	assert_int_equal(take_snapshot(), 0);
	assert_int_equal(f->queue_count, 2);
	assert_int_equal(ringtap_snapshot_queue(f, 0)->queue, 6);
	assert_int_equal(ringtap_snapshot_queue(f, 1)->direction, RINGTAP_RX);
}

static void test_ports_and_threads_that_appear(void **state)
{
	must_attach();
	stats.threads[60].generation = 1;
	test_hook(&stats, 60, 2, 0, RT_DIR_RX);
	stats.h->port_count = 3;
	assert_int_equal(take_snapshot(), 0);
	assert_int_equal(f->thread_count, 2);
	assert_int_equal(f->port_count, 3);
	assert_int_equal(ringtap_snapshot_queue(f, 0)->thread, 1);
	assert_int_equal(ringtap_snapshot_thread(f, 1)->slot, 60);
	assert_int_equal(ringtap_snapshot_queue(f, 0)->port, 2);
}

/* ---- corrupt statistics ---- */

static void assert_corrupt(void)
{
	assert_int_equal(take_snapshot(), -EBADMSG);
	assert_null(f);
}

/* read_ns is 0 while the probe changes the counters. */
static void test_a_drivers_counters_are_of_one_reading(void **state)
{
	struct rt_stat_port *p = &stats.ports[0];

	must_attach();
	p->read_ns = 5;
	p->opackets = 70;
	p->tx_before = 71;
	p->tx_after = 72;
	assert_int_equal(take_snapshot(), 0);
	assert_int_equal(ringtap_snapshot_port(f, 0)->read_ns, 5);
	assert_int_equal(ringtap_snapshot_port(f, 0)->opackets, 70);
	assert_int_equal(ringtap_snapshot_port(f, 0)->tx_before, 71);
	assert_int_equal(ringtap_snapshot_port(f, 0)->tx_after, 72);
	p->read_ns = 0;
	assert_int_equal(take_snapshot(), 0);
	assert_int_equal(ringtap_snapshot_port(f, 0)->read_ns, 0);
}

static void test_impossible_owners_are_errors(void **state)
{
	struct rt_stat_hook *h = test_hook(&stats, 3, 0, 0, RT_DIR_RX);
	struct rt_stat_pair *p;

	assert_int_equal(attach(), 0);
	h->port_index = 2;
	assert_corrupt();
	h->port_index = 0;
	h->direction = 2;
	assert_corrupt();
	h->direction = 0;
	h->thread = RT_STAT_THREADS;
	assert_corrupt();
	h->thread = 4; /* a free slot */
	assert_corrupt();
	h->thread = 3;
	assert_int_equal(take_snapshot(), 0);
	p = test_pair(&stats, 3, 0, 0);
	p->tx_index = UINT16_MAX;
	assert_corrupt();
	p->tx_index = 1;
	p->rx_index = 63;
	assert_corrupt();
	p->rx_index = 0;
	test_sample_run(&stats, 0, 1, 1);
	stats.samplers[0].thread = UINT32_MAX;
	assert_corrupt();
}

static void test_owners_do_not_change(void **state)
{
	struct rt_stat_hook *h = test_hook(&stats, 3, 1, 4, RT_DIR_TX);

	must_attach();
	h->port_index = 999;
	h->thread = 999;
	h->queue = 1;
	stats.h->hook_count = stats.h->port_count = 0;
	assert_int_equal(take_snapshot(), 0);
	assert_int_equal(f->port_count, 2);
	assert_int_equal(f->queue_count, 1);
	assert_int_equal(ringtap_snapshot_queue(f, 0)->port, 1);
	assert_int_equal(ringtap_snapshot_queue(f, 0)->queue, 4);
}

static void test_counts_stay_within_their_tables(void **state)
{
	for (uint32_t i = 0; i < RT_STAT_HOOKS; i++)
		test_hook(&stats, 3, 0, (uint16_t)i, RT_DIR_RX);
	stats.h->hook_count = UINT32_MAX;
	stats.h->port_count = UINT32_MAX;
	stats.h->pool_count = RT_STAT_POOLS + 1;
	stats.h->ports_beyond = 5;
	stats.h->pools_beyond = 6;
	must_attach();
	assert_int_equal(f->ports_beyond, 5);
	assert_int_equal(f->pools_beyond, 6);
	assert_int_equal(f->queue_count, RT_STAT_HOOKS);
	assert_int_equal(f->port_count, RT_STAT_PORTS);
	assert_int_equal(f->pool_count, RT_STAT_POOLS);
}

/* Reading unused entries would allocate memory. */
static void test_unused_entries_are_not_read(void **state)
{
	struct stat before, after;

	test_hook(&stats, 3, 0, 0, RT_DIR_RX);
	stats.h->thread_count = 4;
	must_attach();
	assert_int_equal(fstat(stats.fd, &before), 0);
	assert_in_range(before.st_blocks * 512, 4096, 256 << 10);
	assert_int_equal(take_snapshot(), 0);
	assert_int_equal(take_snapshot(), 0);
	assert_int_equal(f->thread_count, 1);
	assert_int_equal(fstat(stats.fd, &after), 0);
	assert_int_equal(after.st_blocks, before.st_blocks);
}

static void test_impossible_count_of_threads_is_bounded(void **state)
{
	stats.h->thread_count = UINT32_MAX;
	must_attach();
	assert_int_equal(f->thread_count, 1);
}

/* ---- the end ---- */

static void test_a_dead_applications_last_snapshot(void **state)
{
	struct pollfd p;

	test_hook(&stats, 3, 0, 0, RT_DIR_RX)->burst[2] = 5;
	must_attach();
	p = (struct pollfd){.fd = ringtap_monitor_fd(mon), .events = POLLIN};
	assert_int_equal(poll(&p, 1, 0), 0);
	test_peer_die(&peer);
	assert_int_equal(poll(&p, 1, 5000), 1);
	stats.hooks[0].burst[2] = 6;
	assert_int_equal(take_snapshot(), -EPIPE);
	assert_non_null(f);
	assert_int_equal(ringtap_snapshot_queue(f, 0)->packets, 12);
	assert_false(ringtap_snapshot_thread(f, 0)->alive);
	assert_true(ringtap_snapshot_port(f, 0)->gone);
	assert_int_equal(switch_to(RINGTAP_POLLS), -ECONNRESET);
	assert_int_equal(take_snapshot(), -EPIPE);
	test_peer_bury(&peer);
	test_peer_start(&peer, true); /* for the tear-down */
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(test_requested_collectors_reach_the_probe),
		TEST(test_unknown_collectors_are_refused),
		TEST(test_old_probe_has_its_own_error),
		TEST(test_missing_memory_is_refused),
		TEST(test_impossible_headers_are_refused),
		TEST(test_memory_that_may_shrink_is_refused),
		TEST(test_a_snapshot_shows_what_was_counted),
		TEST(test_current_period_counts),
		TEST(test_changing_entries_are_skipped),
		TEST(test_worst_of_all_recent_windows_longest_first),
		TEST(test_implausible_frequency_is_rejected),
		TEST(test_pairs),
		TEST(test_pools),
		TEST(test_runs),
		TEST(test_new_owner_of_a_slot_continues_its_counters),
		TEST(test_incomplete_block_is_skipped),
		TEST(test_ports_and_threads_that_appear),
		TEST(test_a_drivers_counters_are_of_one_reading),
		TEST(test_impossible_owners_are_errors),
		TEST(test_owners_do_not_change),
		TEST(test_counts_stay_within_their_tables),
		TEST(test_unused_entries_are_not_read),
		TEST(test_impossible_count_of_threads_is_bounded),
		TEST(test_a_dead_applications_last_snapshot),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
