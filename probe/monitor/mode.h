/* SPDX-License-Identifier: BSD-3-Clause */
/* Current work of hooks for monitors. */
#ifndef RINGTAP_PROBE_MONITOR_MODE_H
#define RINGTAP_PROBE_MONITOR_MODE_H

#include <stdint.h>

#include "common/stats.h"

/* In the low half of the mode's state, beside RT_COLLECT_*: each burst is an event for a tracer
 * beyond USDT. */
#define RT_COLLECT_TRACE (1u << 31)
/* Collectors that need hooks. */
#define RT_COLLECT_HOOKS \
	(RT_COLLECT_ALL & ~(RT_COLLECT_POOLS | RT_COLLECT_XSTATS | RT_COLLECT_DEVICES))

/* In the mode's latency_every, beside a number above 1: times of packets without the flag are
 * inferred, see latency.c. If every packet is timed they are inferred anyway. */
#define RT_STAT_INFER (1u << 31)

/* Current work of hooks. A cache line of its own that polling threads only read. */
struct rt_stat_mode {
	/* Low half: RT_COLLECT_*, high half: changes at every switching, and whenever hooks may
	 * have more to do than counting. The fields below are complete when a thread has read it
	 * (release; pairs with the acquires in visit(), rt_stat_rx_quick()). */
	uint64_t state;
	uint32_t busy_generation, gaps_generation,
		addresses_generation; /* change when that collector is switched on */
	uint32_t latency_generation;
	uint32_t latency_every; /* see RT_STAT_INFER */
	uint32_t window;        /* number of the current one; changes at any time */
	int32_t latency_field;  /* offset in the mbuf */
	/* Slots below have their memory in the current statistics; changes at any time.
	 * Relaxed: hooks compare it only, and read their row by its own state. */
	uint32_t threads;
	uint64_t latency_flag;   /* in ol_flags */
	uint64_t latency_on_tsc; /* nothing older is a time stamp of ours */
	uint64_t wanted;         /* run of addresses; changes at any time */
} __attribute__((aligned(RT_CACHE_LINE)));
static_assert(sizeof(struct rt_stat_mode) == RT_CACHE_LINE, "one line");

extern struct rt_stat_mode rt_stat_mode;

#endif
