/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The statistics segment as a lying probe might make it. The input is a list of writes over honest
 * statistics, so that the fuzzer need not find out how to make them:
 *    1 byte   where: table, see overwrite(); bit 6: the last five; bit 7: a snapshot first
 *    3 bytes  offset
 *    1 byte   length
 *    n bytes  what is written
 * The first writes, up to a snapshot, are there when it is attached to.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "reader/stats/monitor_state.h"
#include "reader/test_stats.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void put_some(struct test_stats *f)
{
	struct rt_stat_window *w = &f->threads[3].window[5];

	test_hook(f, 3, 0, 0, RT_DIR_RX)->burst[32] = 7;
	test_hook(f, 3, 1, 0, RT_DIR_TX)->burst[32] = 7;
	test_pair(f, 3, 0, 1)->bucket[500] = 224;
	test_sample_run(f, 0, 5, 40);
	test_interval(f, 0, &(struct rt_stat_interval){.tsc = rt_tsc(), .cycles = 1000, .kind = 1});
	w->number = 5;
	w->gap[0] = (struct rt_stat_gap){.tsc = rt_tsc(), .cycles = 1000};
	w->burst[0] = (struct rt_stat_burst){.tsc = rt_tsc(), .packets = 70};
	memcpy(f->pools[0].name, "mbufs", 6);
	f->h->pool_count = 1;
}

static void overwrite(
	struct test_stats *f, unsigned where, uint32_t offset, const uint8_t *src, uint32_t n)
{
	uint8_t *base[] = {(uint8_t *)f->h, (uint8_t *)f->clock, (uint8_t *)f->ports,
		(uint8_t *)f->threads, (uint8_t *)f->hooks, (uint8_t *)f->pairs,
		(uint8_t *)f->pools, (uint8_t *)f->samplers, (uint8_t *)f->logs,
		(uint8_t *)f->rings, (uint8_t *)f->xstats, (uint8_t *)f->devices,
		(uint8_t *)f->lcores};
	/* The reader hardly reads beyond it, and more would slow the fuzzer. */
	const uint32_t room[] = {sizeof(*f->h), sizeof(*f->clock), 4 * sizeof(*f->ports),
		5 * sizeof(*f->threads), 3 * sizeof(*f->hooks), 2 * sizeof(*f->pairs),
		2 * sizeof(*f->pools), 4096, 4096, 2 * sizeof(*f->rings), 4 * sizeof(*f->xstats),
		4 * sizeof(*f->devices), 4 * sizeof(*f->lcores)};

	offset %= room[where];
	if (n > room[where] - offset)
		n = room[where] - offset;
	memcpy(base[where] + offset, src, n);
}

static void assert_text(const char *text, size_t size)
{
	size_t len = strnlen(text, size);

	if (len == size)
		abort();
	for (size_t i = 0; i < len; i++) {
		if ((unsigned char)text[i] < ' ' || text[i] == 127)
			abort();
	}
}

static void assert_index(uint32_t i, uint32_t count, bool may_miss)
{
	if (i >= count && !(may_miss && i == RINGTAP_NO_INDEX))
		abort();
}

static void use_threads(const struct ringtap_snapshot *f)
{
	for (uint32_t i = 0; i < f->thread_count; i++) {
		const struct ringtap_thread_stats *t = ringtap_snapshot_thread(f, i);

		assert_text(t->name, sizeof(t->name));
		if (t->gap_count > RT_STAT_WINDOWS * RT_STAT_WORST + 1 ||
			t->microburst_count > RT_STAT_WINDOWS * RT_STAT_WORST)
			abort();
		for (uint32_t g = 0; g < t->gap_count; g++)
			assert_index(ringtap_thread_gap(t, g)->port, f->port_count, true);
	}
}

static void use_blocks(const struct ringtap_snapshot *f)
{
	for (uint32_t i = 0; i < f->queue_count; i++) {
		assert_index(ringtap_snapshot_queue(f, i)->thread, f->thread_count, false);
		assert_index(ringtap_snapshot_queue(f, i)->port, f->port_count, false);
		if (ringtap_snapshot_queue(f, i)->direction != RINGTAP_RX &&
			ringtap_snapshot_queue(f, i)->direction != RINGTAP_TX)
			abort();
	}
	for (uint32_t i = 0; i < f->pair_count; i++) {
		assert_index(ringtap_snapshot_pair(f, i)->thread, f->thread_count, false);
		assert_index(ringtap_snapshot_pair(f, i)->rx_port, f->port_count, true);
		assert_index(ringtap_snapshot_pair(f, i)->tx_port, f->port_count, false);
		(void)ringtap_latency_quantile(ringtap_snapshot_pair(f, i)->bucket, 0.999);
	}
	for (uint32_t i = 0; i < f->sample_run_count; i++) {
		const struct ringtap_sample_run *s = ringtap_snapshot_sample_run(f, i);

		assert_index(s->thread, f->thread_count, false);
		if (!s->count || s->count > RT_STAT_RUN)
			abort();
		for (uint64_t k = 0; k < s->count; k++)
			assert_index(ringtap_sample_run_at(s, k)->port, f->port_count, true);
	}
}

