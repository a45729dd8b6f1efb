/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The shared memory of one capture session. docs/format.md is the specification;
 * this header mirrors it. All fields are in host byte order: probe and reader run
 * on one machine.
 *
 * A session is three memfds, made by the reader, in this order:
 *   RT_FD_SEGMENT  described below; the reader maps it read-only
 *   RT_FD_DATA     chunk_count chunks of chunk_size bytes; read-only as well
 *   RT_FD_TAILS    one rt_seg_tail for each ring; an honest reader writes nothing else
 *
 * The probe takes no number back from this memory but tails, which it checks, and those of fates:
 * the reader may have kept a writable mapping of all of it.
 */
#ifndef RINGTAP_COMMON_SEGMENT_H
#define RINGTAP_COMMON_SEGMENT_H

#include <assert.h>
#include <stdint.h>

#define RT_SEG_MAGIC   "RINGTAP" /* eight bytes with the terminating zero */
#define RT_SEG_VERSION 5

#define RT_MAX_RINGS      256 /* one for each thread that can come */
#define RT_MAX_IFS        1024
#define RT_MAX_TAPS       16384
#define RT_CHUNK_MIN      (128u << 10)  /* bytes; longer packets are cut */
#define RT_CHUNK_MAX      (2u << 20)    /* bytes; a huge page */
#define RT_CHUNKS_OF_RING 2             /* that a ring needs to go on, at least */
#define RT_BUFFER_MAX     (64ull << 30) /* bytes of all chunks */
/* The producer may write this many bytes past what it publishes, and leaves them free: a chunk
 * holds chunk_size - RT_CHUNK_GUARD bytes of records, and a word that ends it. */
#define RT_CHUNK_GUARD 128
#define RT_CHUNK_END   0u /* in the place of a record's type: it is in the next chunk */

#define RT_WINDOW (64u << 20) /* bytes that a ring writes in turn; docs/performance.md */

/* Chunks that a ring gives back when it begins another one, at most. */
#define RT_CHUNKS_BACK 8u

#define RT_FATE_SNAP_MAX                                                         \
	256u /* bytes of a received packet that are kept until its fate is known \
	      */
#define RT_FATE_POOLS    64
#define RT_FATE_REASONS  254u /* texts; number 1 is the first */
#define RT_FATE_OTHERS   255u /* number of all further reasons */
#define RT_FATE_BITS_MIN 12u  /* the probe's table has 4096 entries */
#define RT_FATE_BITS_MAX 22u  /* at most: 4 Mi entries, for 2 Mi mbufs */

#define RT_NAME_LEN 64

#define RT_LINKTYPE_RAW      101u
#define RT_LINKTYPE_ETHERNET 1u /* pcapng, LINKTYPE_ETHERNET; 0 in all structures here */

enum rt_fd { RT_FD_SEGMENT, RT_FD_DATA, RT_FD_TAILS, RT_FD_COUNT };

enum rt_direction { RT_DIR_RX = 0, RT_DIR_TX = 1 };

/* rt_seg_header.state */
enum rt_seg_state {
	RT_SEG_ARMED = 1, /* packets flow */
	RT_SEG_STOPPED,   /* no producer will ever write again; counters are final */
};

/* Why a packet that passed the filter is not in the ring. */
enum rt_loss {
	RT_LOSS_RING_FULL,  /* the reader was too slow */
	RT_LOSS_NO_RING,    /* its thread has no slot, or was interrupted while it used its ring */
	RT_LOSS_WAIT,       /* on-full=wait, and the bounded wait ran out */
	RT_LOSS_BAD_MBUF,   /* broken segment chain */
	RT_LOSS_UNREADABLE, /* in memory that the CPU cannot read, or has not been checked yet */
	RT_LOSS_COUNT
};

