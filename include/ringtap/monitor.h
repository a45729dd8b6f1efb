/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libringtap: how a DPDK application polls, how long packets stay in it, how its memory behaves.
 *
 * A monitor is a connection that keeps collectors switched on in the application; they are off
 * again when no monitor needs them. ringtap_monitor_read() takes a snapshot of all counters.
 * They only grow: rates are differences of two snapshots. Any number of monitors may be attached.
 *
 * Errors, threads and ownership as in reader.h.
 */
#ifndef RINGTAP_MONITOR_H
#define RINGTAP_MONITOR_H

#include "ringtap/reader.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Collectors. What each costs: docs/performance.md. */
enum {
	RINGTAP_POLLS = 1 << 0,     /* burst sizes, empty polls */
	RINGTAP_BYTES = 1 << 1,     /* bytes on the wire */
	RINGTAP_BUSY = 1 << 2,      /* busy and idle cycles of the threads, microbursts */
	RINGTAP_GAPS = 1 << 3,      /* longest iterations */
	RINGTAP_LATENCY = 1 << 4,   /* from receive to send */
	RINGTAP_ADDRESSES = 1 << 5, /* samples of buffer addresses */
	RINGTAP_POOLS = 1 << 6,     /* mempools, rings */
	RINGTAP_INTERVALS = 1 << 7, /* each gap and each busy period of GAPS and BUSY */
	/* With RINGTAP_LATENCY: a pair for each sending queue and class of lengths. */
	RINGTAP_LATENCY_SPLIT = 1 << 8,
	RINGTAP_XSTATS = 1 << 9,   /* extended statistics of drivers; earlier probes have none */
	RINGTAP_DEVICES = 1 << 10, /* event, crypto and DMA devices; the same */
};

#define RINGTAP_BURSTS 512 /* burst sizes that are counted one by one: 0 … 512 */

/* ---- Monitors: switch collectors on ---------------------------------------------------------- */

struct ringtap_monitor;

struct ringtap_monitor_options {
	size_t size;
	unsigned collectors;    /* RINGTAP_POLLS, …; 0: ports only */
	unsigned latency_every; /* times one packet in N; 0 or 1: every one. Of several
				 * monitors the smallest number counts. */
	int timeout_ms;         /* as in struct ringtap_conn_options */
	int awake_only;         /* as there */
};

/* Attaches to the application whose runtime folder is dir and switches collectors on. The caller
 * closes *out. Errors as ringtap_conn_open(), and -EOPNOTSUPP: its probe is older than this
 * library.
 */
int ringtap_monitor_open(struct ringtap_monitor **out, const char *dir,
	const struct ringtap_monitor_options *opts, char *err, size_t errlen);
void ringtap_monitor_close(struct ringtap_monitor *mon);

/* Changes what this monitor keeps switched on. opts as for ringtap_monitor_open(); a timeout_ms
 * other than 0 holds from then on. 0, -EINVAL, -E2BIG, -ECONNRESET: the application is gone,
 * -ETIMEDOUT, … */
int ringtap_monitor_switch(struct ringtap_monitor *mon, const struct ringtap_monitor_options *opts,
	char *err, size_t errlen);

/* Who the application is; as ringtap_conn_app(). */
int ringtap_monitor_app(const struct ringtap_monitor *mon, struct ringtap_app_info *out);

/* A descriptor that becomes readable when the application ends or throws us out. */
int ringtap_monitor_fd(const struct ringtap_monitor *mon);

/* ---- Snapshots: the statistics of an application --------------------------------------------- */

