/* SPDX-License-Identifier: BSD-3-Clause */
/* Snapshots of what a probe, honest or not, counts. */
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

#include "common/atomics.h"
#include "reader/test_monitor.h"

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

static void last_poll(uint64_t looked_ms, uint16_t port)
{
	stats.threads[3].poll_tsc = stats.h->tsc_hz;
	stats.threads[3].looked_tsc = stats.h->tsc_hz / 1000 * (1000 + looked_ms);
	stats.threads[3].poll_port = port;
	stats.threads[3].poll_packets = 32;
}

static void test_a_gap_that_lasts_counts(void **state)
{
	const struct ringtap_thread_stats *t;

	put_gap(40, 0, 100, 0);
	last_poll(99, 1);
	must_attach();
	assert_int_equal(ringtap_snapshot_thread(f, 0)->gap_count, 1);
	last_poll(2000, 1);
	assert_int_equal(take_snapshot(), 0);
	t = ringtap_snapshot_thread(f, 0);
	assert_int_equal(t->gap_count, 2);
	assert_true(ringtap_thread_gap(t, 0)->open && !ringtap_thread_gap(t, 1)->open);
	assert_in_range(ringtap_thread_gap(t, 0)->ns, 1999000000, 2001000000);
	assert_int_equal(ringtap_thread_gap(t, 0)->ns, t->quiet_ns);
	assert_int_equal(ringtap_thread_gap(t, 0)->start_ns, t->last_poll_ns);
	assert_int_equal(ringtap_thread_gap(t, 0)->port, 1);
	assert_int_equal(t->last_poll_packets, 32);
	assert_false(t->last_poll_holds);
	/* Ports of a segment that lies; entries that are being written. */
	last_poll(2000, 64);
	stats.threads[3].poll_holds = 1;
	assert_int_equal(take_snapshot(), 0);
	assert_int_equal(ringtap_snapshot_thread(f, 0)->last_poll_port, RINGTAP_NO_INDEX);
	assert_true(ringtap_snapshot_thread(f, 0)->last_poll_holds);
	stats.threads[3].looked_tsc = 0;
	assert_int_equal(take_snapshot(), 0);
	assert_int_equal(ringtap_snapshot_thread(f, 0)->gap_count, 1);
	assert_int_equal(ringtap_snapshot_thread(f, 0)->last_poll_ns, 0);
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

static void test_rings(void **state)
{
	const struct ringtap_ring_stats *r;

	memcpy(stats.rings[0].name, "r\x1b[2J", 6);
	stats.rings[0].capacity = 63;
	stats.rings[0].used = 40;
	stats.rings[0].highest = 60;
	stats.rings[0].samples = RT_STAT_RECENT + 2;
	for (uint32_t i = 0; i < RT_STAT_RECENT; i++)
		stats.rings[0].recent[i] = i;
	memset(stats.rings[1].name, 'x', sizeof(stats.rings[1].name));
	stats.rings[1].state = RT_IF_GONE;
	stats.rings[1].samples = 1;
	stats.h->ring_count = 2;
	stats.h->rings_beyond = 5;
	must_attach();
	assert_int_equal(f->ring_count, 2);
	assert_int_equal(f->rings_beyond, 5);
	r = ringtap_snapshot_ring(f, 0);
	assert_string_equal(r->name, "r?[2J");
	assert_int_equal(r->capacity, 63);
	assert_int_equal(r->used, 40);
	assert_int_equal(r->highest, 60);
	assert_int_equal(r->samples, RT_STAT_RECENT + 2);
	assert_int_equal(r->recent[0], 1);
	assert_int_equal(r->recent[1], 0);
	assert_int_equal(r->recent[2], RT_STAT_RECENT - 1);
	assert_false(r->gone);
	r = ringtap_snapshot_ring(f, 1);
	assert_int_equal(strlen(r->name), sizeof(stats.rings[1].name) - 1);
	assert_true(r->gone);
}

static void test_no_rings_of_an_earlier_probe(void **state)
{
	stats.h->ring_offset = 0;
	stats.h->ring_count = 7;
	stats.h->rings_beyond = 7;
	must_attach();
	assert_int_equal(f->ring_count, 0);
	assert_int_equal(f->rings_beyond, 0);
}

static void test_xstats(void **state)
{
	const struct ringtap_xstat_stats *x;

	memcpy(stats.xstats[0].name, "rx\x1b[2J", 7);
	stats.xstats[0].port_index = 1;
	stats.xstats[0].read_ns = 5;
	stats.xstats[0].value = 1ull << 40;
	memset(stats.xstats[1].name, 'x', sizeof(stats.xstats[1].name));
	stats.xstats[1].port_index = 2; /* there are two */
	stats.xstats[1].state = RT_IF_GONE;
	stats.h->xstat_count = 2;
	stats.h->xstats_beyond = 5;
	must_attach();
	assert_int_equal(f->xstat_count, 2);
	assert_int_equal(f->xstats_beyond, 5);
	x = ringtap_snapshot_xstat(f, 0);
	assert_string_equal(x->name, "rx?[2J");
	assert_int_equal(x->port, 1);
	assert_int_equal(x->read_ns, 5);
	assert_int_equal(x->value, 1ull << 40);
	assert_false(x->gone);
	x = ringtap_snapshot_xstat(f, 1);
	assert_int_equal(strlen(x->name), sizeof(stats.xstats[1].name) - 1);
	assert_int_equal(x->port, RINGTAP_NO_INDEX);
	assert_int_equal(x->read_ns, 0);
	assert_true(x->gone);
}

static void test_no_xstats_of_an_earlier_probe(void **state)
{
	stats.h->xstat_offset = 0;
	stats.h->xstat_count = stats.h->xstats_beyond = 7;
	must_attach();
	assert_int_equal(f->xstat_count, 0);
	assert_int_equal(f->xstats_beyond, 0);
}

static void test_devices(void **state)
{
	const struct ringtap_device_stat *d;

	strcpy(stats.devices[0].device, "dma_\x1b[2J");
	strcpy(stats.devices[0].name, "submitted");
	stats.devices[0].kind = RT_DEVICE_DMA;
	stats.devices[0].part = RT_PART_CHANNEL;
	stats.devices[0].id = 3;
	stats.devices[0].number = 7;
	stats.devices[0].read_ns = 5;
	stats.devices[0].value = 1ull << 40;
	memset(stats.devices[1].name, 'x', sizeof(stats.devices[1].name));
	stats.devices[1].kind = RT_DEVICE_KINDS;
	stats.devices[2].part = RT_PARTS;
	stats.devices[3].state = RT_IF_GONE;
	stats.h->device_count = 4;
	stats.h->devices_beyond = 5;
	must_attach();
	assert_int_equal(f->device_stat_count, 4);
	assert_int_equal(f->device_stats_beyond, 5);
	d = ringtap_snapshot_device_stat(f, 0);
	assert_string_equal(d->device, "dma_?[2J");
	assert_string_equal(d->name, "submitted");
	assert_int_equal(d->kind, RINGTAP_DMADEV);
	assert_int_equal(d->part, RINGTAP_PART_CHANNEL);
	assert_true(d->id == 3 && d->number == 7);
	assert_int_equal(d->read_ns, 5);
	assert_int_equal(d->value, 1ull << 40);
	assert_false(d->gone);
	assert_int_equal(strlen(ringtap_snapshot_device_stat(f, 1)->name), RINGTAP_NAME_LEN - 1);
	for (uint32_t i = 1; i < 4; i++) {
		d = ringtap_snapshot_device_stat(f, i);
		assert_true(d->gone && !d->kind && !d->part);
	}
}

static void test_lcores(void **state)
{
	stats.lcores[1] =
		(struct rt_stat_lcore){.read_ns = 5, .total_cycles = 1ull << 40, .busy_cycles = 9};
	stats.h->lcore_count = 2;
	must_attach();
	assert_int_equal(f->lcore_count, 2);
	assert_int_equal(ringtap_snapshot_lcore(f, 0)->read_ns, 0);
	assert_int_equal(ringtap_snapshot_lcore(f, 1)->lcore, 1);
	assert_int_equal(ringtap_snapshot_lcore(f, 1)->read_ns, 5);
	assert_int_equal(ringtap_snapshot_lcore(f, 1)->total_cycles, 1ull << 40);
	assert_int_equal(ringtap_snapshot_lcore(f, 1)->busy_cycles, 9);
}

static void test_no_devices_and_lcores_of_an_earlier_probe(void **state)
{
	stats.h->device_offset = stats.h->lcore_offset = 0;
	stats.h->device_count = stats.h->devices_beyond = stats.h->lcore_count = 7;
	must_attach();
	assert_int_equal(f->device_stat_count + f->device_stats_beyond + f->lcore_count, 0);
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
	stats.h->ring_count = RT_STAT_RINGS + 1;
	stats.h->xstat_count = RT_STAT_XSTATS + 1;
	stats.h->device_count = RT_STAT_DEVICES + 1;
	stats.h->lcore_count = RT_STAT_LCORES + 1;
	must_attach();
	assert_int_equal(f->ports_beyond, 5);
	assert_int_equal(f->pools_beyond, 6);
	assert_int_equal(f->queue_count, RT_STAT_HOOKS);
	assert_int_equal(f->port_count, RT_STAT_PORTS);
	assert_int_equal(f->pool_count, RT_STAT_POOLS);
	assert_int_equal(f->ring_count, RT_STAT_RINGS);
	assert_int_equal(f->xstat_count, RT_STAT_XSTATS);
	assert_int_equal(f->device_stat_count, RT_STAT_DEVICES);
	assert_int_equal(f->lcore_count, RT_STAT_LCORES);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		MONITOR_TEST(test_a_snapshot_shows_what_was_counted),
		MONITOR_TEST(test_current_period_counts),
		MONITOR_TEST(test_a_gap_that_lasts_counts),
		MONITOR_TEST(test_changing_entries_are_skipped),
		MONITOR_TEST(test_worst_of_all_recent_windows_longest_first),
		MONITOR_TEST(test_implausible_frequency_is_rejected),
		MONITOR_TEST(test_pairs),
		MONITOR_TEST(test_pools),
		MONITOR_TEST(test_rings),
		MONITOR_TEST(test_no_rings_of_an_earlier_probe),
		MONITOR_TEST(test_xstats),
		MONITOR_TEST(test_no_xstats_of_an_earlier_probe),
		MONITOR_TEST(test_devices),
		MONITOR_TEST(test_lcores),
		MONITOR_TEST(test_no_devices_and_lcores_of_an_earlier_probe),
		MONITOR_TEST(test_runs),
		MONITOR_TEST(test_new_owner_of_a_slot_continues_its_counters),
		MONITOR_TEST(test_incomplete_block_is_skipped),
		MONITOR_TEST(test_ports_and_threads_that_appear),
		MONITOR_TEST(test_a_drivers_counters_are_of_one_reading),
		MONITOR_TEST(test_impossible_owners_are_errors),
		MONITOR_TEST(test_owners_do_not_change),
		MONITOR_TEST(test_counts_stay_within_their_tables),
		MONITOR_TEST(test_unused_entries_are_not_read),
		MONITOR_TEST(test_impossible_count_of_threads_is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
