/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The statistics segment: what the application's polling threads count while a monitor is
 * attached. One memfd per application, shared by all monitors, mapped read-only by them.
 * docs/format.md is the specification; this header mirrors it. Host byte order.
 *
 * Counters only grow while at least one monitor is attached, so that any number of monitors can
 * take differences without disturbing each other. Every line has a single writer, the thread it
 * belongs to, or the probe's control thread where stated. A thread gets its blocks on first
 * use; where none is left, the header counts what was not counted.
 *
 * The memfd is sparse: of each table the control thread populates the first entries, ahead of what
 * threads take. Readers stay below the counts: to read an entry beyond allocates its memory.
 */
#ifndef RINGTAP_COMMON_STATS_H
#define RINGTAP_COMMON_STATS_H

#include <assert.h>
#include <stdint.h>

#include "log_linear.h"
#include "segment.h"

#define RT_STAT_MAGIC   "RTFIGUR" /* eight bytes with the terminating zero */
#define RT_STAT_VERSION 6

#define RT_STAT_THREADS     256  /* entries, by thread slot of the probe */
#define RT_STAT_PORTS       64   /* entries; one that comes back takes its own */
#define RT_STAT_POOLS       64   /* entries */
#define RT_STAT_RINGS       128  /* entries */
#define RT_STAT_XSTATS      2048 /* entries; of one port at most RT_STAT_PORT_XSTATS */
#define RT_STAT_PORT_XSTATS 512
#define RT_STAT_DEVICES     2048 /* entries, one for each statistic of a device */
#define RT_STAT_BURSTS      512  /* burst sizes counted one by one: 0 … 512 */
#define RT_STAT_LCORES      128  /* mempool caches, usage of lcores */
#define RT_STAT_PAIRS       128  /* blocks of (thread, receiving port, sending port, queue, size) */
#define RT_STAT_SIZES       7    /* classes of lengths: below rt_stat_size_limit() of each */
#define RT_STAT_SAMPLERS    8    /* threads whose buffer addresses are sampled */
#define RT_STAT_LOGS        64   /* threads with a log of intervals */

#ifndef RT_STAT_HOOKS      /* fuzzers have fewer */
#define RT_STAT_HOOKS 4096 /* blocks of (thread, port, queue, direction) */
#endif

/* Collectors, switched on and off one by one. Each needs the hooks in place. */
enum {
	RT_COLLECT_POLLS = 1 << 0,     /* burst sizes, empty polls */
	RT_COLLECT_BYTES = 1 << 1,     /* bytes on the wire: reads every packet's length */
	RT_COLLECT_BUSY = 1 << 2,      /* busy and idle cycles of the threads, microbursts */
	RT_COLLECT_GAPS = 1 << 3,      /* longest iterations: reads the TSC at every poll */
	RT_COLLECT_LATENCY = 1 << 4,   /* from receive to send */
	RT_COLLECT_ADDRESSES = 1 << 5, /* samples of buffer addresses */
	RT_COLLECT_POOLS = 1 << 6,     /* mempools, rings; costs the polling threads nothing */
	RT_COLLECT_INTERVALS = 1 << 7, /* logs of what GAPS and BUSY find */
	RT_COLLECT_SPLIT = 1 << 8,     /* latencies by sending queue and length of packets */
	RT_COLLECT_XSTATS = 1 << 9,    /* the drivers' extended statistics */
	RT_COLLECT_DEVICES = 1 << 10,  /* event, crypto and DMA devices */
	RT_COLLECT_COUNT = 11,
	RT_COLLECT_ALL = (1 << RT_COLLECT_COUNT) - 1,
};

