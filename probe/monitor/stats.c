/* SPDX-License-Identifier: BSD-3-Clause */
/* Monitors: which of them need which collectors, and what follows from it. */
#include <errno.h>
#include <stdio.h>

#include <rte_common.h>

#include "common/fail.h"
#include "refresh.h"
#include "supply.h"
#include "probe/above.h"
#include "probe/dpdk/mbuf_field.h"
#include "probe/trace/trace.h"
#include "probe/capture/session.h"

#define REFRESH_MS 500  /* ports, threads, pools */
#define WINDOW_MS  1000 /* period of the worst gaps and bursts */
#define RUN_MS     100  /* period of sampled addresses */

static struct rt_monitor *monitors;
static struct rt_stats *dying;
static uint64_t refresh_ms, window_ms, run_ms;

static int register_field(char *err)
{
	static struct rt_mbuf_field field;
	int ret = rt_mbuf_field_register(
		&field, "ringtap_dynfield_rx_time", "ringtap_dynflag_rx_time", "latency", err);

	rt_store(&rt_stat_mode.latency_field, field.offset);
	rt_store(&rt_stat_mode.latency_flag, field.flag);
	return ret;
}

static uint32_t requested_collectors(void)
{
	uint32_t all = 0;

	for (const struct rt_monitor *m = monitors; m; m = m->next)
		all |= m->collectors;
	return all;
}

/* The monitor with the finest sampling decides. */
static uint32_t requested_every(void)
{
	uint32_t every = UINT32_MAX;

	for (const struct rt_monitor *m = monitors; m; m = m->next) {
		if ((m->collectors & RT_COLLECT_LATENCY) && m->latency_every < every)
			every = m->latency_every;
	}
	return every == UINT32_MAX ? 1 : every;
}

/* Published together with the collectors, so that the same bursts are counted and traced. */
static uint32_t tracing(void)
{
	return (monitors || rt_sessions) && rt_trace_listened() ? RT_COLLECT_TRACE : 0;
}

static void set_state(uint32_t on)
{
	uint32_t switching = (uint32_t)(rt_stat_mode.state >> 32) + 1;

	if (!switching) /* 0 stands for a thread that has followed no switching yet */
		switching = 1;
	/* Pairs with the acquires in visit(), rt_stat_rx_quick() and rt_stat_tx_quick(). */
	rt_store_release(&rt_stat_mode.state, (uint64_t)switching << 32 | on | tracing());
}

void rt_stat_look_again(void)
{
	set_state((uint32_t)rt_stat_mode.state & RT_COLLECT_ALL);
}

static void set_mode(struct rt_stats *f, uint32_t on, uint32_t every, uint64_t now_ns)
{
	uint32_t fresh = on & ~(uint32_t)rt_stat_mode.state;
	uint32_t now_every = rt_stat_mode.latency_every & ~RT_STAT_INFER;

	if (f->header->switched && f->header->collectors == on && now_every == every)
		return;
	if (fresh & RT_COLLECT_BUSY)
		rt_store(&rt_stat_mode.busy_generation, rt_stat_mode.busy_generation + 1);
	if (fresh & RT_COLLECT_GAPS)
		rt_store(&rt_stat_mode.gaps_generation, rt_stat_mode.gaps_generation + 1);
	if (fresh & RT_COLLECT_ADDRESSES)
		rt_store(&rt_stat_mode.addresses_generation, rt_stat_mode.addresses_generation + 1);
	if (fresh & RT_COLLECT_LATENCY) {
		uint32_t generation = rt_stat_mode.latency_generation + 1;

		if (!(uint16_t)generation) /* 0 stands for no time stamp, see stamp.h */
			generation++;
		rt_store(&rt_stat_mode.latency_generation, generation);
		rt_store(&rt_stat_mode.latency_on_tsc, rt_tsc());
	}
	if (fresh & RT_COLLECT_LATENCY || now_every != every)
		rt_stat_set_every(every);
	set_state(on);
	for (unsigned i = 0; i < RTE_DIM(f->on_ns); i++) {
		if (fresh & 1u << i)
			f->on_ns[i] = now_ns;
	}
	rt_store(&f->header->collectors, on);
	rt_store(&f->header->latency_every, every);
	/* Pairs with the acquire in fill(). */
	rt_store_release(&f->header->switched, f->header->switched + 1);
}

/* No monitor is attached any more. */
static void end(struct rt_stats *f)
{
	set_mode(f, 0, 1, 0);
	rt_stats_link(f, false);
	rt_store(&rt_stat_mode.threads, 0);
	rt_store_release(&rt_stat_current, NULL);
	rt_grace_begin(&f->grace);
	f->next = dying;
	dying = f;
}

static int begin(const struct rt_clock_line *clock)
{
	struct rt_stats *f = rt_stats_create(clock);
	uint64_t now_ns = rt_clock_ns(clock, rt_tsc());

	if (!f)
		return -ENOMEM;
	f->begun_ns = now_ns;
	rt_stats_scan_ports(f);
	rt_stats_refresh_ports(f, now_ns);
	refresh_ms = window_ms = run_ms = 0;
	/* Pairs with the acquire in rt_stat_thread_ends(). */
	rt_store_release(&rt_stat_current, f);
	return 0;
}