struct ringtap_port_stats {
	char name[RINGTAP_NAME_LEN];
	char driver[RINGTAP_NAME_LEN];
	uint16_t port_id;
	bool link_up, gone;
	uint32_t link_mbps; /* 0: unknown */
	uint32_t rx_queues, tx_queues, rx_descriptors, tx_descriptors, mtu;
	uint64_t read_ns; /* since the epoch, when the driver's counters were read; 0: not yet */
	uint64_t ipackets, opackets, ibytes, obytes, imissed, ierrors, rx_nombuf, oerrors;
	char device[RINGTAP_NAME_LEN]; /* ethdev's name; name is Open vSwitch's where it has one */
	/* Packets that the application had passed to TX when the reading of the driver's counters
	 * began, and when it had ended. After ringtap_snapshot_since(): the least and the most that
	 * can have been passed between the two readings. */
	uint64_t tx_before, tx_after;
	/* How often the driver's counters have begun again, because the application reset them or
	 * the port was removed and came back. They are carried over, but lack what was counted
	 * after the last reading of an epoch: a difference over epochs (not 0 after
	 * ringtap_snapshot_since()) is the least that the driver counted, and of the packets
	 * passed to TX tx_unknown may have been sent beside opackets. */
	uint32_t epoch;
	uint64_t tx_unknown;
	/* A stopped port refuses all packets; no hook and no driver counts them. */
	uint64_t stopped_ns; /* since the epoch, when it was found to be stopped; 0: it runs */
	bool used;           /* packets have passed it */
};

struct ringtap_gap {
	uint64_t start_ns; /* since the epoch */
	uint64_t cycles, ns;
	uint32_t packets; /* that the poll before it brought; 0: there was no work */
	uint32_t port;    /* index in ports, RINGTAP_NO_INDEX: unknown */
	uint16_t queue;
	bool open; /* it lasts: how long it has lasted so far; only those of 100 ms and more */
};

struct ringtap_microburst {
	uint64_t start_ns;
	uint64_t cycles, ns;
	uint64_t packets;
};

/* A slot is reused after its thread has ended: the generation changes, the counters go on. */
struct ringtap_thread_stats {
	uint32_t slot, generation; /* together they identify a thread of the application */
	bool alive;
	uint32_t lcore; /* UINT32_MAX: not an EAL thread */
	uint32_t tid;   /* in the application's PID namespace, 0: unknown */
	uint32_t cpu;
	char name[16];
	/* The kernel's: time on a CPU, time runnable without one, involuntary context switches;
	 * read at read_ns since the epoch (0: not read yet). */
	uint64_t cpu_ns, wait_ns, preempted, read_ns;
	uint64_t busy_cycles, idle_cycles; /* includes the current period */
	uint64_t busy_periods, busy_period_packets[40];
	uint64_t gaps_busy[48], gaps_idle[48]; /* by log2(cycles) */
	/* The worst of about the last 16 seconds. They live as long as the snapshot. */
	uint32_t gap_count, microburst_count;
	struct ringtap_array gaps;        /* longest first: ringtap_thread_gap() */
	struct ringtap_array microbursts; /* most packets first: ringtap_thread_microburst() */
	/* Its last RX poll, with RINGTAP_GAPS; the probe looks 20 times a second. */
	uint64_t last_poll_ns; /* since the epoch; 0: unknown */
	uint64_t quiet_ns;     /* that it had not polled when the probe looked */
	uint32_t last_poll_packets, last_poll_port; /* as in a gap */
	uint16_t last_poll_queue;
	bool last_poll_holds; /* it has called no TX function since */
};

/* One thread at one port, queue and direction. */
struct ringtap_queue_stats {
	uint32_t thread, port; /* indices in threads and ports */
	uint16_t queue;
	uint16_t direction; /* RINGTAP_RX or RINGTAP_TX */
	uint32_t max_burst;
	uint64_t polls, empty_polls, packets; /* from the histogram */
	uint64_t bytes, byte_packets;
	uint64_t big_polls,
		big_packets; /* bursts of more than RINGTAP_BURSTS packets; in polls, packets */
	uint64_t burst[RINGTAP_BURSTS + 1];
};

struct ringtap_pair_stats {
	uint32_t thread, rx_port, tx_port; /* rx_port RINGTAP_NO_INDEX: untimed packets only */
	/* Whether its packets had lost their mark: that they were received is likely, but not
	 * certain, so do not mix them with others (docs/statistics.md). */
	uint32_t inferred;
	uint64_t count, sum; /* packets (from the histogram), cycles */
	uint64_t min, max;   /* cycles, since the collector was switched on; valid if count */
	uint64_t unstamped, shared;
	const uint64_t
		*bucket; /* ringtap_latency_buckets() of them; lives as long as the snapshot */
	/* With RINGTAP_LATENCY_SPLIT of any monitor; else RINGTAP_NO_INDEX, 0 and UINT32_MAX. */
	uint32_t tx_queue, bytes_from, bytes_to;
};

