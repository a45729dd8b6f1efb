/* SPDX-License-Identifier: BSD-3-Clause */
/* The difference of two snapshots, and latency histograms. */
#include "reader/export.h"
#include "monitor_state.h"

/* A counter that has decreased was reset in between (an application may reset its driver's): its
 * value has been counted since then. */
static uint64_t grown(uint64_t later, uint64_t earlier)
{
	return later >= earlier ? later - earlier : later;
}

static void subtract(uint64_t *later, const uint64_t *earlier, size_t count)
{
	for (size_t i = 0; i < count; i++)
		later[i] = grown(later[i], earlier[i]);
}

#define LESS(field)           l->field = grown(l->field, e->field)
#define LESS_HISTOGRAM(field) subtract(l->field, e->field, sizeof(l->field) / sizeof(l->field[0]))

static uint32_t fewer(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static void since_port(struct ringtap_port_stats *l, const struct ringtap_port_stats *e)
{
	uint64_t before = l->tx_before;

	l->tx_before = before > e->tx_after ? before - e->tx_after : 0;
	l->tx_after = grown(l->tx_after, e->tx_before);
	LESS(ipackets);
	LESS(opackets);
	LESS(ibytes);
	LESS(obytes);
	LESS(imissed);
	LESS(ierrors);
	LESS(rx_nombuf);
	LESS(oerrors);
	LESS(tx_unknown);
	l->epoch -= e->epoch;
}

static void since_thread(struct ringtap_thread_stats *l, const struct ringtap_thread_stats *e)
{
	LESS(cpu_ns);
	LESS(wait_ns);
	LESS(preempted);
	LESS(busy_cycles);
	LESS(idle_cycles);
	LESS(busy_periods);
	LESS_HISTOGRAM(busy_period_packets);
	LESS_HISTOGRAM(gaps_busy);
	LESS_HISTOGRAM(gaps_idle);
}

/* Removes gaps that ended, and microbursts that began, before. */
static void drop_old(struct rt_thread *t, uint64_t since_ns)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < t->pub.gap_count; i++) {
		if (t->gaps[i].start_ns >= since_ns || t->gaps[i].open)
			t->gaps[n++] = t->gaps[i];
	}
	t->pub.gap_count = n;
	n = 0;
	for (uint32_t i = 0; i < t->pub.microburst_count; i++) {
		if (t->microbursts[i].start_ns >= since_ns)
			t->microbursts[n++] = t->microbursts[i];
	}
	t->pub.microburst_count = n;
}

static void since_queue(struct ringtap_queue_stats *l, const struct ringtap_queue_stats *e)
{
	LESS(polls);
	LESS(empty_polls);
	LESS(packets);
	LESS(bytes);
	LESS(byte_packets);
	LESS(big_polls);
	LESS(big_packets);
	LESS_HISTOGRAM(burst);
}

static void since_pair(struct ringtap_pair_stats *l, const struct ringtap_pair_stats *e)
{
	LESS(count);
	LESS(sum);
	LESS(unstamped);
	LESS(shared);
}

static void since_device(struct ringtap_device_stat *l, const struct ringtap_device_stat *e)
{
	LESS(value);
}

static void since_xstat(struct ringtap_xstat_stats *l, const struct ringtap_xstat_stats *e)
{
	LESS(value);
}

static void since_lcore(struct ringtap_lcore_stats *l, const struct ringtap_lcore_stats *e)
{
	LESS(total_cycles);
	LESS(busy_cycles);
}

EXPORT void ringtap_snapshot_since(
	struct ringtap_snapshot *later, const struct ringtap_snapshot *earlier)
{
	struct rt_snapshot *snap = (struct rt_snapshot *)later;
	const struct rt_snapshot *old = (const struct rt_snapshot *)earlier;
	uint32_t n;

	later->interval_ns = snap->mono_ns - old->mono_ns;
	later->no_thread_polls = grown(later->no_thread_polls, earlier->no_thread_polls);
	later->no_block_polls = grown(later->no_block_polls, earlier->no_block_polls);
	later->no_pair_packets = grown(later->no_pair_packets, earlier->no_pair_packets);
	n = fewer(later->port_count, earlier->port_count);
	for (uint32_t i = 0; i < n; i++)
		since_port(&snap->ports[i], &old->ports[i]);
	for (uint32_t i = 0; i < later->thread_count; i++) {
		drop_old(&snap->threads[i], earlier->taken_ns);
		if (i < earlier->thread_count)
			since_thread(&snap->threads[i].pub, &old->threads[i].pub);
	}
	n = fewer(later->queue_count, earlier->queue_count);
	for (uint32_t i = 0; i < n; i++)
		since_queue(&snap->queues[i], &old->queues[i]);
	n = fewer(later->pair_count, earlier->pair_count);
	for (uint32_t i = 0; i < n; i++)
		since_pair(&snap->pairs[i], &old->pairs[i]);
	for (uint32_t i = 0; i < fewer(later->xstat_count, earlier->xstat_count); i++)
		since_xstat(&snap->xstats[i], &old->xstats[i]);
	for (uint32_t i = 0; i < fewer(later->device_stat_count, earlier->device_stat_count); i++)
		since_device(&snap->devices[i], &old->devices[i]);
	for (uint32_t i = 0; i < fewer(later->lcore_count, earlier->lcore_count); i++)
		since_lcore(&snap->lcores[i], &old->lcores[i]);
	subtract(snap->buckets, old->buckets, (size_t)n * RT_STAT_BUCKETS);
}

/* ---- latency histograms ---- */

EXPORT uint32_t ringtap_latency_buckets(void)
{
	return RT_STAT_BUCKETS;
}

EXPORT uint64_t ringtap_latency_low(uint32_t bucket, uint64_t *width)
{
	return rt_stat_bucket_low(bucket < RT_STAT_BUCKETS ? bucket : RT_STAT_BUCKETS - 1, width);
}

EXPORT double ringtap_latency_quantile(const uint64_t *bucket, double share)
{
	uint64_t total = 0, seen = 0, width, rank;
	uint32_t b;

	for (b = 0; b < RT_STAT_BUCKETS; b++)
		total += bucket[b];
	if (!total)
		return 0;
	/* Nearest-rank method: the smallest value that at least this many counts do not exceed. */
	rank = share <= 0 ? 1 : share >= 1 ? total : (uint64_t)(share * (double)total);
	if ((double)rank < share * (double)total || !rank)
		rank++;
	if (rank > total)
		rank = total;
	for (b = 0; b < RT_STAT_BUCKETS - 1; b++) {
		seen += bucket[b];
		if (seen >= rank)
			break;
	}
	return (double)rt_stat_bucket_low(b, &width) + (double)(width - 1) / 2;
}
