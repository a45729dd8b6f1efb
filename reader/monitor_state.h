/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside of a monitor: what it remembers from snapshot to snapshot, and the parts of a snapshot. */
#ifndef RINGTAP_READER_MONITOR_STATE_H
#define RINGTAP_READER_MONITOR_STATE_H

#include "common/clock.h"
#include "conn.h"
#include "stats.h"
#include "ringtap/monitor.h"

/* To whom a block belongs, as it was at first sight: it never changes. */
struct rt_owner {
	uint32_t block;         /* index in its table */
	uint32_t thread;        /* index in the snapshot */
	uint32_t port, rx_port; /* likewise */
	uint16_t queue;
	uint8_t direction;
};

/* A thread and what its arrays point to. Copies need rt_thread_link(). */
struct rt_thread {
	struct ringtap_thread_stats pub;
	struct ringtap_gap gaps[RT_STAT_WINDOWS * RT_STAT_WORST];
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
	struct rt_stats fig;
	bool dead;            /* the connection has ended */
	unsigned collectors;  /* that we asked for */
	unsigned owed, asked; /* answers to come, after one came too late; what for */
	struct rt_clock_line line;
	uint64_t open_tsc, open_mono_ns;
	uint32_t newest_window;
	char names[RT_STAT_PORTS][RT_NAME_LEN]; /* of ports; empty: ethdev's, as far as known */
	uint8_t name_tries[RT_STAT_PORTS];
	/* By index in the snapshots, in the order of first sight. */
	uint32_t slot_count; /* entries of threads that may be in use */
	uint32_t port_count, pool_count, thread_count, queue_count, pair_count, sampler_count;
	struct rt_thread threads[RT_STAT_THREADS]; /* as last seen */
	struct rt_owner queues[RT_STAT_HOOKS], pairs[RT_STAT_PAIRS], samplers[RT_STAT_SAMPLERS];
	/* By index in the segment's tables. */
	bool slot_met[RT_STAT_THREADS], hook_met[RT_STAT_HOOKS], pair_met[RT_STAT_PAIRS],
		sampler_met[RT_STAT_SAMPLERS];
	uint32_t slot_thread[RT_STAT_THREADS];
};

/* What ringtap_monitor_read() gives out, with what hangs on it. */
struct rt_snapshot {
	struct ringtap_snapshot pub;
	uint64_t mono_ns;
	/* What the arrays of pub begin with. */
	struct ringtap_port_stats *ports;
	struct rt_thread *threads;
	struct ringtap_queue_stats *queues;
	struct ringtap_pair_stats *pairs;
	struct rt_pool *pools;
	struct ringtap_sample_run *sample_runs;
	uint64_t *buckets; /* RT_STAT_BUCKETS of each pair */
	struct ringtap_sample *samples;
};

/* snapshot.c: the snapshot of the moment, whatever became of the connection. 0, -ENOMEM, -EBADMSG.
 */
int rt_snapshot_take(struct ringtap_monitor *mon, struct rt_snapshot **out);

/* Ticks per second, measured since the monitor was opened: DPDK rounds the frequency, and the
 * probe's clock line runs slower or faster while it follows the time. */
uint64_t rt_measure_hz(const struct ringtap_monitor *mon, uint64_t tsc, uint64_t mono_ns);

/* monitor_who.c: whose the blocks are; finds new threads and brings all up to date. 0, -ENOMEM,
 * -EBADMSG. */
int rt_who_update(struct ringtap_monitor *mon, uint64_t tsc_hz);

/* monitor_thread.c: one thread slot. False: nobody has it, or it changes hands all the time. */
bool rt_thread_read(
	const struct ringtap_monitor *mon, uint32_t slot, uint64_t tsc_hz, struct rt_thread *out);
uint32_t rt_newest_window(const struct rt_stats *fig, uint32_t slots);

/* Copies words that their writer may change meanwhile; bytes is a multiple of 8. Acquires, so that
 * a sequence number read afterwards is not older. */
void rt_copy_words(void *dst, const void *src, size_t bytes);

uint64_t rt_ticks_ns(uint64_t ticks, uint64_t tsc_hz);

#endif
