/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What fate.c, fate_receive.c and fate_send.c share: the hooks' part of fates.
 */
#ifndef RINGTAP_PROBE_CAPTURE_FATE_FEED_H
#define RINGTAP_PROBE_CAPTURE_FATE_FEED_H

#include "copy_bytes.h"
#include "epb.h"
#include "fate_table.h"
#include "ids.h"

#define RT_FATE_CHUNK 32u /* packets, the entries of which are fetched together */
#define RT_FATE_SUMS  8u  /* taps; a power of two */

/* Sums of one burst of a thread without a ring: its row of counters is shared with other threads.
 */
struct rt_fate_sums {
	uint32_t tap[RT_FATE_SUMS]; /* index + 1; 0: none */
	struct rt_seg_count count[RT_FATE_SUMS];
	struct rt_fate_burst burst;
};

/* Facts about the packets of a chunk that are found before their entries are used. */
struct rt_fate_chunk {
	uint32_t place[RT_FATE_CHUNK]; /* the first one of each mbuf; its line is requested */
};
/* Bits in the place of a received packet: */
#define RT_FATE_UNUSUAL (1u << 31) /* open_simple() is not for it */
#define RT_FATE_OUTSIDE (1u << 30) /* the filter refuses it */
static_assert(RT_FATE_BITS_MAX < 30, "bits above the place are free");

/* Facts that hold for all packets of one burst. */
struct rt_fate_feed {
	struct rt_fates *f;
	struct rt_ring *r;           /* NULL: the thread has none */
	struct rt_seg_count *counts; /* row of the ring, or of all threads without one */
	struct rt_fate_sums *sums;   /* NULL: the thread has a ring */
	const struct rt_tap *tap;
	const struct rt_filter *filter; /* filter of received packets; NULL: all have records */
	uint64_t tsc;                   /* time of the burst */
	uint64_t ns;                    /* time of its records, once it has begun */
	bool begun;                     /* the ring is busy: the burst has records */
	uint32_t spare;                 /* probes, see fate_table.h */
	uint32_t doubts;                /* rt_fates_doubts(), and that it was asked for */
};

/* Counters of a tap that is not among the cached sums of a thread without a ring. */
struct rt_seg_count *rt_fates_sum(const struct rt_fate_feed *w, const struct rt_tap *tap);

/* Counts and records the packet of an entry that this thread has settled: no other one writes to
 * it. Where it may have been sent unnoticed, it is unknown. */
void rt_fates_not_offered(struct rt_fate_feed *w, const struct rt_seg_fate *e);
/* A packet with this id was offered in an mbuf that does not lead to the one it was received in. */
void rt_fates_note_stray(struct rt_fates *f, uint64_t id);

/* Writes a record of it, or counts that there is none. c: what the thread counts for the tap of the
 * reception. */
void rt_fates_record(struct rt_fate_feed *w, const struct rt_tap *tap, struct rt_seg_count *c,
	const struct rt_seg_fate *e, enum rt_fate_event event);
/* Whether the port passes some of n packets on that another port has received. */
bool rt_fates_passes_on(struct rt_fate_feed *w, uint16_t port, struct rte_mbuf **pkts, unsigned n);

void rt_fates_receive(struct rt_fate_feed *w, struct rte_mbuf **pkts, unsigned n);
void rt_fates_send(struct rt_fate_feed *w, struct rte_mbuf **pkts, unsigned n);

/* The same by a thread with a ring, in two steps. The first one counts received packets and gives
 * them these ids; first: of the first chunk. */
__attribute__((nonnull)) void rt_fates_receive_begin(struct rt_fate_feed *w, struct rt_ids_run *ids,
	struct rt_fate_chunk *first, struct rte_mbuf **pkts, unsigned n);
void rt_fates_receive_end(
	struct rt_fate_feed *w, struct rt_fate_chunk *first, struct rte_mbuf **pkts, unsigned n);
void rt_fates_send_begin(const struct rt_fate_feed *w, struct rt_fate_chunk *first,
	struct rte_mbuf **pkts, unsigned n);
void rt_fates_send_end(
	struct rt_fate_feed *w, struct rt_fate_chunk *first, struct rte_mbuf **pkts, unsigned n);

/* A burst between rt_fates_begin() and rt_fates_end(). */
struct rt_fate_visit {
	struct rt_fate_feed w;
	struct rt_ids_run ids; /* for received packets */
	struct rt_fate_chunk first;
};

static inline bool rt_fates_is_shared(const struct rte_mbuf *m)
{
	return rte_mbuf_refcnt_read(m) != 1;
}

static inline uint64_t rt_fates_id(const struct rte_mbuf *m)
{
	return *RTE_MBUF_DYNFIELD(m, rt_load(&rt_ids.offset), const uint64_t *) & RT_ID_MASK;
}

static inline bool rt_fates_has_flag(const struct rte_mbuf *m)
{
	return m->ol_flags & rt_load(&rt_ids.flag);
}

/* The application has reset the flags of a received packet. */
static inline bool rt_fates_is_reset(const struct rte_mbuf *m)
{
	return !rt_fates_has_flag(m) && m->port != RTE_MBUF_PORT_INVALID &&
	       rt_ids_has_port(rt_fates_id(m), m->port);
}

static inline void rt_fates_add(uint64_t *counter, uint64_t n)
{
	rt_store(counter, *counter + n);
}

/* Where the thread counts for a tap, until the next call. */
static inline struct rt_seg_count *rt_fates_count(
	const struct rt_fate_feed *w, const struct rt_tap *tap)
{
	return rt_likely(w->r != NULL) ? &w->counts[tap->index] : rt_fates_sum(w, tap);
}

/* The tap of an entry: where its packet was received. NULL: the reader has overwritten it. */
static inline const struct rt_tap *rt_fates_tap(const struct rt_fates *f, uint32_t i)
{
	const struct rt_tap *t;

	if (rt_unlikely(i >= f->tap_capacity))
		return NULL;
	/* Pairs with the release in add_tap(). */
	t = rt_load_acquire(&f->taps[i]);
	return t && t->direction == RT_DIR_RX ? t : NULL;
}

#endif
