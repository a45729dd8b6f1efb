/* SPDX-License-Identifier: BSD-3-Clause */
/* Sent packets: see fate.h. Runs in the polling threads. */
#include "probe/capture/fate_feed.h"
#include "probe/dpdk/vhost.h"
#include "probe/dpdk/mempools.h"

/* True for the one thread that settles it. Others may have the same mbuf, or clones of it. */
static bool settle(struct rt_seg_fate *e, bool alone)
{
	uint32_t open = RT_FATE_OPEN;

	if (!alone)
		return rt_cas(&e->state, &open, RT_FATE_SETTLED);
	rt_store(&e->state, RT_FATE_SETTLED);
	rt_compiler_barrier();
	return true;
}

/* Reset as by rte_pktmbuf_alloc(), also if the packet is the received one. VPP, which keeps its
 * own lists of free mbufs, resets those of packets that it has made, and of received ones that it
 * has put together. What comes from a guest never had a port. */
static bool is_reset_in_doubt(const struct rte_mbuf *m, uint16_t port)
{
	return !rt_fates_has_flag(m) && m->port == RTE_MBUF_PORT_INVALID && m->pool &&
	       (rt_port_is_vhost(port) || rt_mempool_is_foreign(m->pool));
}

/* The packet of an entry that is settled now, by the mbuf that was offered. */
static void count(struct rt_fate_feed *w, const struct rt_seg_fate *e, const struct rte_mbuf *m)
{
	bool same = rt_fates_id(m) == rt_load(&e->id);
	const struct rt_tap *tap = rt_fates_tap(w->f, rt_load(&e->tap));
	struct rt_seg_count *c;

	if (rt_unlikely(!tap))
		return;
	c = rt_fates_count(w, tap);
	if (rt_likely(rt_fates_has_flag(m) && same)) {
		rt_fates_add(&c->offered, 1);
	} else if (same && rt_fates_is_reset(m)) {
		rt_fates_add(&c->unknown, 1);
		rt_fates_add(&c->inferred, 1);
		if (tap->ids & RT_IDS_EVENTS)
			rt_fates_record(w, tap, c, e, RT_EVENT_INFERRED);
	} else if (same && is_reset_in_doubt(m, rt_load(&tap->port))) {
		rt_fates_add(&c->unknown, 1);
		if (tap->ids & RT_IDS_EVENTS)
			rt_fates_record(w, tap, c, e, RT_EVENT_UNKNOWN);
	} else { /* a clone, a copy or a packet of the application was made here, or another port
		  * has received one */
		rt_fates_not_offered(w, e);
	}
}

/* True: the mbuf's entry has its id, it was received as a first segment. */
static inline bool offer(struct rt_fate_feed *w, const struct rte_mbuf *m, bool alone)
{
	struct rt_seg_fate *e = rt_fate_of(w->f, m, false, &w->spare);

	if (!e)
		return false;
	if (rt_load_acquire(&e->state) == RT_FATE_OPEN && settle(e, alone))
		count(w, e, m);
	return rt_load(&e->id) == rt_fates_id(m);
}

/* A segment of another mbuf's packet, which is not offered with it. */
static inline bool is_rest(const struct rte_mbuf *m, uint64_t id)
{
	return rt_fates_has_flag(m) && !RTE_MBUF_CLONED(m) && rt_fates_id(m) != id &&
	       rt_fates_id(m);
}

/* A clone of a packet in an external buffer, which it shares with an mbuf that it does not name:
 * only a pool whose mbufs have such buffers for good (rte_pktmbuf_pool_create_extbuf()) puts it
 * into the shared information. That is the buffer's owner's otherwise, and then compared only. */
static bool offer_external(struct rt_fate_feed *w, const struct rte_mbuf *m)
{
	uint64_t id = rt_fates_id(m);
	struct rt_seg_fate *e;

	if (!rt_fates_has_flag(m) || !id)
		return false;
	e = m->shinfo ? rt_fate_of(w->f, m->shinfo->fcb_opaque, false, &w->spare) : NULL;
	if (!e || rt_load(&e->id) != id) {
		rt_fates_note_stray(w->f, id);
		return false;
	}
	if (rt_load_acquire(&e->state) == RT_FATE_OPEN && settle(e, false))
		count(w, e, m);
	return true;
}

