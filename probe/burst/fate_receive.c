/* SPDX-License-Identifier: BSD-3-Clause */
/* Received packets: see fate.h. Runs in the polling threads. */
#include <string.h>

#include "probe/capture/fate_feed.h"
#include "probe/capture/filter.h"
#include "probe/hook/hook.h"
#include "probe/capture/readable.h"

#define AHEAD 4u /* packets */

/* The first bytes of the frame as on the wire, as far as the first segment has them. */
static uint32_t keep(
	uint8_t *to, const struct rte_mbuf *m, uint64_t tags, uint32_t tag_len, uint32_t room)
{
	uint32_t n = RTE_MIN((uint32_t)m->data_len, m->pkt_len);
	const uint8_t *from = rte_pktmbuf_mtod(m, const uint8_t *);

	if (!room || rt_unlikely(!m->nb_segs || !rt_readable(m, RTE_MIN(n, room))))
		return 0;
	if (rt_unlikely(tag_len && n >= RT_MAC_BYTES)) {
		memcpy(to, from, RT_MAC_BYTES);
		memcpy(to + RT_MAC_BYTES, &tags, tag_len);
		n = RTE_MIN(n - RT_MAC_BYTES, room - RT_MAC_BYTES - tag_len);
		memcpy(to + RT_MAC_BYTES + tag_len, from + RT_MAC_BYTES, n);
		return n + RT_MAC_BYTES + tag_len;
	}
	n = RTE_MIN(n, room);
	memcpy(to, from, n);
	return n;
}

/* Whether the packet is to have no record. */
static bool is_outside(const struct rt_fate_feed *w, const struct rte_mbuf *m)
{
	struct rte_mbuf *one = (struct rte_mbuf *)(uintptr_t)m, *pass;
	unsigned unreadable = 0;

	return rt_unlikely(w->filter != NULL) &&
	       !rt_filter_burst(w->filter, RT_DIR_RX, &one, 1, &pass, &unreadable);
}

/* Received, and without an entry. One that others hold has no id that a record could bear. */
static __rte_noinline void unknown(const struct rt_fate_feed *w, const struct rte_mbuf *m)
{
	struct rt_seg_count *c = rt_fates_count(w, w->tap);
	struct rt_seg_fate e = {.id = rt_fates_id(m), .tsc = w->tsc, .len = m->pkt_len};

	rt_fates_add(&c->unknown, 1);
	if (!(w->tap->ids & RT_IDS_EVENTS) || rt_fates_is_shared(m))
		return;
	e.outside = is_outside(w, m);
	rt_fates_record(w, w->tap, c, &e, RT_EVENT_UNKNOWN);
}

/* 1 + number of the pool; 0: not known yet. */
static __rte_noinline uint32_t find_pool(
	const struct rt_fates *f, struct rt_fate_burst *b, const struct rte_mempool *mp)
{
	/* Pairs with the release in add_pool(): the pools of this version are seen. */
	uint32_t version = rt_load_acquire(&f->pool_version), n = rt_load(&f->pool_count);

	if (!mp || (mp == b->missed && version == b->missed_version))
		return 0;
	for (uint32_t i = 0; i < n; i++) {
		if (rt_load(&f->pools[i]) == mp)
			return i + 1;
	}
	b->missed = mp;
	b->missed_version = version;
	return 0;
}

static inline void set_pool(const struct rt_fates *f, struct rt_fate_burst *b,
	struct rt_seg_fate *e, const struct rte_mempool *mp)
{
	uint32_t p = rt_load(&e->pool);

	if (rt_unlikely(p - 1 >= RT_FATE_POOLS || rt_load(&f->pools[p - 1]) != mp || !mp))
		rt_store(&e->pool, find_pool(f, b, mp));
}

static __rte_noinline void take_open(struct rt_fate_feed *w, struct rt_seg_fate *e)
{
	rt_store(&e->state, RT_FATE_SETTLED);
	rt_compiler_barrier(); /* a jump out of the hook must not count it again */
	rt_fates_not_offered(w, e);
}

/* Takes an entry from whatever it was. A reader that copies it sees that its state is not open
 * before anything else changes. */
static inline void take(struct rt_fate_feed *w, struct rt_seg_fate *e)
{
	if (rt_unlikely(rt_load(&e->state) == RT_FATE_OPEN))
		take_open(w, e);
	rt_fence_release(); /* for readers, which load the state with acquire */
}

/* Lent by a driver, which gives the mbuf back while a clone has the buffer. False in pools whose
 * mbufs have their buffers for good: see offer_external(). */
static bool is_lent(const struct rte_mbuf *m)
{
	return m->ol_flags & RTE_MBUF_F_EXTERNAL && !(m->pool && RTE_MBUF_HAS_PINNED_EXTBUF(m));
}