struct rt_stat_header {
	char magic[8];
	uint32_t version;
	uint32_t header_size;    /* sizeof(struct rt_stat_header) */
	uint64_t segment_size;   /* bytes */
	uint64_t clock_offset;   /* struct rt_seg_clock; offsets are from the segment's start */
	uint64_t port_offset;    /* struct rt_stat_port[RT_STAT_PORTS] */
	uint64_t thread_offset;  /* struct rt_stat_thread[RT_STAT_THREADS] */
	uint64_t hook_offset;    /* struct rt_stat_hook[RT_STAT_HOOKS] */
	uint64_t pair_offset;    /* struct rt_stat_pair[RT_STAT_PAIRS] */
	uint64_t pool_offset;    /* struct rt_stat_pool[RT_STAT_POOLS] */
	uint64_t sampler_offset; /* struct rt_stat_sampler[RT_STAT_SAMPLERS] */
	uint64_t tsc_hz;         /* ticks per second, as DPDK has it */
	uint32_t pid;            /* the application's, in its own PID namespace */
	uint32_t lcore_count;    /* entries of lcores; control thread; release */
	uint32_t reserved0[2];
	/* Written while it is in use. Ports and pools below their count are complete (release;
	 * pairs with the acquire in take_count()). No other port or pool takes over an entry: those
	 * that appear when all entries are taken are not shown (ports_beyond, pools_beyond).
	 * Many threads take hooks, pairs and samplers at once: one of these is complete when its
	 * generation is not 0 (release; pairs with the acquires in meet_hook(), meet_pair() and
	 * meet_sampler()). */
	uint32_t collectors;             /* RT_COLLECT_*, on at the moment */
	uint32_t latency_every;          /* times one packet in N */
	uint32_t port_count, pool_count; /* control thread */
	uint32_t hook_count, pair_count, sampler_count;
	uint32_t switched; /* changes whenever collectors or latency_every do */
	/* Control thread, about twice a second. */
	uint64_t no_thread_polls; /* hook calls of threads without a slot: not counted anywhere */
	uint64_t no_block_polls;  /* hook calls that found no block, or not yet */
	uint64_t no_pair_packets; /* latencies that found no block */
	uint32_t ports_beyond; /* that exist without an entry; updated at every scan of the ports */
	uint32_t pools_beyond;
	uint32_t thread_count; /* entries of threads from this one on are not in use; release */
	uint32_t log_count;
	uint64_t log_offset;       /* struct rt_stat_log[RT_STAT_LOGS]; 0: an earlier probe */
	uint64_t interval_cycles;  /* shorter ones are not logged */
	uint64_t no_log_intervals; /* that found no log; control thread, about twice a second */
	uint64_t ring_offset;      /* struct rt_stat_ring[RT_STAT_RINGS]; 0: an earlier probe */
	uint32_t ring_count;       /* control thread; release, as pool_count */
	uint32_t rings_beyond;
	uint64_t xstat_offset; /* struct rt_stat_xstat[RT_STAT_XSTATS]; 0: an earlier probe */
	uint32_t xstat_count;  /* control thread; release, as pool_count */
	uint32_t xstats_beyond;
	uint64_t device_offset; /* struct rt_stat_device[RT_STAT_DEVICES]; 0: an earlier probe */
	uint32_t device_count;  /* control thread; release, as pool_count */
	uint32_t devices_beyond;
	uint64_t lcore_offset; /* struct rt_stat_lcore[RT_STAT_LCORES]; 0: an earlier probe */
};
static_assert(sizeof(struct rt_stat_header) == 256, "statistics header is 256 bytes");

/* Control thread, about twice a second; link, MTU and descriptors once a second. The counters are
 * the driver's own, carried over: when they have begun again (the application reset them, or the
 * port was removed and came back), they are added to what they were before, and a new epoch begins.
 * What the driver counted between the last reading of an epoch and its end is missing. read_ns is 0
 * while the fields after it change, and never the same again: they belong together if read_ns is
 * the same before and after they are read. */
