/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory of the statistics, populated ahead of the polling threads' demand, so that they never
 * fault. A thread that finds none populated counts the call and tries again at its next one.
 */
#include <stddef.h>
#include <unistd.h>

#include <rte_common.h>
#include <rte_lcore.h>

#include "supply.h"
#include "probe/memory/sparse.h"

#define THREADS_AHEAD 8u   /* that have not polled yet */
#define HOOKS_AHEAD   16u  /* blocks */
#define HOOKS_FIRST   256u /* blocks, of applications with more queues than that */
#define PAIRS_AHEAD   4u
#define PAIRS_FIRST   16u

/* taken may grow meanwhile. */
static uint32_t enough(
	const struct rt_stat_supply *s, uint32_t taken, uint32_t ahead, uint32_t least)
{
	uint32_t n = taken + ahead;

	if (rt_load(&s->starved))
		n = RTE_MAX(n, 2 * taken + 1);
	return RTE_MAX(n, least);
}

/* If memory is short, the next tick tries again. */
static void extend(struct rt_stat_supply *s, uint32_t to, uint32_t max, void *table, size_t each)
{
	to = RTE_MIN(to, max);
	if (to <= s->ready)
		return;
	if (rt_sparse_populate((uint8_t *)table + s->ready * each, (to - s->ready) * each))
		return;
	rt_store(&s->starved, 0);
	rt_store_release(&s->ready, to); /* pairs with the acquire in rt_stat_take() */
}

/* Bytes of a row that holds n sites, in whole pages. */
static uint64_t row_bytes(uint32_t sites)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t bytes = offsetof(struct rt_stat_row, quick) + sites * sizeof(struct rt_stat_quick);

	return (bytes + page - 1) / page * page;
}

static uint32_t sites_in(uint64_t bytes)
{
	return (uint32_t)((bytes - offsetof(struct rt_stat_row, quick)) /
			  sizeof(struct rt_stat_quick));
}

/* Makes all rows longer, so that every site has its place in them. */
static void supply_sites(struct rt_stats *f)
{
	uint32_t sites = rt_load(&f->site_count);
	uint64_t from = f->row_bytes, to = row_bytes(RTE_MIN(sites, RT_STAT_SITES));

	for (uint32_t i = 0; to > from && i < f->threads_ready; i++) {
		if (rt_sparse_populate((uint8_t *)&f->rows[i] + from, to - from))
			return;
	}
	f->row_bytes = RTE_MAX(from, to);
	f->sites_ready = sites_in(f->row_bytes);
}

static void supply_threads(struct rt_stats *f)
{
	uint32_t from = f->threads_ready;
	uint32_t to = RTE_MAX(rt_threads_top() + THREADS_AHEAD, rte_lcore_count());

	to = RTE_MIN(to, (uint32_t)RT_MAX_THREADS);
	if (to > from &&
		rt_sparse_populate(&f->threads[from], (to - from) * sizeof(struct rt_stat_thread)))
		to = from;
	for (; from < to; from++) {
		if (rt_sparse_populate(&f->rows[from], f->row_bytes))
			break;
		f->rows[from].own.pub = &f->threads[from];
		f->rows[from].own.stats = f;
	}
	/* Pairs with the acquires in visit() and rt_stat_thread_ends(). */
	rt_store_release(&f->threads_ready, from);
	/* Pairs with the acquire in take_count(). */
	rt_store_release(&f->header->thread_count, from);
}

void rt_stats_supply(struct rt_stats *f, uint32_t on)
{
	struct rt_stat_header *h = f->header;
	uint32_t ports = rt_load(&h->port_count);

	if (!(on & RT_COLLECT_HOOKS))
		return;
	supply_sites(f);
	supply_threads(f);
	extend(&f->hook_supply,
		enough(&f->hook_supply, rt_load(&h->hook_count), HOOKS_AHEAD,
			RTE_MIN(rt_load(&f->site_count), HOOKS_FIRST)),
		RT_STAT_HOOKS, f->hooks, sizeof(f->hooks[0]));
	if (on & RT_COLLECT_LATENCY)
		extend(&f->pair_supply,
			enough(&f->pair_supply, rt_load(&h->pair_count), PAIRS_AHEAD,
				on & RT_COLLECT_SPLIT ? RT_STAT_PAIRS
						      : RTE_MIN(2 * ports, PAIRS_FIRST)),
			RT_STAT_PAIRS, f->pairs, sizeof(f->pairs[0]));
	if (on & RT_COLLECT_ADDRESSES)
		extend(&f->sampler_supply,
			enough(&f->sampler_supply, rt_load(&h->sampler_count), 0, 1),
			RT_STAT_SAMPLERS, f->samplers, sizeof(f->samplers[0]));
	if (on & RT_COLLECT_INTERVALS)
		extend(&f->log_supply, enough(&f->log_supply, rt_load(&h->log_count), 1, 2),
			RT_STAT_LOGS, f->logs, sizeof(f->logs[0]));
}
