/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Monitors: one statistics segment (common/stats.h) for all of them, which exists while one is
 * attached. stats.c switches collectors, burst.c counts in the polling threads, the others keep the
 * tables.
 */
#ifndef RINGTAP_PROBE_MONITOR_STATS_H
#define RINGTAP_PROBE_MONITOR_STATS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/clock.h"
#include "common/stats.h"
#include "common/proto.h"
#include "probe/dpdk/ports.h"
#include "mode.h"
#include "rows.h"

/* The statistics that hooks use now; NULL: none. */
extern struct rt_stats *rt_stat_current;

/* Blocks that threads take one after the other. */
struct rt_stat_supply {
	uint32_t ready;   /* those below are populated; control thread */
	uint32_t starved; /* since then a thread has found none */
};

struct rt_stat_port_state {
	uint32_t generation; /* the port id's, see ports.h */
	uint32_t queues[2];  /* by direction: queues below have their site */
	uint8_t mac[6];
	bool returned;               /* it has been gone: its sites may be there */
	struct rt_port_stats before; /* before the port was removed and came back */
	/* The driver's counters as last reported to tracers. */
	bool reported;
	uint64_t imissed, ierrors, rx_nombuf;
	uint32_t epoch;
	uint64_t unsent; /* modulo 2^64: handed over less opackets, as far as it was certain */
	uint32_t xstat_count, xstat_queues[2]; /* when their names were read; 0: not yet */
	uint32_t xstats_beyond;                /* without an entry */
	uint64_t polls_ns; /* on_ns of the count of what was handed over; 0: none */
};

struct rt_stats {
	struct rt_stat_row *rows; /* by thread slot; sparse, see sparse.h */
	struct rt_stat_supply hook_supply, pair_supply, sampler_supply, log_supply;
	uint64_t no_row_polls; /* hook calls of threads from threads_ready on; atomic */
	uint32_t pair_keys[RT_STAT_PAIRS];
	uint32_t pair_generations[RT_STAT_PAIRS]; /* latency_generation that min and max are of */
	/* The segment. */
	struct rt_stat_header *header;
	struct rt_seg_clock *clock;
	struct rt_stat_port *ports;
	struct rt_stat_thread *threads;
	struct rt_stat_hook *hooks;
	struct rt_stat_pair *pairs;
	struct rt_stat_pool *pools;
	struct rt_stat_ring *rings;
	struct rt_stat_xstat *xstats;
	struct rt_stat_device *devices;
	struct rt_stat_lcore *lcores;
	struct rt_stat_sampler *samplers;
	struct rt_stat_log *logs;
	/* Control thread. */
	int fd;
	uint64_t size; /* bytes */
	struct rt_stat_site *sites;
	uint32_t site_count;    /* ever */
	uint32_t sites_ready;   /* those below have their place in the rows, … */
	uint64_t row_bytes;     /* … bytes of it that are populated, … */
	uint32_t threads_ready; /* … in the rows of the slots below */
	bool linked;
	struct rt_stat_port_state port_state[RT_STAT_PORTS];
	uint32_t beyond[RT_MAX_PORTS]; /* generation + 1 of ports that found no entry */
	uint64_t no_thread_base;
	uint64_t infer_certain, infer_unstamped; /* packets, when one was last timed for certain */
	uint32_t infer_generation;               /* latency_generation that they are of */
	uint64_t begun_ns;                       /* since the epoch */
	uint64_t on_ns[RT_COLLECT_COUNT]; /* when each collector was switched on last, since the
					   epoch */
	struct rt_grace grace;
	struct rt_stats *next; /* waiting for its grace period */
};

/* A client that keeps collectors on. */
struct rt_monitor {
	bool attached;
	uint32_t collectors;
	uint32_t latency_every; /* 1 or more */
	struct rt_monitor *next;
};

/* For all functions that follow the control lock is held. */

/* Keeps collectors on for m, or changes which; every 0 is 1. On error a sentence is in err
 * (RT_TEXT_LEN bytes) and nothing has changed. */
int rt_stats_attach(struct rt_monitor *m, uint32_t collectors, uint32_t every,
	const struct rt_clock_line *clock, char *err);
void rt_stats_detach(struct rt_monitor *m, const struct rt_clock_line *clock);

/* Changes the mode's latency_every. */
void rt_stat_set_every(uint32_t every);

/* Switches to inferred latencies if a sample would otherwise have none. */
void rt_stats_infer(struct rt_stats *f);

/* Called every 50 ms or so. */
void rt_stats_tick(uint64_t now_ms, const struct rt_clock_line *clock);

/* Frees segments whose grace period is over. True: none is left. */
bool rt_stats_reclaim(void);

/* Calls of hooks by threads without a slot, while there are statistics; atomic. */
extern uint64_t rt_stat_no_thread;

#endif