static void open_entry(const struct rt_fate_feed *w, struct rt_fate_burst *b, struct rt_seg_fate *e,
	const struct rte_mbuf *m)
{
	uint64_t tags;
	uint32_t tag_len = rt_epb_vlan(m, RT_DIR_RX, &tags);
	uint64_t wire = (uint64_t)m->pkt_len + tag_len;

	rt_store(&e->id, rt_fates_id(m));
	rt_store(&e->tsc, w->tsc);
	rt_store(&e->tap, w->tap->index);
	rt_store(&e->len, (uint32_t)RTE_MIN(wire, UINT32_MAX));
	rt_store(&e->cap, keep((uint8_t *)(e + 1), m, tags, tag_len, w->f->snap));
	set_pool(w->f, b, e, m->pool);
	rt_store(&e->outside, is_outside(w, m));
	rt_store(&e->external, is_lent(m));
	rt_store(&e->reason, 0);
	rt_store_release(&e->walk, 0); /* as in receive_chunk() */
}

/* Mbufs of the other segments: what they were received with before was not offered. */
static __rte_noinline void receive_rest(struct rt_fate_feed *w, const struct rte_mbuf *first)
{
	const struct rte_mbuf *m = first->next;

	for (unsigned segs = first->nb_segs - 1u; m && segs; m = m->next, segs--) {
		struct rt_seg_fate *e =
			rt_fates_is_shared(m) ? NULL : rt_fate_of(w->f, m, false, &w->spare);

		if (e && rt_load(&e->state) == RT_FATE_OPEN)
			take(w, e);
	}
}

/* Flags of packets that have more than the bytes of one buffer behind their mbuf. */
#define ODD (RTE_MBUF_F_RX_VLAN_STRIPPED | RTE_MBUF_F_RX_QINQ_STRIPPED | RTE_MBUF_F_EXTERNAL)

/* One segment, of which others hold no reference, and that can be copied as it is. */
static inline bool is_simple(const struct rte_mbuf *m)
{
	return m->nb_segs == 1 && !rt_fates_is_shared(m) && !(m->ol_flags & ODD) &&
	       rt_readable_own(m);
}

/* open_entry() for a simple packet. */
static inline __attribute__((always_inline)) void open_simple(struct rt_seg_fate *e,
	const struct rte_mbuf *m, int32_t id_offset, uint64_t tsc, uint32_t tap, uint32_t snap)
{
	uint32_t n = RTE_MIN((uint32_t)m->data_len, m->pkt_len);

	rt_store(&e->id, *RTE_MBUF_DYNFIELD(m, id_offset, const uint64_t *) & RT_ID_MASK);
	rt_store(&e->tsc, tsc);
	rt_store(&e->tap, tap);
	rt_store(&e->len, m->pkt_len);
	n = RTE_MIN(n, snap);
	rt_store(&e->cap, n);
	rt_store(&e->outside, 0);
	rt_store(&e->external, 0);
	rt_store(&e->reason, 0);
	rt_copy((uint8_t *)(e + 1), rte_pktmbuf_mtod(m, const uint8_t *), n, false);
}

/* Any other packet. NULL: it has no entry. */
static __rte_noinline struct rt_seg_fate *open_any(
	struct rt_fate_feed *w, struct rt_fate_burst *b, const struct rte_mbuf *m)
{
	struct rt_seg_fate *e = rt_fates_is_shared(m) ? NULL : rt_fate_of(w->f, m, true, &w->spare);

	if (rt_unlikely(m->nb_segs > 1))
		receive_rest(w, m);
	if (rt_likely(e != NULL)) {
		take(w, e);
		open_entry(w, b, e, m);
	}
	return e;
}

static inline void prefetch_data(
	const struct rte_mbuf *m, const struct rt_seg_fate *e, uint32_t snap)
{
	if (!snap)
		return;
	__builtin_prefetch(rte_pktmbuf_mtod(m, const void *));
	__builtin_prefetch(e + 1, 1, 3);
}

/* Values that do not change within a burst are in locals: with each barrier the compiler must
 * assume that all else has changed. left: packets of the burst behind these. */
static void receive_chunk(struct rt_fate_feed *w, struct rt_fate_burst *b, struct rte_mbuf **pkts,
	unsigned n, unsigned left)
{
	const struct rt_fates *f = w->f;
	const uint32_t tap = w->tap->index, snap = f->snap;
	const int32_t id_offset = rt_load(&rt_ids.offset);
	const uint64_t tsc = w->tsc;
	const bool filtered = w->filter;
	struct rt_seg_fate *place[RT_FATE_CHUNK], *e;

	rt_fates_places(f, pkts, n, place);
	for (unsigned i = 0; i < RTE_MIN(n, AHEAD); i++)
		prefetch_data(pkts[i], place[i], snap);
	for (unsigned i = 0; i < n; i++) {
		const struct rte_mbuf *m = pkts[i];

		e = place[i];
		if (i + AHEAD < n)
			prefetch_data(pkts[i + AHEAD], place[i + AHEAD], snap);
		if (rt_likely(rt_load(&e->mbuf) == (uintptr_t)m && !filtered && is_simple(m))) {
			take(w, e);
			open_simple(e, m, id_offset, tsc, tap, snap);
			set_pool(f, b, e, m->pool);
			/* Pairs with rt_fates_mark(), which reads the id again once it has stored a
			 * number. */
			rt_store_release(&e->walk, 0);
		} else {
			e = open_any(w, b, m);
		}
		/* Before the packet can count again, or counts here: one that a jump leaves between
		 * stays open. */
		rt_compiler_barrier();
		b->left = left + n - 1 - i;
		rt_compiler_barrier();
		if (rt_likely(e != NULL))
			rt_store_release(&e->state, RT_FATE_OPEN);
		else
			unknown(w, m);
	}
}

