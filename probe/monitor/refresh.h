/* SPDX-License-Identifier: BSD-3-Clause */
/* The control thread's readings of ports, drivers, threads, mempools, rings, devices and lcores. */
#ifndef RINGTAP_PROBE_MONITOR_REFRESH_H
#define RINGTAP_PROBE_MONITOR_REFRESH_H

#include "common/atomics.h"
#include "stats.h"

void rt_stats_link(struct rt_stats *f, bool on); /* all its sites */
void rt_stats_scan_ports(struct rt_stats *f);
void rt_stats_refresh_ports(struct rt_stats *f, uint64_t now_ns);
void rt_stats_refresh_threads(struct rt_stats *f, uint64_t now_ns);
void rt_stats_refresh_pools(struct rt_stats *f);
void rt_stats_sample_rings(struct rt_stats *f);
/* After rt_stats_scan_ports(). begin: also reads the names again. */
void rt_stats_begin_xstats(struct rt_stats *f, uint64_t now_ns);
void rt_stats_refresh_xstats(struct rt_stats *f, uint64_t now_ns);
void rt_stats_refresh_devices(struct rt_stats *f, uint64_t now_ns);
void rt_stats_refresh_lcores(struct rt_stats *f, uint64_t now_ns);
void rt_stats_look_at_polls(struct rt_stats *f);

/* Shows a value and the time when it was read; the time is 0 meanwhile. */
static inline void rt_stat_show(
	uint64_t *read_ns, uint64_t *value, uint64_t now_value, uint64_t now_ns)
{
	/* Pairs with the fence in read_values(). */
	rt_store(read_ns, 0);
	rt_fence_release();
	rt_store(value, now_value);
	rt_store_release(read_ns, now_ns);
}

/* A reading of a driver's counters, and the packets that the port's TX hooks had counted before and
 * after it. */
struct rt_stat_reading {
	struct rt_port_stats driver;
	uint64_t tx_before, tx_after;
};

/* Reports what was lost or refused since the reading before. */
void rt_trace_ports(struct rt_stats *f, uint32_t index, const struct rt_stat_reading *r);

#endif