struct rt_stat_port {
	char name[RT_NAME_LEN];
	char driver[RT_NAME_LEN];
	uint16_t port_id;
	uint16_t link_up;
	uint32_t state;     /* enum rt_if_state */
	uint32_t link_mbps; /* 0: unknown */
	uint32_t nb_rx_queues, nb_tx_queues;
	uint32_t nb_rxd, nb_txd; /* descriptors of queue 0, 0: unknown */
	uint32_t mtu;
	uint64_t read_ns; /* since the epoch, when the counters were read */
	uint64_t ipackets, opackets, ibytes, obytes, imissed, ierrors, rx_nombuf, oerrors;
	/* Packets that the TX hooks had counted before the driver's counters were read, and after:
	 * opackets belongs to a count between the two. */
	uint64_t tx_before, tx_after;
	/* Packets passed to TX between the last reading of an epoch and the first of the next one:
	 * at most these were sent without being in opackets. Summed over all epochs. */
	uint64_t tx_unknown;
	uint32_t epoch;      /* how often the driver's counters have begun again */
	uint32_t used;       /* not 0: packets have passed the port, or its driver counts some */
	uint64_t stopped_ns; /* since the epoch, when it was found to be stopped; 0: it runs */
	uint8_t reserved[48];
};
static_assert(sizeof(struct rt_stat_port) == 320, "port entry");

/* One of the longest times from one RX poll of a thread to its next one. cycles is 0 while the
 * other fields change: an entry is whole if cycles is the same before and after reading it. */
struct rt_stat_gap {
	uint64_t tsc; /* time of the first poll */
	uint64_t cycles;
	uint32_t packets;    /* packets of the first poll; 0: there was no work to do */
	uint16_t port_index; /* entry of the port table, of the first poll */
	uint16_t queue;
};
static_assert(sizeof(struct rt_stat_gap) == 24, "gap entry");

/* A period of polls that all received packets. Its packets field has the role of a gap's cycles. */
struct rt_stat_burst {
	uint64_t tsc;
	uint64_t cycles;
	uint64_t packets;
};

#define RT_STAT_WINDOWS   16 /* windows of about a second, reused in turn */
#define RT_STAT_WORST     8  /* entries a window */
#define RT_STAT_GAP_SIZES 48 /* gaps by log2(cycles) */

/* The worst entries of a window of time. The control thread numbers the windows (1, 2, …), the
 * thread resets a window at its first call under the new number. */
struct rt_stat_window {
	uint32_t number; /* 0: never used; valid if the same before and after copying */
	uint32_t reserved;
	struct rt_stat_gap gap[RT_STAT_WORST];     /* unsorted; cycles 0: unused */
	struct rt_stat_burst burst[RT_STAT_WORST]; /* by packets; unsorted; packets 0: unused */
	uint8_t pad[56];
};
static_assert(sizeof(struct rt_stat_window) == 448, "window");

/* A slot's new owner goes on counting in the entry and in the blocks of the slot: counters never
 * go back. It sets generation, lcore and tid at its first hook call; what the control thread reads
 * from the kernel follows within half a second. */
struct rt_stat_thread {
	uint32_t generation; /* 0: never used; changes when the slot has a new owner. Release */
	uint32_t alive;   /* its thread lives; written by the control thread, like all that follows
			     except lcore, tid */
	uint32_t lcore;   /* EAL lcore, UINT32_MAX: not an EAL thread */
	uint32_t tid;     /* kernel thread id, in the application's PID namespace; 0: unknown */
	char name[16];    /* the kernel's name of it */
	uint64_t cpu_ns;  /* time on a CPU */
	uint64_t wait_ns; /* time runnable without a CPU: schedstat's run_delay */
	uint64_t preempted; /* involuntary context switches */
	uint64_t read_ns;   /* since the epoch, when these were read */
	uint32_t cpu;       /* that it ran on last */
	/* Its last RX poll, as of looked_tsc, every 50 ms while RT_COLLECT_GAPS is on: what a
	 * thread that has stopped polling cannot publish itself. looked_tsc is 0 while the others
	 * change, and never the same again. */
	uint32_t poll_packets; /* that it brought */
	uint64_t poll_tsc;     /* 0: unknown */
	uint64_t looked_tsc;
	uint16_t poll_port; /* entry of the port table */
	uint16_t poll_queue;
	uint32_t poll_holds; /* 1: it has called no TX function since */
	uint32_t reserved0[8];
	/* Written by the thread. It reads the TSC only where polls with packets and empty polls
	 * alternate, so the sums lack the current period: a reader adds now - since_tsc to the
	 * sum that is_busy selects, while RT_COLLECT_BUSY is on. since_tsc is 0 while the sums
	 * change (or there is no period) and never has the same value again: sums, is_busy and
	 * since_tsc fit together if since_tsc is the same before and after reading them. */
	uint64_t
		busy_cycles; /* from an RX poll that brought packets to the thread's next RX poll */
	uint64_t idle_cycles;  /* from an empty one to the next */
	uint64_t since_tsc;    /* start of the current period; 0: see above */
	uint32_t is_busy;      /* its kind */
	uint32_t window_next;  /* windows are at number % RT_STAT_WINDOWS; last number + 1 */
	uint64_t busy_periods; /* busy periods that have ended */
	uint64_t busy_period_packets[40]; /* the same, by log2(packets) */
	uint64_t
		gaps_busy[RT_STAT_GAP_SIZES]; /* all gaps by log2(cycles), after a poll with packets
					       */
	uint64_t gaps_idle[RT_STAT_GAP_SIZES]; /* after an empty poll */
	uint8_t reserved1[24];
	struct rt_stat_window window[RT_STAT_WINDOWS];
};
static_assert(sizeof(struct rt_stat_thread) % 64 == 0, "thread entries are whole lines");

