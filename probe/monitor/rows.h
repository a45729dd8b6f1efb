/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory of polling threads: rows by thread, columns by hook. */
#ifndef RINGTAP_PROBE_MONITOR_ROWS_H
#define RINGTAP_PROBE_MONITOR_ROWS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/stats.h"
#include "probe/hook/thread.h"

struct rt_hook;

/* State that a polling thread keeps from call to call; its own. */
struct rt_stat_own {
	uint32_t switching; /* high half of the mode's state that it has followed */
	uint32_t kind;      /* enum rt_stat_kind: its last RX poll */
	uint64_t packets;   /* packets in the current busy period */
	uint64_t since_tsc; /* start of the period */
	/* The control thread reads the last poll, see rt_stats_look_at_polls(). */
	uint64_t last_tsc;   /* time of its last RX poll; 0: unknown */
	uint64_t last_epoch; /* the thread's epoch in that poll */
	uint32_t last_count; /* packets, … */
	uint32_t last_where; /* … port and queue of it */
	uint32_t window;     /* number, 0: none yet */
	uint32_t countdown;  /* packets until one is timed */
	uint64_t gap_min;    /* longer ones get into the window or into the log */
	/* The fields below are used less often. */
	struct rt_stat_thread *pub;
	struct rt_stats *stats;
	uint64_t worst_min;      /* longer gaps get into the window */
	uint64_t log_min;        /* intervals of fewer cycles do not get into the log */
	struct rt_stat_log *log; /* NULL: none yet */
	uint64_t burst_min;
	uint32_t busy_generation, gaps_generation, addresses_generation;
	struct rt_stat_sampler *sampler;
	struct rt_stat_run *filling; /* NULL: none */
	uint64_t run;                /* number of the last one begun */
	uint64_t no_block_polls, no_pair_packets, no_log_intervals;
	struct rt_stat_pair *pair; /* used last */
	uint32_t pair_key;         /* that pair's receiving port | sending port << 16 */
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

/* Place of a hook in the stats. */
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

#endif
