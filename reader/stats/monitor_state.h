/* SPDX-License-Identifier: BSD-3-Clause */
/* The state of a monitor between snapshots, and the parts of a snapshot. */
#ifndef RINGTAP_READER_STATS_MONITOR_STATE_H
#define RINGTAP_READER_STATS_MONITOR_STATE_H

#include "common/clock.h"
#include "reader/conn/conn.h"
#include "stats.h"
#include "ringtap/monitor.h"

/* The owner of a block, as read first: it never changes. */
struct rt_owner {
	uint32_t block;         /* index in its table */
	uint32_t thread;        /* index in the snapshot */
	uint32_t port, rx_port; /* the same */
	uint16_t queue;
	uint8_t direction, size; /* size: as in rt_stat_pair */
};

/* A thread with its arrays. Copies need rt_thread_link(). */
struct rt_thread {
	struct ringtap_thread_stats pub;
	struct ringtap_gap gaps[RT_STAT_WINDOWS * RT_STAT_WORST + 1]; /* and the one that lasts */
	struct ringtap_microburst microbursts[RT_STAT_WINDOWS * RT_STAT_WORST];
};

static inline void rt_thread_link(struct rt_thread *t)
{
	t->pub.gaps = (struct ringtap_array){t->gaps, sizeof(t->gaps[0])};
	t->pub.microbursts = (struct ringtap_array){t->microbursts, sizeof(t->microbursts[0])};
}

struct rt_pool {
	struct ringtap_pool_stats pub;
	uint16_t cache[RT_STAT_LCORES];
};

struct ringtap_monitor {
	struct ringtap_conn *conn;
	struct rt_stats stats;
	bool dead;           /* the connection has ended */
	unsigned collectors; /* requested ones */
	unsigned owed;       /* answers outstanding after a timeout */
	unsigned requested;  /* collectors of the last request */
	struct rt_clock_line line;
	uint64_t open_tsc, open_mono_ns;
	uint32_t newest_window;
	char names[RT_STAT_PORTS]
		  [RT_NAME_LEN]; /* names of ports in Open vSwitch; empty: none known */
	uint8_t name_tries[RT_STAT_PORTS];
	/* By index in the snapshots, in the order of discovery. */
	uint32_t slot_count; /* entries of threads that may be in use */
	uint32_t port_count, pool_count, ring_count, xstat_count, device_count, lcore_count,
		thread_count, queue_count, pair_count, sampler_count, log_count;
	struct rt_thread threads[RT_STAT_THREADS]; /* as last read */
	struct rt_owner queues[RT_STAT_HOOKS], pairs[RT_STAT_PAIRS], samplers[RT_STAT_SAMPLERS],
		logs[RT_STAT_LOGS];
	/* By index in the segment's tables. */
	bool slot_met[RT_STAT_THREADS], hook_met[RT_STAT_HOOKS], pair_met[RT_STAT_PAIRS],
		sampler_met[RT_STAT_SAMPLERS], log_met[RT_STAT_LOGS];
	uint32_t slot_thread[RT_STAT_THREADS];
	uint64_t log_read[RT_STAT_LOGS];      /* entries */
	uint64_t no_log_read;                 /* intervals that found no log */
	struct rt_stat_interval *log_entries; /* room for a log; NULL: not needed yet */
};

/* Result of ringtap_monitor_read(), with its arrays. */
struct rt_snapshot {
	struct ringtap_snapshot pub;
	uint64_t mono_ns;
	/* The beginnings of the arrays of pub. */
	struct ringtap_port_stats *ports;
	struct rt_thread *threads;
	struct ringtap_queue_stats *queues;
	struct ringtap_pair_stats *pairs;
	struct rt_pool *pools;
	struct ringtap_ring_stats *rings;
	struct ringtap_xstat_stats *xstats;
	struct ringtap_device_stat *devices;
	struct ringtap_lcore_stats *lcores;
	struct ringtap_sample_run *sample_runs;
	uint64_t *buckets; /* RT_STAT_BUCKETS of each pair */
	struct ringtap_sample *samples;
};

/* snapshot.c: takes a snapshot, also after the connection has ended. 0, -ENOMEM, -EBADMSG. */
int rt_snapshot_take(struct ringtap_monitor *mon, struct rt_snapshot **out);

/* Ticks per second, measured since the monitor was opened: DPDK rounds the frequency, and the
 * probe's clock line runs faster or slower while it is corrected. */
uint64_t rt_measure_hz(const struct ringtap_monitor *mon, uint64_t tsc, uint64_t mono_ns);

/* monitor_owners.c: finds new threads and the owners of blocks, and updates all of them. 0,
 * -ENOMEM, -EBADMSG. */
int rt_owners_update(struct ringtap_monitor *mon, uint64_t tsc_hz);

/* monitor_thread.c: reads one thread slot. False: it is free, or its owner keeps changing. */
bool rt_thread_read(
	const struct ringtap_monitor *mon, uint32_t slot, uint64_t tsc_hz, struct rt_thread *out);
uint32_t rt_newest_window(const struct rt_stats *stats, uint32_t slots);

/* intervals.c: what the logs have belongs to the time before. */
void rt_intervals_skip(struct ringtap_monitor *mon);

/* Copies words while their writer may change them; bytes is a multiple of 8. Acquires, so that a
 * sequence number read afterwards is not older. */
void rt_copy_words(void *dst, const void *src, size_t bytes);

#endif