static void use(const struct ringtap_snapshot *f)
{
	for (uint32_t i = 0; i < f->port_count; i++) {
		assert_text(ringtap_snapshot_port(f, i)->name,
			sizeof(ringtap_snapshot_port(f, i)->name));
		assert_text(ringtap_snapshot_port(f, i)->driver,
			sizeof(ringtap_snapshot_port(f, i)->driver));
	}
	for (uint32_t i = 0; i < f->ring_count; i++)
		assert_text(ringtap_snapshot_ring(f, i)->name,
			sizeof(ringtap_snapshot_ring(f, i)->name));
	for (uint32_t i = 0; i < f->xstat_count; i++) {
		assert_text(ringtap_snapshot_xstat(f, i)->name,
			sizeof(ringtap_snapshot_xstat(f, i)->name));
		assert_index(ringtap_snapshot_xstat(f, i)->port, f->port_count, true);
	}
	for (uint32_t i = 0; i < f->device_stat_count; i++) {
		const struct ringtap_device_stat *d = ringtap_snapshot_device_stat(f, i);

		assert_text(d->device, sizeof(d->device));
		assert_text(d->name, sizeof(d->name));
		assert_index(d->kind, RINGTAP_DMADEV + 1, false);
		assert_index(d->part, RINGTAP_PART_CHANNEL + 1, false);
	}
	for (uint32_t i = 0; i < f->pool_count; i++) {
		assert_text(ringtap_snapshot_pool(f, i)->name,
			sizeof(ringtap_snapshot_pool(f, i)->name));
		assert_text(
			ringtap_snapshot_pool(f, i)->ops, sizeof(ringtap_snapshot_pool(f, i)->ops));
	}
	use_threads(f);
	use_blocks(f);
}

static const struct ringtap_snapshot *newest;

static void use_interval(void *ctx, const struct ringtap_interval *v)
{
	uint32_t *count = ctx;

	assert_index(v->thread, newest->thread_count, false);
	assert_index(v->port, newest->port_count, true);
	if (++*count > RT_STAT_INTERVALS * RT_STAT_LOGS || !v->ns ||
		(v->kind != RINGTAP_INTERVAL_GAP && v->kind != RINGTAP_INTERVAL_BUSY))
		abort();
}

/* As ringtap_monitor_read() goes on; *last becomes the snapshot, if there is one. */
static void look(struct ringtap_monitor *mon, struct ringtap_snapshot **last)
{
	struct rt_snapshot *snap;
	uint32_t count = 0;
	uint64_t lost = 0;

	if (rt_snapshot_take(mon, &snap)) {
		if (snap)
			abort();
		return;
	}
	use(&snap->pub);
	newest = &snap->pub;
	ringtap_monitor_intervals(mon, use_interval, &count, &lost);
	if (*last) {
		struct ringtap_snapshot *old = *last;

		if (snap->pub.port_count < old->port_count ||
			snap->pub.queue_count < old->queue_count ||
			snap->pub.pair_count < old->pair_count ||
			snap->pub.thread_count < old->thread_count)
			abort();
		ringtap_snapshot_since(&snap->pub, old);
		use(&snap->pub);
		ringtap_snapshot_free(old);
	}
	*last = &snap->pub;
}

/* Applies writes up to the next snapshot. Returns what is left. */
static size_t apply(struct test_stats *f, const uint8_t **p, size_t left)
{
	bool first = true;

	while (left >= 5 && (first || !((*p)[0] & 128))) {
		const uint8_t *at = *p;
		uint32_t offset = at[1] | (uint32_t)at[2] << 8 | (uint32_t)at[3] << 16, n = at[4];

		if (n > left - 5)
			n = (uint32_t)left - 5;
		overwrite(f, at[0] & 64 ? 8 + (at[0] & 63) % 5 : at[0] % 8, offset, at + 5, n);
		*p += 5 + n;
		left -= 5 + n;
		first = false;
	}
	return left >= 5 ? left : 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct ringtap_conn conn = {.fd = -1};
	static struct ringtap_monitor mon;
	struct ringtap_snapshot *last = NULL;
	struct test_stats f;
	char err[RT_TEXT_LEN] = "";

	test_stats_make(&f);
	put_some(&f);
	size = apply(&f, &data, size);
	memset(&mon, 0, sizeof(mon));
	mon.conn = &conn;
	mon.collectors = RT_COLLECT_ALL;
	mon.open_tsc = 1;
	if (rt_stats_map(&mon.stats, f.fd, err, sizeof(err)) == 0) {
		(void)rt_clock_read(mon.stats.clock, &mon.line);
		look(&mon, &last);
		for (int i = 0; i < 16 && size; i++) {
			size = apply(&f, &data, size);
			look(&mon, &last);
		}
		ringtap_snapshot_free(last);
		rt_stats_unmap(&mon.stats);
	} else if (!err[0]) {
		abort();
	}
	free(mon.log_entries);
	test_stats_free(&f);
	return 0;
}
