/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What became of received packets: offered to a port, not offered, unknown, or still open; see
 * docs/fate.md. A table beside the mbufs has the packet that each was last received with. It lies
 * in the session's segment, so readers see it, and may write to it: nothing in it is used as an
 * address, and no number before it is checked.
 */
#ifndef RINGTAP_PROBE_CAPTURE_FATE_H
#define RINGTAP_PROBE_CAPTURE_FATE_H

#include <assert.h>

#include <rte_mbuf.h>

#include "reason.h"
#include "session.h"

/* The burst whose packets a thread receives. If it jumps out of the hook, those left become
 * unknown. Written by the thread only, for each packet. */
struct rt_fate_burst {
	uint32_t tap; /* index + 1; 0: none */
	uint32_t left;
	uint64_t received;                /* the counter, with this burst */
	const struct rte_mempool *missed; /* the last one that was not among the pools */
	uint32_t missed_version;          /* version of the pools' table, then */
} __attribute__((aligned(128)));
static_assert(sizeof(struct rt_fate_burst) == 128, "two lines: the prefetcher takes pairs");

/* A clone in an external buffer, which does not name the mbuf that its packet was received in, was
 * offered: its id, and the time of the last one in this place. Atomic. */
#define RT_FATE_STRAYS 2048u /* 32 KiB of the application's memory; a power of two */
struct rt_fate_stray {
	uint64_t id, tsc;
};

/* Private, constant while hooks use it but for what is atomic, and bursts. */
struct rt_fates {
	uint8_t *table;
	uint64_t mask;   /* entries - 1 */
	uint32_t shift;  /* shift of the hash: 64 - log2 of their number */
	uint32_t probes; /* entries that are looked at for an mbuf; atomic */
	uint32_t stride, snap;
	struct rt_tap *const *taps; /* tap_capacity; NULL entries: not made yet */
	uint32_t tap_capacity;
	struct rt_fate_burst *bursts;                   /* by ring */
	const struct rte_mempool *pools[RT_FATE_POOLS]; /* compared only; atomic */
	uint32_t pool_count;                            /* atomic */
	uint32_t closing;                               /* atomic; see rt_fates_close() */
	uint32_t pool_version;                          /* counts those that were added; atomic */
	uint64_t followed[RT_MAX_PORTS];                /* see fate_doubt.c; atomic */
	uint64_t unseen_tsc, stopped_tsc;               /* as in the segment's header; atomic */
	uint32_t stray_seen; /* not 0: a place of strays is in use; atomic */
	struct rt_fate_stray *strays;
	struct rt_fate_walk *walk; /* control thread */
	struct rt_reasons reasons;
	uint32_t history;       /* as in the segment's header; 0: DPDK keeps none */
	uint32_t history_field; /* offset in mbufs */
	uint64_t history_next;  /* entry; control thread */
	uint64_t used __attribute__((aligned(128))); /* entries; atomic */
};

/* How many mbufs all pools of packets have. Control lock held. */
uint64_t rt_fates_mbufs(void);
/* log2 of the entries for that number of mbufs, twice as many; fewer if the table would exceed most
 * bytes (0: no limit), or RT_FATE_BITS_MAX. */
uint32_t rt_fates_bits(uint64_t mbufs, uint32_t snap, uint64_t most);

/* s: its memory is attached. NULL: out of memory. */
struct rt_fates *rt_fates_new(const struct rt_session *s);
void rt_fates_free(struct rt_fates *f);

/* rt_ids_stamp() in an RX hook with fates, except for packets of a session with fates that another
 * port of this process has received and passes on: they keep their ids. */
void rt_fates_stamp(
	const struct rt_tapset *set, struct rt_thread *t, struct rte_mbuf **pkts, unsigned n);

/* In hooks, for a burst of n packets; r: the thread's ring, NULL: it has none. Received ones have
 * their ids, rt_fates_stamp(); sent ones are not marked yet, rt_ids_use(). tsc: the burst's time.
 * The ring is busy only while it gets records, as most bursts have none. */
void rt_fates_feed(struct rt_ring *r, const struct rt_tap *tap, struct rte_mbuf **pkts, unsigned n,
	uint64_t tsc);

/* The same in two steps, for the tap set->only_fates of a thread with a ring. The first one
 * requests the entries, which arrive while other sessions get their records, and does what
 * rt_fates_stamp() does. False: it has done nothing, as these packets take rt_fates_stamp() and
 * rt_fates_feed(). */
struct rt_fate_visit;
bool rt_fates_begin(struct rt_fate_visit *v, const struct rt_tapset *set, struct rt_ring *r,
	struct rt_thread *t, struct rte_mbuf **pkts, unsigned n, uint64_t tsc);
void rt_fates_end(struct rt_fate_visit *v, struct rte_mbuf **pkts, unsigned n);

/* Finishes the burst that the ring's thread left by a jump out of the hook, before rt_epb_mend().
 */
void rt_fates_mend(const struct rt_fates *f, struct rt_ring *r);

/* The session ends: what is received from now on does not count, but settles what its mbufs had.
 * What was received before is followed until no hook uses the session. */
void rt_fates_close(struct rt_fates *f);

/* Packets that are sent where no hook is: on a queue that has none yet, or to a stopped port. */
#define RT_DOUBT_UNSEEN  1u /* a TX queue that runs has no hook of this session */
#define RT_DOUBT_STOPPED 2u /* a port that was sent to is stopped */
/* The same now, as a set of these bits. In hooks, too. */
uint32_t rt_fates_doubts(struct rt_fates *f);
/* The taps of all queues that there are have been linked. late: packets were received before;
 * senders: some of them send. Control lock held, as for the next one. */
void rt_fates_follow(struct rt_session *s, bool late, bool senders);
/* In short intervals: notes when there was doubt, and publishes it. */
void rt_fates_watch(struct rt_session *s);

/* Walks the pools: marks the mbufs in their rings, stacks and caches as free. Control lock held. */

/* A part of the walk that is under way, or begins one if it is time for it. */
void rt_fates_walk(struct rt_session *s, uint64_t now_ms);
/* A part of the last one, of a session that is closed: exact once the application rests. True: it
 * is over. */
bool rt_fates_walk_last(struct rt_session *s);

/* The histories of the mbufs of open packets, in every tick: the part of the table that is next.
 * begin: once it is through, the first one again. Nothing without histories. */
void rt_fates_begin_histories(struct rt_fates *f);
void rt_fates_read_histories(struct rt_fates *f);

/* Marks the entry of an mbuf that the walk found free, if the entry is open and its packet was
 * received before since (TSC). spare: as rt_fate_search() has it. */
void rt_fates_mark(
	struct rt_fates *f, const void *mbuf, uint32_t walk, uint64_t since, uint32_t *spare);

#endif