struct rt_seg_header {
	char magic[8];
	uint32_t version;
	uint32_t header_size;  /* sizeof(struct rt_seg_header) */
	uint64_t segment_size; /* bytes of RT_FD_SEGMENT */
	uint64_t chunk_size;   /* bytes: power of two, page multiple */
	uint32_t ring_count;   /* rt_seg_ring entries and rows of counters, by slot of threads */
	uint32_t if_capacity;  /* entries in the interface table */
	uint32_t tap_capacity; /* entries in the tap table */
	uint32_t clock_offset; /* struct rt_seg_clock; offsets are from the segment's start */
	uint64_t if_offset;    /* struct rt_seg_if[if_capacity] */
	uint64_t tap_offset;   /* struct rt_seg_tap[tap_capacity] */
	uint64_t ring_offset;  /* struct rt_seg_ring[ring_count] */
	uint64_t count_offset; /* struct rt_seg_count[ring_count][tap_capacity]; last table */
	uint64_t order_offset; /* uint32_t[ring_count][order_count] */
	uint32_t chunk_count;
	uint32_t order_count; /* power of two, more than chunk_count */
	uint32_t pid;         /* the application's, in its own PID namespace */
	uint32_t share_count; /* threads that the buffer is laid out for */
	uint64_t start_ns;    /* when the session was armed, ns since the epoch */
	/* Written while the session runs, release; pairs with rt_segment_if_count() …. */
	uint32_t state;        /* enum rt_seg_state */
	uint32_t if_count;     /* valid entries of the interface table; only grows */
	uint32_t tap_count;    /* valid entries of the tap table; only grows */
	uint32_t taps_refused; /* queues that found the tap table full: not captured */
	/* Fates (RT_IDS_FATES); all 0 without them. Constant, but those from fate_pools on. */
	uint64_t fate_offset;      /* the table: 2^fate_bits entries of fate_stride bytes */
	uint64_t fate_pool_offset; /* struct rt_seg_fate_pool[RT_FATE_POOLS] */
	uint32_t fate_bits;
	uint32_t fate_stride; /* bytes: struct rt_seg_fate, then fate_snap */
	uint32_t fate_snap;   /* bytes of each packet, and its history; a multiple of 64, up to
			       * RT_FATE_SNAP_MAX; 0 with RT_IDS_EVENTS */
	uint32_t fate_pools;  /* valid entries of the table of pools; only grows, release */
	uint32_t fate_walk; /* number of the last finished walk of the pools, from 1 on; release */
	uint32_t fate_pools_beyond; /* pools that find no entry there */
	uint64_t fate_walk_ns;      /* since the epoch, when it began */
	/* TSC. What was received before may have been sent where no hook was; see docs/fate.md. */
	uint64_t fate_unseen_tsc;  /* on a queue without a hook */
	uint64_t fate_stopped_tsc; /* on a port that was stopped, and refuses it */
	/* Bit by ring: a thread uses it, or has used it; only grows. Acquire and release. */
	uint64_t used[RT_MAX_RINGS / 64];
	uint32_t window;        /* chunks that each ring may keep now while the reader keeps up */
	uint32_t reserve;       /* chunks that are kept free now for rings below their window */
	uint64_t orphan_offset; /* struct rt_seg_count[tap_capacity]: threads without a ring */
	uint64_t fate_reason_offset; /* char[RT_FATE_REASONS][RT_NAME_LEN]; 0: none */
	/* From the beginning of an entry of the table of fates to its struct rt_seg_history, behind
	 * the bytes that a packet may have; within fate_stride. 0: none. */
	uint32_t fate_history;
	uint8_t reserved1[4];
};
static_assert(sizeof(struct rt_seg_header) == 256, "segment header is 256 bytes");

/* TSC to time: ns = ns_base + ((tsc - tsc_base) * mult >> RT_CLOCK_SHIFT), signed,
 * 128 bits wide. Valid when seq is even and the same before and after reading. */
#define RT_CLOCK_SHIFT 40
struct rt_seg_clock {
	uint32_t seq;
	uint32_t reserved0;
	uint64_t tsc_base; /* ticks */
	uint64_t ns_base;  /* ns since the epoch at tsc_base */
	uint64_t mult;     /* ns per tick, times 2^RT_CLOCK_SHIFT */
	uint8_t reserved1[32];
};
static_assert(sizeof(struct rt_seg_clock) == 64, "clock is one cache line");

enum rt_if_state { RT_IF_PRESENT = 1, RT_IF_GONE = 2 };

/* One port. Its index is the pcapng interface id in this session's records. A port that vanishes
 * keeps its entry. A port that appears gets a new one, unless it had one: a port that comes back
 * goes on with its entry, perhaps with another port_id, and with its taps. It is the same port
 * if name, driver and MAC address are (software drivers choose another, locally administered
 * address each time: that does not count). */