static __rte_noinline void offer_packet(struct rt_fate_feed *w, const struct rte_mbuf *m)
{
	uint64_t id = 0; /* this packet's, once it is known */
	bool rest = false;

	for (unsigned segs = m->nb_segs; m && segs; m = m->next, segs--) {
		bool external = m->ol_flags & RTE_MBUF_F_EXTERNAL;
		bool alone = !rt_fates_is_shared(m) && !external;

		/* A thread that gave back the reference of a clone settled the entry before. */
		rt_fence_acquire();
		if (offer(w, m, alone))
			id = rt_fates_id(m);
		else if (!external || !offer_external(w, m))
			rest |= is_rest(m, id);
		if (rt_unlikely(RTE_MBUF_CLONED(m)))
			offer(w, rte_mbuf_from_indirect((struct rte_mbuf *)(uintptr_t)m), false);
	}
	if (rt_unlikely(rest) && !rt_load(&w->f->closing)) /* later ones have ids and no entry */
		rt_fates_add(&rt_fates_count(w, w->tap)->rest_offered, 1);
}

/* Where the packet before was received, in registers: to add to a counter in memory, packet by
 * packet, takes as long as all else. */
struct origin {
	uint32_t tap; /* index; UINT32_MAX: none */
	struct rt_seg_count *count;
	uint64_t offered; /* as stored in count */
};

/* NULL: the entry's tap is none. */
static __rte_noinline struct rt_seg_count *count_at(const struct rt_fate_feed *w, uint32_t i)
{
	const struct rt_tap *tap = rt_fates_tap(w->f, i);

	return tap ? &w->counts[tap->index] : NULL;
}

/* A packet of one segment that nobody else has, with an id, as it was received. False: it is
 * something else, and nothing has been done. */
static inline __attribute__((always_inline)) bool offer_simple(const struct rt_fate_feed *w,
	struct origin *o, const struct rte_mbuf *m, struct rt_seg_fate *e, uint64_t flag,
	int32_t id_offset)
{
	const uint64_t *id = RTE_MBUF_DYNFIELD(m, id_offset, const uint64_t *);
	uint32_t tap;

	if (rt_unlikely(
		    rt_load(&e->mbuf) != (uintptr_t)m || m->nb_segs != 1 ||
		    (m->ol_flags & (flag | RTE_MBUF_F_INDIRECT | RTE_MBUF_F_EXTERNAL)) != flag ||
		    rt_fates_is_shared(m)))
		return false;
	rt_fence_acquire(); /* as in offer_packet() */
	if (rt_unlikely(rt_load_acquire(&e->state) != RT_FATE_OPEN ||
			(*id & RT_ID_MASK) != rt_load(&e->id)))
		return false;
	tap = rt_load(&e->tap);
	if (rt_unlikely(tap != o->tap)) {
		o->count = count_at(w, tap);
		if (rt_unlikely(!o->count))
			return false;
		o->tap = tap;
		o->offered = o->count->offered;
	}
	rt_store(&e->state, RT_FATE_SETTLED);
	rt_compiler_barrier(); /* as in settle() */
	rt_store(&o->count->offered, ++o->offered);
	return true;
}

/* By a thread with a ring: no other one writes to its counters. */
static void send_chunk(
	struct rt_fate_feed *w, const struct rt_fate_chunk *c, struct rte_mbuf **pkts, unsigned n)
{
	const uint64_t flag = rt_load(&rt_ids.flag);
	const int32_t id_offset = rt_load(&rt_ids.offset);
	const struct rt_fate_map map = rt_fate_map(w->f);
	struct origin o = {.tap = UINT32_MAX};

	for (unsigned i = 0; i < n; i++) {
		struct rt_seg_fate *e = rt_fate_near(&map, c->place[i], pkts[i]);

		if (rt_likely(offer_simple(w, &o, pkts[i], e, flag, id_offset)))
			continue;
		offer_packet(w, pkts[i]);
		o.tap = UINT32_MAX; /* the packet may have counted there */
	}
}

void rt_fates_send_begin(const struct rt_fate_feed *w, struct rt_fate_chunk *first,
	struct rte_mbuf **pkts, unsigned n)
{
	const struct rt_fate_map map = rt_fate_map(w->f);

	for (unsigned i = 0; i < RTE_MIN(n, RT_FATE_CHUNK); i++)
		first->place[i] = rt_fate_request(&map, pkts[i]);
}

void rt_fates_send_end(
	struct rt_fate_feed *w, struct rt_fate_chunk *first, struct rte_mbuf **pkts, unsigned n)
{
	while (n) {
		unsigned chunk = RTE_MIN(n, RT_FATE_CHUNK);

		send_chunk(w, first, pkts, chunk);
		pkts += chunk;
		n -= chunk;
		if (rt_unlikely(n))
			rt_fates_send_begin(w, first, pkts, n);
	}
}

void rt_fates_send(struct rt_fate_feed *w, struct rte_mbuf **pkts, unsigned n)
{
	struct rt_fate_chunk first;

	if (rt_likely(w->r != NULL)) {
		rt_fates_send_begin(w, &first, pkts, n);
		rt_fates_send_end(w, &first, pkts, n);
		return;
	}
	for (unsigned i = 0; i < n; i++)
		offer_packet(w, pkts[i]);
}