enum ringtap_memory { RINGTAP_MEMORY_UNKNOWN, RINGTAP_MEMORY_DPDK, RINGTAP_MEMORY_EXTERNAL };

struct ringtap_pool_stats {
	char name[RINGTAP_NAME_LEN];
	char ops[32];
	uint64_t address;
	bool gone, pinned_external;
	enum ringtap_memory memory;
	uint32_t size, object_bytes, buffer_bytes, chunks, cache_size;
	int32_t socket;
	uint64_t page_bytes, base, span;
	uint32_t available, in_caches, lowest; /* available, lowest: UINT32_MAX: unknown */
	uint32_t cache_count;                  /* caches of lcores 0 … cache_count - 1 */
	const uint16_t *cache;                 /* objects in each; lives as long as the snapshot */
};

#define RINGTAP_RING_RECENT 32 /* samples of a ring in a snapshot */

/* A ring (rte_ring) that is not a mempool's; the probe samples its level about every 50 ms. */
struct ringtap_ring_stats {
	char name[RINGTAP_NAME_LEN];
	bool gone;
	uint32_t capacity;                    /* objects that fit */
	uint32_t used;                        /* objects at the last sample */
	uint32_t highest;                     /* the same, at any sample since the first monitor */
	uint64_t samples;                     /* samples so far */
	uint32_t recent[RINGTAP_RING_RECENT]; /* the last ones, newest first */
};

/* An extended statistic (xstat) of a port's driver, read about twice a second. Most of them are
 * counters, which may begin again. */
struct ringtap_xstat_stats {
	char name[RINGTAP_NAME_LEN];
	uint32_t port;    /* index in ports, RINGTAP_NO_INDEX: unknown */
	bool gone;        /* with its port, or the driver has no such statistic any more */
	uint64_t value;   /* that of the last reading, also if the port was stopped since then */
	uint64_t read_ns; /* since the epoch; 0: none yet */
};

enum ringtap_device_kind { RINGTAP_EVENTDEV, RINGTAP_CRYPTODEV, RINGTAP_DMADEV };
enum ringtap_device_part {
	RINGTAP_PART_DEVICE,
	RINGTAP_PART_PORT,    /* an eventdev's */
	RINGTAP_PART_QUEUE,   /* the same */
	RINGTAP_PART_CHANNEL, /* virtual channel of a dmadev */
};

/* A statistic of a device, or of a part of it, as DPDK's library has it, read about twice a second
 * while the device is in use. */
struct ringtap_device_stat {
	char device[RINGTAP_NAME_LEN];
	char name[RINGTAP_NAME_LEN];
	uint32_t kind;    /* enum ringtap_device_kind */
	uint32_t id;      /* the device's in its library */
	uint32_t part;    /* enum ringtap_device_part */
	uint32_t number;  /* the part's; 0: the device */
	bool gone;        /* the device is not in use any more, or has no such statistic */
	uint64_t value;   /* that of the last reading */
	uint64_t read_ns; /* since the epoch; 0: none yet */
};

/* Cycles that an application counts of an lcore (rte_lcore_register_usage_cb(), DPDK 23.03 and
 * later), read about twice a second while RINGTAP_BUSY is on. */
struct ringtap_lcore_stats {
	uint32_t lcore;
	uint64_t total_cycles, busy_cycles;
	uint64_t read_ns; /* since the epoch; 0: unknown */
};

struct ringtap_sample {
	uint64_t address, iova;
	uint32_t tsc;  /* low half */
	uint32_t port; /* index in ports, RINGTAP_NO_INDEX: unknown */
	uint16_t queue;
};

/* Packets that one thread received one after the other. Snapshots have them only of monitors that
 * asked for RINGTAP_ADDRESSES; oldest of a thread first. */
struct ringtap_sample_run {
	uint32_t thread;
	uint64_t number; /* counts within the thread; snapshots repeat those that are still there */
	uint64_t start_ns;
	uint64_t count;
	struct ringtap_array samples; /* ringtap_sample_run_at(); live as long as the snapshot */
};