struct rt_seg_if {
	char name[RT_NAME_LEN];   /* ethdev name, zero-terminated */
	char driver[RT_NAME_LEN]; /* PMD, e.g. net_null */
	uint8_t mac[6];
	uint16_t port_id;
	uint32_t link_mbps; /* 0: unknown */
	uint32_t snaplen;
	uint32_t nb_rx_queues;
	uint32_t nb_tx_queues;
	uint32_t target; /* index of the request's rt_msg_target that chose this port */
	uint32_t state;  /* enum rt_if_state; changes while the session runs */
	/* The NIC's own counters since the session began, refreshed twice a second. They do not
	 * go back. */
	uint64_t ipackets;
	uint64_t opackets;
	uint64_t imissed; /* dropped by the NIC, its queue was full */
	uint64_t ierrors;
	uint64_t rx_nombuf; /* dropped because the mempool was empty */
	uint64_t oerrors;
	uint16_t linktype; /* LINKTYPE_…; 0: Ethernet */
	uint8_t reserved[6];
	uint64_t nic_ns; /* CLOCK_REALTIME of the last of these readings; 0: none since it began */
	uint8_t reserved2[32];
};
static_assert(sizeof(struct rt_seg_if) == 256, "interface entry is 256 bytes");

/* One (port, queue, direction) that is captured. */
struct rt_seg_tap {
	uint32_t if_index;
	uint16_t queue;
	uint8_t direction; /* enum rt_direction */
	uint8_t reserved[9];
};
static_assert(sizeof(struct rt_seg_tap) == 16, "tap entry is 16 bytes");

/* Published by one polling thread, in the ring with the number of its slot. Positions count bytes
 * since the session began and never wrap. Position p is in chunk order[p / chunk_size %
 * order_count], at p % chunk_size; an entry of order is valid once head is past its chunk's first
 * byte. A record never crosses the end of a chunk: RT_CHUNK_END says that the next one is at the
 * beginning of the next chunk. */
struct rt_seg_ring {
	uint64_t head;    /* end of the last finished record; release */
	uint64_t last_ns; /* time of the last published burst */
	uint32_t busy;    /* 1 from before the TSC is read until after head is published */
	uint32_t
		lcore; /* EAL lcore of its last thread, UINT32_MAX: not an EAL thread or none yet */
	uint32_t tid;  /* that thread's, in the application's PID namespace; 0: unknown */
	uint8_t reserved[100];
};
static_assert(sizeof(struct rt_seg_ring) == 128, "two lines: the prefetcher takes pairs");

/* The last entries of a ring's row, behind those of all taps that there can be, are the probe's
 * own: uint64_t by tap, packets that are lost since the last record. seen == captured + filtered +
 * not_sampled + cut + sum(lost). With RT_OPEN_FIRST the thread's table of flows is behind them, of
 * 2^bits entries of 16 bytes. Row r belongs to the thread of ring r; one more row counts for all
 * threads without a ring. Rows of rings that are not used may not be there: reading one allocates
 * its memory. */
struct rt_seg_count {
	uint64_t seen;
	uint64_t captured;
	uint64_t filtered; /* refused by the filter */
	uint64_t bytes;    /* bytes of captured packets on the wire */
	/* In a cache line of its own: the paths that count it are slow anyway. */
	uint64_t lost[RT_LOSS_COUNT];
	/* Fates, of taps that receive: received == offered + not_offered + unknown + open ones,
	 * over all rows. The counters above are then those of the records of packets not offered.
	 */
	union {
		uint64_t received;
		uint64_t not_sampled; /* sessions with RT_OPEN_SAMPLE, which have no fates */
	};
	union {
		uint64_t offered;
		uint64_t cut; /* sessions with RT_OPEN_FIRST: beyond the limit of its flow */
	};
	union {
		uint64_t not_offered; /* as far as a hook has noticed it; more are free, see
				       * rt_seg_fate */
		uint64_t evicted;     /* flows that the table had no room for any more */
	};
	uint64_t unknown;
	uint64_t inferred; /* part of unknown: likely offered, without the flag of its id */
	union {
		uint64_t unseen; /* part of unknown: perhaps sent on a queue without a hook */
		/* Sending taps: packets with the id of a received one and without its first
		 * segment: rests of chains, and copies. As many of not_offered may have been
		 * offered, at most. */
		uint64_t rest_offered;
	};
	uint64_t stopped; /* part of unknown: perhaps refused by a port that was stopped */
};
static_assert(sizeof(struct rt_seg_count) == 128, "counters are two cache lines");

