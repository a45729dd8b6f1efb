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
#include "probe/hook/thread.h"

/* In the low half of the mode's state, beside RT_COLLECT_*: each burst is an event for a tracer
 * beyond USDT. */
#define RT_COLLECT_TRACE (1u << 31)
#define RT_COLLECT_HOOKS (RT_COLLECT_ALL & ~RT_COLLECT_POOLS) /* collectors that need hooks */

/* In the mode's latency_every, beside a number above 1: times of packets without the flag are
 * inferred, see latency.c. If every packet is timed they are inferred anyway. */
#define RT_STAT_INFER (1u << 31)

struct rt_hook;

/* What hooks do now. A cache line of its own that polling threads only read. */
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

/* The statistics that hooks use now; NULL: none. */
extern struct rt_stats *rt_stat_current;

/* What a polling thread keeps from call to call; its own. */
struct rt_stat_own {
	uint32_t switching; /* high half of the mode's state that it has followed */
	uint32_t kind;      /* of its last RX poll: enum rt_stat_kind */
	uint64_t packets;   /* of the current busy period */
	uint64_t since_tsc; /* start of the period */
	/* The control thread reads the last poll, see rt_stats_look_at_polls(). */
	uint64_t last_tsc;   /* of its last RX poll, 0: unknown */
	uint64_t last_epoch; /* of the thread, in that poll */
	uint32_t last_count; /* packets, … */
	uint32_t last_where; /* … port and queue of it */
	uint32_t window;     /* number, 0: none yet */
	uint32_t countdown;  /* packets until one is timed */
	uint64_t gap_min;    /* shorter ones do not get into the window */
	/* The fields below are used less often. */
	struct rt_stat_thread *pub;
	uint64_t burst_min;
	uint32_t busy_generation, gaps_generation, addresses_generation;
	struct rt_stat_sampler *sampler;
	struct rt_stat_run *filling; /* NULL: none */
	uint64_t run;                /* number of the last one begun */
	uint64_t no_block_polls, no_pair_packets;
	struct rt_stat_pair *pair; /* used last */
	uint32_t pair_key;         /* of it: receiving port | sending port << 16 */
	uint32_t pair_generation;  /* as pair_generations of it */
	uint32_t pair_count;
	uint8_t pairs[RT_STAT_PAIRS]; /* its own ones */
} __attribute__((aligned(128)));

enum rt_stat_kind { RT_STAT_NONE, RT_STAT_IDLE, RT_STAT_BUSY };

/* The short way of a thread through a hook that has nothing to do but to count a burst. Valid while
 * state is that of the mode; only its thread writes it. */
struct rt_stat_quick {
	uint64_t state;
	struct rt_stat_hook *block; /* NULL: none yet */
	struct rt_stat_own *own;
	uint32_t max_burst; /* requested so far; more is counted on the long path */
};

#define RT_STAT_ROW (128u << 10) /* bytes */
#define RT_STAT_SITES \
	((uint32_t)((RT_STAT_ROW - sizeof(struct rt_stat_own)) / sizeof(struct rt_stat_quick)))

/* All of one thread; populated as far as there are sites. */
struct rt_stat_row {
	struct rt_stat_own own;
	struct rt_stat_quick quick[RT_STAT_SITES];
};
static_assert(sizeof(struct rt_stat_row) == RT_STAT_ROW, "rows are found by a shift");

/* What a hook finds: its place in the stats. */
struct rt_stat_site {
	struct rt_stat_quick *column; /* in the first row; NULL: not populated yet, or no room */
	struct rt_stat_row *rows;     /* by thread slot */
	struct rt_stats *stats;
	uint32_t where; /* port_index | queue << 16 */
	uint8_t direction;
	/* Control thread. */
	bool linked;
	uint32_t number;
	struct rt_hook *hook;
	struct rt_stat_site *next;
} __attribute__((aligned(RT_CACHE_LINE)));

/* The thread's place in a column. */
static inline struct rt_stat_quick *rt_stat_quick_of(
	struct rt_stat_quick *column, const struct rt_thread *t)
{
	return (void *)((uint8_t *)column + (uint64_t)t->index * RT_STAT_ROW);
}

/* Blocks that threads take one after the other. */
struct rt_stat_supply {
	uint32_t ready;   /* those below are populated; control thread */
	uint32_t starved; /* since then a thread has found none */
};

struct rt_stat_port_state {
	uint32_t generation; /* of the port id, see ports.h */
	uint32_t queues[2];  /* by direction: queues below have their site */
	uint8_t mac[6];
	bool returned;               /* it has been gone: its sites may be there */
	struct rt_port_stats before; /* before the port was removed and came back */
	/* The driver's counters as last reported to tracers. */
	bool reported;
	uint64_t imissed, ierrors, rx_nombuf;
	uint32_t epoch;
	uint64_t unsent;   /* modulo 2^64: handed over less opackets, as far as it was certain */
	uint64_t polls_ns; /* on_ns of the count of what was handed over; 0: none */
};

struct rt_stats {
	struct rt_stat_row *rows; /* by thread slot; sparse, see sparse.h */
	struct rt_stat_supply hook_supply, pair_supply, sampler_supply;
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
	struct rt_stat_sampler *samplers;
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
	uint32_t beyond[RTE_MAX_ETHPORTS]; /* generation + 1 of ports that found no entry */
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

/* Parts. */
struct rt_stats *rt_stats_create(const struct rt_clock_line *clock); /* NULL: no memory */
void rt_stats_free(struct rt_stats *f);
void rt_stats_link(struct rt_stats *f, bool on); /* all its sites */
/* Populates the memory that polling threads need for the collectors that are on. Touches memory
 * and counts of f only: needs no lock as long as f is not freed. */
void rt_stats_supply(struct rt_stats *f, uint32_t on);
/* Lets threads use what rt_stats_supply() has populated; f is the current one. */
void rt_stats_use_supply(struct rt_stats *f);
void rt_stats_scan_ports(struct rt_stats *f);
void rt_stats_refresh_ports(struct rt_stats *f, uint64_t now_ns);
void rt_stats_refresh_threads(struct rt_stats *f, uint64_t now_ns);
void rt_stats_refresh_pools(struct rt_stats *f);
void rt_stats_look_at_polls(struct rt_stats *f);

/* A reading of a driver's counters, and the packets that the port's TX hooks had counted before and
 * after it. */
struct rt_stat_reading {
	struct rt_port_stats driver;
	uint64_t tx_before, tx_after;
};

/* probe/monitor/trace_ports.c: reports what was lost or refused since the reading before. */
void rt_trace_ports(struct rt_stats *f, uint32_t index, const struct rt_stat_reading *r);

#endif