/* The library allocates it: fields may be added at its end, and at the end of its entries. Reach
 * entries by the functions below. */
struct ringtap_snapshot {
	uint64_t taken_ns;    /* since the epoch */
	uint64_t taken_tsc;   /* ticks */
	uint64_t interval_ns; /* after ringtap_snapshot_since(): the time between the two; else 0 */
	uint64_t tsc_hz;      /* measured against the system's clock where it could be */
	unsigned collectors;  /* on at the moment, ours and others' */
	unsigned latency_every;
	uint32_t switched; /* differs from an earlier snapshot's: collectors changed in between */
	uint64_t no_thread_polls, no_block_polls, no_pair_packets; /* what could not be counted */
	uint32_t port_count, thread_count, queue_count, pair_count, pool_count, sample_run_count;
	struct ringtap_array ports, threads, queues, pairs, pools, sample_runs;
	/* Ports and pools that are there and are not shown: the application has had more of them,
	 * one after the other, than there is room for. */
	uint32_t ports_beyond, pools_beyond;
	uint64_t
		taken_mono_ns; /* CLOCK_MONOTONIC: taken_ns may be set back between two snapshots */
	uint32_t ring_count, rings_beyond;
	struct ringtap_array rings;
	uint32_t xstat_count, xstats_beyond;
	struct ringtap_array xstats;
	uint32_t device_stat_count, device_stats_beyond;
	struct ringtap_array device_stats;
	uint32_t lcore_count;
	struct ringtap_array lcores; /* entry i is lcore i */
};

/* Entry i of a snapshot, a thread or a run of samples; i is less than the count beside it. Lives as
 * long as the snapshot. */
RINGTAP_INLINE const struct ringtap_port_stats *ringtap_snapshot_port(
	const struct ringtap_snapshot *s, uint32_t i)
{
	return (const struct ringtap_port_stats *)ringtap_array_at(&s->ports, i);
}

RINGTAP_INLINE const struct ringtap_thread_stats *ringtap_snapshot_thread(
	const struct ringtap_snapshot *s, uint32_t i)
{
	return (const struct ringtap_thread_stats *)ringtap_array_at(&s->threads, i);
}

RINGTAP_INLINE const struct ringtap_queue_stats *ringtap_snapshot_queue(
	const struct ringtap_snapshot *s, uint32_t i)
{
	return (const struct ringtap_queue_stats *)ringtap_array_at(&s->queues, i);
}

RINGTAP_INLINE const struct ringtap_pair_stats *ringtap_snapshot_pair(
	const struct ringtap_snapshot *s, uint32_t i)
{
	return (const struct ringtap_pair_stats *)ringtap_array_at(&s->pairs, i);
}

RINGTAP_INLINE const struct ringtap_pool_stats *ringtap_snapshot_pool(
	const struct ringtap_snapshot *s, uint32_t i)
{
	return (const struct ringtap_pool_stats *)ringtap_array_at(&s->pools, i);
}

RINGTAP_INLINE const struct ringtap_ring_stats *ringtap_snapshot_ring(
	const struct ringtap_snapshot *s, uint32_t i)
{
	return (const struct ringtap_ring_stats *)ringtap_array_at(&s->rings, i);
}

RINGTAP_INLINE const struct ringtap_xstat_stats *ringtap_snapshot_xstat(
	const struct ringtap_snapshot *s, uint32_t i)
{
	return (const struct ringtap_xstat_stats *)ringtap_array_at(&s->xstats, i);
}

RINGTAP_INLINE const struct ringtap_device_stat *ringtap_snapshot_device_stat(
	const struct ringtap_snapshot *s, uint32_t i)
{
	return (const struct ringtap_device_stat *)ringtap_array_at(&s->device_stats, i);
}

RINGTAP_INLINE const struct ringtap_lcore_stats *ringtap_snapshot_lcore(
	const struct ringtap_snapshot *s, uint32_t i)
{
	return (const struct ringtap_lcore_stats *)ringtap_array_at(&s->lcores, i);
}

