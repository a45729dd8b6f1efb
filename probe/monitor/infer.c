/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Decides when latencies of a sample are inferred (latency.c). To infer touches the second line of
 * every mbuf, which a sample is meant to avoid: so only where the flag does not get through the
 * application. Control thread.
 */
#include <rte_common.h>

#include "stats.h"

#define ENOUGH 64 /* chosen packets of which none arrived with its flag */

static void count_pairs(const struct rt_stats *f, uint64_t *certain, uint64_t *unstamped)
{
	uint32_t n = RTE_MIN(rt_load(&f->header->pair_count), (uint32_t)RT_STAT_PAIRS);

	*certain = *unstamped = 0;
	for (uint32_t i = 0; i < n; i++) {
		const struct rt_stat_pair *p = &f->pairs[i];

		/* Pairs with the release in claim_pair(). */
		if (!rt_load_acquire(&p->generation))
			continue;
		*unstamped += rt_load(&p->unstamped);
		*certain += p->inferred ? 0 : rt_load(&p->count);
	}
}

void rt_stats_infer(struct rt_stats *f)
{
	uint32_t every = rt_stat_mode.latency_every;
	uint64_t certain, unstamped;

	if (!(rt_stat_mode.state & RT_COLLECT_LATENCY) || every == 1 || every & RT_STAT_INFER)
		return;
	count_pairs(f, &certain, &unstamped);
	if (certain != f->infer_certain || f->infer_generation != rt_stat_mode.latency_generation) {
		f->infer_generation = rt_stat_mode.latency_generation;
		f->infer_certain = certain;
		f->infer_unstamped = unstamped;
	} else if (unstamped - f->infer_unstamped >= (uint64_t)ENOUGH * every) {
		rt_stat_set_every(every | RT_STAT_INFER);
	}
}

void rt_stat_set_every(uint32_t every)
{
	/* Until now, packets that were not chosen kept the time stamps of earlier ones. */
	if (every == 1 || every & RT_STAT_INFER)
		rt_store(&rt_stat_mode.latency_on_tsc, rt_tsc());
	/* Pairs with the acquire in rt_stat_time(). */
	rt_store_release(&rt_stat_mode.latency_every, every);
}