/* In records of a session with RT_IDS_EVENTS, from bit RT_EVENT_SHIFT of epb_flags on, which pcapng
 * reserves: such records get into no file. The numbers are those of enum ringtap_fate. */
#define RT_EVENT_SHIFT 12
#define RT_EVENT_MASK  7u
/* In all records of a session with fates: the number of the reason that the application gave. */
#define RT_REASON_SHIFT 16
#define RT_REASON_MASK  255u
enum rt_fate_event {
	RT_EVENT_NONE,
	RT_EVENT_NOT_OFFERED,
	RT_EVENT_UNKNOWN,
	RT_EVENT_INFERRED,
	RT_EVENT_UNSEEN, /* unknown: see rt_seg_count */
	RT_EVENT_STOPPED
};

enum rt_fate_state {
	RT_FATE_NONE,
	RT_FATE_OPEN,   /* received, and neither offered since nor received again */
	RT_FATE_SETTLED /* counted */
};

/* An mbuf that was received: hashed by its address, never removed. In the segment, behind it the
 * first bytes of the packet (fate_snap of them have room). Written by the thread that has the
 * mbuf, without a sequence number: a reader checks that state and id are the same before and after
 * copying. Probes use none of it as an address or, unchecked, as an index. */
struct rt_seg_fate {
	uint64_t mbuf;  /* its address, claimed once; 0: the entry is unused */
	uint64_t id;    /* id of the reception, as in records, without the source */
	uint64_t tsc;   /* time of the burst it was received in */
	uint32_t tap;   /* entry of the tap table: where it was received */
	uint32_t state; /* enum rt_fate_state; release */
	uint32_t len;   /* bytes of the packet */
	uint32_t cap;   /* bytes of it that follow the entry */
	/* Control thread. */
	uint32_t walk; /* number of the walk that found the mbuf free in its pool */
	uint32_t pool; /* 1 + entry of the table of pools; 0: not known yet */
	/* The polling thread. */
	uint32_t outside;  /* not 0: the filter of its tap refused the packet */
	uint32_t external; /* not 0: in a buffer of its driver, which outlives the mbuf's use */
	uint32_t reason;   /* number of the one that the application gave; 0: none */
	uint8_t reserved[4];
};
static_assert(sizeof(struct rt_seg_fate) == 64, "fate entry is a cache line");

/* The operations on the mbuf, as DPDK has noted them (common/mbuf_history.h), if it does: read
 * again and again while the packet is open. Written by the control thread: a reader checks that id
 * is that of the entry, before and after reading ops. */
#define RT_FATE_HISTORY 64u /* bytes of the entry that it takes, of those of fate_snap */
struct rt_seg_history {
	uint64_t id; /* id of the entry at that time; 0: not read yet. Release */
	uint64_t ops;
	uint8_t reserved[48];
};
static_assert(sizeof(struct rt_seg_history) == RT_FATE_HISTORY, "history is a cache line");

/* A pool with packets in the table. Control thread. */
struct rt_seg_fate_pool {
	char name[RT_NAME_LEN];
	uint32_t size;   /* mbufs */
	uint32_t walked; /* 0: of an unknown kind: none of its mbufs is known to be free */
	uint8_t reserved[56];
};
static_assert(sizeof(struct rt_seg_fate_pool) == 128, "pool of fates");

/* Written by the reader, one line each, in RT_FD_TAILS. */
struct rt_seg_tail {
	uint64_t tail; /* everything before it may be overwritten; release */
	uint8_t reserved[56];
};
static_assert(sizeof(struct rt_seg_tail) == 64, "tails are one cache line");

/* Chunks hold pcapng Enhanced Packet Blocks back to back (pcapng, section 4.3). */
#define RT_EPB_TYPE   6u
#define RT_EPB_HEADER 28u /* bytes before the packet */
#define RT_EPB_MIN    32u /* header and trailing length */

struct rt_epb {
	uint32_t type;
	uint32_t total_len;
	uint32_t if_index;
	uint32_t ts_high;
	uint32_t ts_low;
	uint32_t cap_len;
	uint32_t orig_len;
};
static_assert(sizeof(struct rt_epb) == RT_EPB_HEADER, "EPB header");

#endif