/* Counts of one thread at one (port, queue, direction). */
struct rt_stat_hook {
	uint32_t thread;     /* slot */
	uint32_t generation; /* generation of the slot when the block was taken; 0: not yet */
	uint16_t port_index; /* entry of the port table */
	uint16_t queue;
	uint8_t direction; /* enum rt_direction */
	uint8_t reserved0[3];
	uint64_t big_polls;    /* bursts of more than RT_STAT_BURSTS packets */
	uint64_t big_packets;  /* in them */
	uint64_t bytes;        /* RT_COLLECT_BYTES: of pkt_len, without frame check sequence */
	uint64_t byte_packets; /* packets that bytes counts */
	uint32_t max_burst;    /* largest burst requested (RX) */
	uint32_t reserved1;
	uint64_t burst[RT_STAT_BURSTS + 1]; /* calls by packets received (RX) or handed over (TX) */
};
static_assert(sizeof(struct rt_stat_hook) % 64 == 0, "hook blocks are whole lines");

/* A log-linear histogram (log_linear.h), 2^RT_STAT_SUB buckets an octave: within 0.8 %. */
#define RT_STAT_SUB     6
#define RT_STAT_LAT_MAX 42 /* bits; time stamps in mbufs have no more */
#define RT_STAT_BUCKETS RT_LOG_BUCKETS(RT_STAT_SUB, RT_STAT_LAT_MAX)

/* Bytes; pkt_len is without frame check sequence. */
static inline uint32_t rt_stat_size_limit(uint32_t size)
{
	static const uint32_t limits[RT_STAT_SIZES] = {65, 128, 256, 512, 1024, 1519, UINT32_MAX};

	return limits[size < RT_STAT_SIZES ? size : RT_STAT_SIZES - 1];
}

struct rt_stat_pair {
	uint32_t thread;     /* that sent */
	uint32_t generation; /* as in rt_stat_hook */
	uint16_t
		rx_index; /* entry of the port table; UINT16_MAX: only unstamped and shared count */
	uint16_t tx_index;
	uint8_t inferred;   /* 1: that its packets were received is likely, but not certain */
	uint8_t size;       /* class of its packets' lengths + 1; 0: all queues and lengths */
	uint16_t tx_queue;  /* where size is not 0 */
	uint64_t count;     /* packets timed */
	uint64_t sum;       /* cycles */
	uint64_t min, max;  /* cycles, since the collector was switched on; min UINT64_MAX: none */
	uint64_t unstamped; /* packets sent without a time stamp: not received, or not chosen */
	uint64_t shared;    /* cloned, or referenced more than once: not timed */
	uint64_t bucket[RT_STAT_BUCKETS];
};
static_assert(sizeof(struct rt_stat_pair) % 64 == 0, "pair blocks are whole lines");