static void receive_run(struct rt_fate_feed *w, struct rte_mbuf **pkts, unsigned n)
{
	struct rt_fate_burst *b = w->r ? &w->f->bursts[w->r->index] : &w->sums->burst;
	struct rt_seg_count *c = &w->counts[w->tap->index];

	b->left = n;
	b->received = c->received + n;
	rt_compiler_barrier();
	b->tap = w->tap->index + 1;
	rt_compiler_barrier(); /* from here on, a jump is mended */
	if (rt_likely(w->r != NULL))
		rt_fates_add(&c->received, n);
	else /* before its packets count: other threads may see some */
		rt_fetch_add(&c->received, n);
	while (n) {
		unsigned chunk = RTE_MIN(n, RT_FATE_CHUNK);

		n -= chunk;
		receive_chunk(w, b, pkts, chunk, n);
		pkts += chunk;
	}
	rt_compiler_barrier();
	b->tap = 0;
}

/* Bonding and failsafe drivers receive from other ports of the process: a hook has had the packet,
 * and neither it nor the mbuf has been anywhere since. */
static inline bool is_passed_on(
	struct rt_fates *f, const struct rte_mbuf *m, uint16_t port, uint32_t *spare)
{
	const struct rt_seg_fate *e;

	if (rt_likely(rt_ids_has_port(rt_fates_id(m), port)) || !rt_fates_has_flag(m) ||
		rt_fates_is_shared(m))
		return false;
	e = rt_fate_of(f, m, false, spare);
	return e && rt_load(&e->state) == RT_FATE_OPEN && rt_load(&e->id) == rt_fates_id(m);
}

/* A packet that is passed on stays that of the first reception, and is not counted here. */
static void receive_first(struct rt_fate_feed *w, struct rte_mbuf **pkts, unsigned n)
{
	unsigned from = 0;

	for (unsigned i = 0; i < n; i++) {
		if (rt_likely(!is_passed_on(w->f, pkts[i], w->tap->port, &w->spare)))
			continue;
		if (from < i)
			receive_run(w, pkts + from, i - from);
		from = i + 1;
	}
	if (from < n)
		receive_run(w, pkts + from, n - from);
}

/* For a session that closes. */
static __rte_noinline void receive_last(struct rt_fate_feed *w, struct rte_mbuf **pkts, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		const struct rte_mbuf *m = pkts[i];
		struct rt_seg_fate *e;

		if (is_passed_on(w->f, m, w->tap->port, &w->spare))
			continue;
		e = rt_fates_is_shared(m) ? NULL : rt_fate_of(w->f, m, false, &w->spare);
		if (e && rt_load(&e->state) == RT_FATE_OPEN)
			take(w, e);
		if (rt_unlikely(m->nb_segs > 1))
			receive_rest(w, m);
	}
}

void rt_fates_receive(struct rt_fate_feed *w, struct rte_mbuf **pkts, unsigned n)
{
	if (rt_unlikely(rt_load(&w->f->closing)))
		receive_last(w, pkts, n);
	else
		receive_first(w, pkts, n);
}

static bool is_passed_on_to(const struct rt_tapset *set, const struct rte_mbuf *m, uint32_t *spare)
{
	for (uint32_t i = 0; i < set->count; i++) {
		const struct rt_tap *tap = set->tap[i];

		if (tap->ids & RT_IDS_FATES &&
			is_passed_on(tap->session->fates, m, set->port, spare))
			return true;
	}
	return false;
}

void rt_fates_stamp(
	const struct rt_tapset *set, struct rt_thread *t, struct rte_mbuf **pkts, unsigned n)
{
	uint32_t spare = RT_FATE_SPARE;
	unsigned from = 0;

	for (unsigned i = 0; i < n; i++) {
		if (rt_likely(
			    !rt_fates_has_flag(pkts[i]) || !is_passed_on_to(set, pkts[i], &spare)))
			continue;
		rt_ids_stamp(t, set->port, pkts + from, i - from);
		from = i + 1;
	}
	rt_ids_stamp(t, set->port, pkts + from, n - from);
}