static void apply(const struct rt_clock_line *clock)
{
	uint32_t on = requested_collectors(), fresh;
	uint64_t now_ns = rt_clock_ns(clock, rt_tsc());
	struct rt_stats *f = rt_stat_current;

	if (!monitors) {
		if (f)
			end(f);
		return;
	}
	fresh = on & ~(uint32_t)rt_stat_mode.state;
	if (on & ~f->header->collectors & RT_COLLECT_POOLS) {
		rt_stats_refresh_pools(f); /* the client shall see them at once */
		rt_stats_sample_rings(f);
	}
	if (on & ~f->header->collectors & RT_COLLECT_XSTATS)
		rt_stats_begin_xstats(f, now_ns);
	if (on & ~f->header->collectors & RT_COLLECT_DEVICES)
		rt_stats_refresh_devices(f, now_ns);
	if (on & ~f->header->collectors & RT_COLLECT_BUSY)
		rt_stats_refresh_lcores(f, now_ns);
	rt_stats_supply(f, on);
	rt_stats_use_supply(f);
	/* Latencies are measured when all hooks are in: a time stamp must not get through a port
	 * that has no hooks yet, and net_ring hands on mbufs as they are. Such a packet would be
	 * timed from a port where it was received earlier. */
	set_mode(f, on & ~(fresh & RT_COLLECT_LATENCY), requested_every(), now_ns);
	rt_stats_link(f, on & RT_COLLECT_HOOKS);
	set_mode(f, on, requested_every(), now_ns);
	/* Later refusals of drivers are computed from these readings. */
	if (fresh & RT_COLLECT_POLLS)
		rt_stats_refresh_ports(f, now_ns);
}

static int prepare(uint32_t collectors, const struct rt_clock_line *clock, char *err)
{
	int ret;

	if (collectors & ~(uint32_t)RT_COLLECT_ALL)
		return rt_fail(-EINVAL, err, RT_TEXT_LEN, "request refused: unknown collector");
	if (collectors & RT_COLLECT_LATENCY && (ret = register_field(err)))
		return ret;
	if (!rt_stat_current && begin(clock))
		return rt_fail(-ENOMEM, err, RT_TEXT_LEN, "not enough memory");
	return 0;
}

int rt_stats_attach(struct rt_monitor *m, uint32_t collectors, uint32_t every,
	const struct rt_clock_line *clock, char *err)
{
	int ret = prepare(collectors, clock, err);

	if (ret)
		return ret;
	m->collectors = collectors;
	m->latency_every = every ? RTE_MIN(every, RT_STAT_INFER - 1) : 1;
	if (!m->attached) {
		m->attached = true;
		m->next = monitors;
		monitors = m;
	}
	apply(clock);
	return 0;
}

void rt_stats_detach(struct rt_monitor *m, const struct rt_clock_line *clock)
{
	struct rt_monitor **p = &monitors;

	if (!m->attached)
		return;
	while (*p != m)
		p = &(*p)->next;
	*p = m->next;
	m->attached = false;
	apply(clock);
}

static void fold_losses(struct rt_stats *f)
{
	uint64_t polls = rt_load(&f->no_row_polls), packets = 0, intervals = 0;

	for (unsigned i = 0; i < f->threads_ready; i++) {
		polls += rt_load(&f->rows[i].own.no_block_polls);
		packets += rt_load(&f->rows[i].own.no_pair_packets);
		intervals += rt_load(&f->rows[i].own.no_log_intervals);
	}
	rt_store(&f->header->no_block_polls, polls);
	rt_store(&f->header->no_pair_packets, packets);
	rt_store(&f->header->no_log_intervals, intervals);
	rt_store(&f->header->no_thread_polls, rt_load(&rt_stat_no_thread) - f->no_thread_base);
}

void rt_stats_tick(uint64_t now_ms, const struct rt_clock_line *clock)
{
	struct rt_stats *f = rt_stat_current;
	uint64_t now_ns = rt_clock_ns(clock, rt_tsc());
	bool refresh;

	if ((rt_stat_mode.state & RT_COLLECT_TRACE) != tracing())
		rt_stat_look_again();
	if (!f)
		return;
	rt_clock_publish(f->clock, clock);
	rt_stats_scan_ports(f);
	rt_stats_supply(f, (uint32_t)rt_stat_mode.state);
	rt_stats_use_supply(f);
	if (now_ms - window_ms >= WINDOW_MS) {
		window_ms = now_ms;
		rt_store(&rt_stat_mode.window, rt_stat_mode.window + 1);
	}
	if (now_ms - run_ms >= RUN_MS) {
		run_ms = now_ms;
		rt_store(&rt_stat_mode.wanted, rt_stat_mode.wanted + 1);
	}
	rt_stats_look_at_polls(f);
	refresh = now_ms - refresh_ms >= REFRESH_MS;
	if (rt_stat_mode.state & RT_COLLECT_POOLS) {
		if (refresh)
			rt_stats_refresh_pools(f);
		rt_stats_sample_rings(f);
	}
	if (!refresh)
		return;
	refresh_ms = now_ms;
	rt_stats_refresh_ports(f, now_ns);
	if (rt_stat_mode.state & RT_COLLECT_XSTATS)
		rt_stats_refresh_xstats(f, now_ns);
	if (rt_stat_mode.state & RT_COLLECT_DEVICES)
		rt_stats_refresh_devices(f, now_ns);
	if (rt_stat_mode.state & RT_COLLECT_BUSY)
		rt_stats_refresh_lcores(f, now_ns);
	rt_stats_refresh_threads(f, now_ns);
	rt_stats_infer(f);
	fold_losses(f);
}

bool rt_stats_reclaim(void)
{
	for (struct rt_stats **p = &dying; *p;) {
		struct rt_stats *f = *p;

		if (!rt_grace_over(&f->grace)) {
			p = &f->next;
			continue;
		}
		*p = f->next;
		rt_stats_free(f);
	}
	return !dying;
}