enum rt_stat_memory {
	RT_MEM_UNKNOWN,
	RT_MEM_DPDK,     /* from DPDK's heap */
	RT_MEM_EXTERNAL, /* registered with DPDK, or unknown to it */
};

/* Control thread. An entry's identity is complete before pool_count covers it. */
struct rt_stat_pool {
	char name[RT_NAME_LEN];
	char ops[32];
	uint64_t address; /* address of its struct rte_mempool: distinguishes pools of one name */
	uint32_t state;   /* enum rt_if_state */
	uint32_t size;    /* objects */
	uint32_t object_bytes;    /* one object with header and trailer */
	uint32_t buffer_bytes;    /* data room of its mbufs, 0: no mbufs */
	uint32_t memory;          /* enum rt_stat_memory, of the packet buffers */
	uint32_t pinned_external; /* its mbufs have buffers outside of the pool */
	uint64_t page_bytes;      /* page size of the buffers; 0: unknown */
	uint64_t base, span;      /* lowest address of an object, bytes up to the end of the last */
	uint32_t chunks;          /* chunks of contiguous memory */
	int32_t socket;
	uint32_t cache_size; /* per lcore; 0: none */
	/* Refreshed twice a second. */
	uint32_t available; /* in the pool and its caches; UINT32_MAX: unknown */
	uint32_t in_caches;
	uint32_t lowest;                /* the lowest observed value of available */
	uint16_t cache[RT_STAT_LCORES]; /* objects in the cache of lcore 0, 1, … */
	uint8_t reserved[80];
};
static_assert(sizeof(struct rt_stat_pool) == 512, "pool entry");

#define RT_STAT_RECENT 32 /* samples that a ring keeps */

/* Control thread. A ring of the same name and capacity uses the entry of a freed one again. */
struct rt_stat_ring {
	char name[RT_NAME_LEN];
	uint32_t state;    /* enum rt_if_state */
	uint32_t capacity; /* objects that fit */
	/* About every 50 ms. A level is the number of objects, or less where they move meanwhile.
	 */
	uint32_t used;                   /* the last sample */
	uint32_t highest;                /* highest sample since the first monitor */
	uint64_t samples;                /* samples so far; release, after recent[] */
	uint32_t recent[RT_STAT_RECENT]; /* sample n is at n % RT_STAT_RECENT */
	uint8_t reserved[40];
};
static_assert(sizeof(struct rt_stat_ring) == 256, "ring entry");

/* Control thread: an extended statistic of a port's driver. One of the same port and name uses the
 * entry again. */
struct rt_stat_xstat {
	char name[RT_NAME_LEN]; /* complete before xstat_count covers it */
	uint16_t port_index;    /* entry of the port table */
	uint16_t reserved0;
	uint32_t state;  /* enum rt_if_state */
	uint32_t number; /* the driver's */
	uint32_t reserved1;
	/* About twice a second. read_ns is 0 while the value changes, as in rt_stat_port. */
	uint64_t read_ns;
	uint64_t value;
	uint8_t reserved[32];
};
static_assert(sizeof(struct rt_stat_xstat) == 128, "entry of an extended statistic");

enum rt_device_kind { RT_DEVICE_EVENT, RT_DEVICE_CRYPTO, RT_DEVICE_DMA, RT_DEVICE_KINDS };
/* The first three are modes of eventdev's statistics. */
enum rt_device_part { RT_PART_DEVICE, RT_PART_PORT, RT_PART_QUEUE, RT_PART_CHANNEL, RT_PARTS };

/* Control thread: a statistic of an event, crypto or DMA device, or of a part of it. One of the
 * same device, part and name uses the entry again. */
struct rt_stat_device {
	char device[RT_NAME_LEN]; /* these are complete before device_count covers them */
	char name[RT_NAME_LEN];
	uint8_t kind;    /* enum rt_device_kind */
	uint8_t part;    /* enum rt_device_part */
	uint16_t id;     /* the device's in its library */
	uint16_t number; /* the part's in the device */
	uint16_t reserved0;
	uint32_t state; /* enum rt_if_state */
	uint32_t reserved1;
	/* About twice a second. read_ns is 0 while the value changes, as in rt_stat_port. */
	uint64_t read_ns;
	uint64_t value;
	uint8_t reserved[32];
};
static_assert(sizeof(struct rt_stat_device) == 192, "entry of a statistic of a device");