RINGTAP_INLINE const struct ringtap_sample_run *ringtap_snapshot_sample_run(
	const struct ringtap_snapshot *s, uint32_t i)
{
	return (const struct ringtap_sample_run *)ringtap_array_at(&s->sample_runs, i);
}

RINGTAP_INLINE const struct ringtap_gap *ringtap_thread_gap(
	const struct ringtap_thread_stats *t, uint32_t i)
{
	return (const struct ringtap_gap *)ringtap_array_at(&t->gaps, i);
}

RINGTAP_INLINE const struct ringtap_microburst *ringtap_thread_microburst(
	const struct ringtap_thread_stats *t, uint32_t i)
{
	return (const struct ringtap_microburst *)ringtap_array_at(&t->microbursts, i);
}

RINGTAP_INLINE const struct ringtap_sample *ringtap_sample_run_at(
	const struct ringtap_sample_run *r, uint64_t i)
{
	return (const struct ringtap_sample *)ringtap_array_at(&r->samples, i);
}

/* Takes a snapshot; the caller frees it with ringtap_snapshot_free(). -EPIPE: the application is
 * gone (*out is its last snapshot still, the memory outlives it); -EBADMSG: its statistics are
 * corrupt. Indices within a snapshot are in range whatever the application does. */
int ringtap_monitor_read(struct ringtap_monitor *mon, struct ringtap_snapshot **out);
void ringtap_snapshot_free(struct ringtap_snapshot *f);

/* later becomes the difference to earlier, of the same monitor: counters, sums and histograms;
 * states (names, min, max, pools' levels, worst lists limited to entries that began after earlier)
 * stay later's. Entries that earlier has not, count from zero. Indices are stable: an entry of
 * earlier has the same index in later. */
void ringtap_snapshot_since(struct ringtap_snapshot *later, const struct ringtap_snapshot *earlier);

/* ---- Intervals: what threads did, one by one ------------------------------------------------- */

enum { RINGTAP_INTERVAL_GAP = 1, RINGTAP_INTERVAL_BUSY = 2 };

/* A polling gap or a busy period of 10 us or more that has ended. */
struct ringtap_interval {
	uint64_t start_ns; /* since the epoch */
	uint64_t ns;
	uint32_t thread;  /* index in snapshots */
	uint32_t packets; /* for a gap: that the poll before it brought; for a busy period: its own
			   */
	uint32_t port;    /* for a gap: the one polled before it, index in ports of snapshots;
			     RINGTAP_NO_INDEX: unknown */
	uint16_t queue;   /* the same */
	uint16_t kind;    /* RINGTAP_INTERVAL_GAP or RINGTAP_INTERVAL_BUSY */
};

/* The library allocates the interval: fields may be added at its end. */
typedef void (*ringtap_interval_fn)(void *ctx, const struct ringtap_interval *v);

/* Calls fn for each that has ended since the call before (at first: since the monitor was opened),
 * up to the last snapshot's threads and ports; those of a thread in the order of their ends. Needs
 * RINGTAP_INTERVALS. Probes that do not know that collector have none, and a snapshot's collectors
 * do not name it. A thread keeps 8192 of them until they are read: *lost grows by those that were
 * written over; and, within half a second, by those of threads that had no log: 64 have one, half a
 * second after they began at the latest. 0 or -ENOMEM. */
int ringtap_monitor_intervals(
	struct ringtap_monitor *mon, ringtap_interval_fn fn, void *ctx, uint64_t *lost);

/* ---- Latency: percentiles of latency histograms ---------------------------------------------
 *
 * Log-linear: buckets of width 1 at first, then 2^n buckets for each power of two, so that the
 * width of a bucket is a fixed share of its values. */

uint32_t ringtap_latency_buckets(void);
/* Lowest value of a bucket, and how many values it covers; cycles. */
uint64_t ringtap_latency_low(uint32_t bucket, uint64_t *width);
/* The value below which a share (0 … 1) of the counts lies: the middle of its bucket, within 1 %.
 * 0 if there are none. */
double ringtap_latency_quantile(const uint64_t *bucket, double share);

#ifdef __cplusplus
}
#endif

#endif