/* Control thread, about twice a second: what the application counts of lcore 0, 1, … */
struct rt_stat_lcore {
	uint64_t read_ns; /* since the epoch; 0: unknown, or the others change */
	uint64_t total_cycles, busy_cycles;
	uint8_t reserved[40];
};
static_assert(sizeof(struct rt_stat_lcore) == 64, "entry of an lcore");

#define RT_STAT_RUNS 4    /* buffers a sampler */
#define RT_STAT_RUN  8192 /* packets a buffer */

struct rt_stat_sample {
	uint64_t buf_addr; /* virtual address of the data buffer */
	uint64_t iova;     /* as devices see it */
	uint32_t tsc;      /* low half */
	uint16_t port_index;
	uint16_t queue;
};
static_assert(sizeof(struct rt_stat_sample) == 24, "sample");

/* A run of consecutively received packets of one thread. The control thread requests run n
 * (wanted = n), the thread fills buffer n % RT_STAT_RUNS packet by packet, sets its number and
 * count, and then waits for the next request. */
struct rt_stat_run {
	uint64_t number; /* 0: empty, or being filled. Release; pairs with read_run() */
	uint64_t tsc;    /* time of the first packet */
	uint64_t count;
	struct rt_stat_sample sample[RT_STAT_RUN];
};

struct rt_stat_sampler {
	uint32_t thread;     /* slot */
	uint32_t generation; /* as in rt_stat_hook */
	uint64_t done;       /* number of the last finished run */
	uint8_t reserved[48];
	struct rt_stat_run run[RT_STAT_RUNS];
	uint8_t pad[32];
};
static_assert(sizeof(struct rt_stat_sampler) % 64 == 0, "samplers are whole lines");

#define RT_STAT_INTERVALS   8192  /* entries of a log */
#define RT_STAT_INTERVAL_NS 10000 /* shorter ones are not logged */

enum rt_stat_interval_kind {
	RT_INTERVAL_GAP = 1,
	RT_INTERVAL_BUSY = 2, /* a busy period */
};

/* A polling gap or a busy period that has ended. */
struct rt_stat_interval {
	uint64_t tsc; /* where it begins */
	uint64_t cycles;
	uint32_t packets;   /* for a gap as in rt_stat_gap; UINT32_MAX: as many or more */
	uint8_t port_index; /* the same; of a busy period UINT8_MAX */
	uint8_t kind;       /* enum rt_stat_interval_kind */
	uint16_t queue;
};
static_assert(sizeof(struct rt_stat_interval) == 24, "interval");
static_assert(RT_STAT_PORTS < UINT8_MAX, "a port has 8 bits in an interval");

/* Log of a thread: entry n is at n % RT_STAT_INTERVALS. The thread writes entry head, then
 * raises head (release). So what has been read of entry n is whole if head is below
 * n + RT_STAT_INTERVALS afterwards. */
struct rt_stat_log {
	uint32_t thread;     /* slot */
	uint32_t generation; /* as in rt_stat_hook */
	uint64_t head;       /* entries written so far */
	uint8_t reserved[48];
	struct rt_stat_interval interval[RT_STAT_INTERVALS];
};
static_assert(sizeof(struct rt_stat_log) % 64 == 0, "logs are whole lines");

/* Bucket of a latency; see RT_STAT_SUB. Never reaches RT_STAT_BUCKETS. */
static inline uint32_t rt_stat_bucket(uint64_t v)
{
	return v >> RT_STAT_LAT_MAX ? RT_STAT_BUCKETS - 1 : rt_log_bucket(v, RT_STAT_SUB);
}

/* Lowest value of a bucket, and how many values it covers. */
static inline uint64_t rt_stat_bucket_low(uint32_t bucket, uint64_t *width)
{
	return rt_log_bucket_low(bucket, RT_STAT_SUB, width);
}

#endif
