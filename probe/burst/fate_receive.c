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

/* Received, and without an entry. One that others hold has no id that a record could bear. */
static __rte_noinline void unknown(struct rt_fate_feed *w, const struct rte_mbuf *m, bool outside)
{
	struct rt_seg_count *c = rt_fates_count(w, w->tap);
	struct rt_seg_fate e = {
		.id = rt_fates_id(m), .tsc = w->tsc, .len = m->pkt_len, .outside = outside};

	rt_fates_add(&c->unknown, 1);
	if (w->tap->ids & RT_IDS_EVENTS && !rt_fates_is_shared(m))
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

/* The pool of the packet before, and what find_pool() returns for it. */
struct pool {
	const struct rte_mempool *mp; /* NULL, with 0: none yet */
	uint32_t number;
};

static inline void set_pool(const struct rt_fates *f, struct rt_fate_burst *b, struct pool *last,
	struct rt_seg_fate *e, const struct rte_mempool *mp)
{
	uint32_t p = rt_load(&e->pool);

	if (rt_unlikely(mp != last->mp)) {
		last->mp = mp;
		last->number = p - 1 < RT_FATE_POOLS && rt_load(&f->pools[p - 1]) == mp
				       ? p
				       : find_pool(f, b, mp);
	}
	if (rt_unlikely(p != last->number))
		rt_store(&e->pool, last->number);
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

/* All but tap and state: receive_chunk() sets them. */
static void open_entry(const struct rt_fate_feed *w, struct rt_fate_burst *b, struct rt_seg_fate *e,
	const struct rte_mbuf *m, bool outside)
{
	struct pool none = {NULL, 0};
	uint64_t tags;
	uint32_t tag_len = rt_epb_vlan(m, RT_DIR_RX, &tags);
	uint64_t wire = (uint64_t)m->pkt_len + tag_len;

	rt_store(&e->id, rt_fates_id(m));
	rt_store(&e->tsc, w->tsc);
	rt_store(&e->len, (uint32_t)RTE_MIN(wire, UINT32_MAX));
	rt_store(&e->cap, keep((uint8_t *)(e + 1), m, tags, tag_len, w->f->snap));
	set_pool(w->f, b, &none, e, m->pool);
	rt_store(&e->outside, outside);
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
static inline bool is_simple(const struct rte_mbuf *m, bool bytes)
{
	return m->nb_segs == 1 && !rt_fates_is_shared(m) && !(m->ol_flags & ODD) &&
	       (!bytes || rt_readable_own(m));
}

/* Two neighbouring fields of an entry. */
typedef uint64_t __attribute__((may_alias)) pair;
#define PAIR(e, field) ((pair *)((uint8_t *)(e) + offsetof(struct rt_seg_fate, field)))
#define IS_PAIR(a, b)                                                              \
	(offsetof(struct rt_seg_fate, b) == offsetof(struct rt_seg_fate, a) + 4 && \
		offsetof(struct rt_seg_fate, a) % sizeof(pair) == 0)
static_assert(IS_PAIR(tap, state) && IS_PAIR(len, cap) && IS_PAIR(outside, external), "one store");

static inline pair pair_of(uint32_t first, uint32_t second)
{
#if RTE_BYTE_ORDER == RTE_LITTLE_ENDIAN
	return (pair)second << 32 | first;
#else
	return (pair)first << 32 | second;
#endif
}

/* open_entry() for a simple packet. */
static inline __attribute__((always_inline)) void open_simple(struct rt_seg_fate *e,
	const struct rte_mbuf *m, uint64_t id, uint64_t tsc, uint32_t snap, uint32_t outside)
{
	uint32_t n = RTE_MIN((uint32_t)m->data_len, m->pkt_len);

	n = RTE_MIN(n, snap);
	rt_store(&e->id, id & RT_ID_MASK);
	rt_store(&e->tsc, tsc);
	rt_store(PAIR(e, len), pair_of(m->pkt_len, n));
	rt_store(PAIR(e, outside), pair_of(outside, 0));
	rt_store(&e->reason, 0);
	if (snap)
		rt_copy((uint8_t *)(e + 1), rte_pktmbuf_mtod(m, const uint8_t *), n, false);
}

/* Any other packet. NULL: it has no entry. */
static __rte_noinline struct rt_seg_fate *open_any(
	struct rt_fate_feed *w, struct rt_fate_burst *b, const struct rte_mbuf *m, bool outside)
{
	struct rt_seg_fate *e = rt_fates_is_shared(m) ? NULL : rt_fate_of(w->f, m, true, &w->spare);

	if (rt_unlikely(m->nb_segs > 1))
		receive_rest(w, m);
	if (rt_likely(e != NULL)) {
		take(w, e);
		open_entry(w, b, e, m, outside);
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

static __rte_noinline void find_outside(
	const struct rt_filter *filter, struct rt_fate_chunk *c, struct rte_mbuf **pkts, unsigned n)
{
	struct rte_mbuf *pass[RT_FATE_CHUNK];
	unsigned unreadable = 0, k = 0;
	unsigned passed = rt_filter_burst(filter, RT_DIR_RX, pkts, n, pass, &unreadable);

	for (unsigned i = 0; i < n; i++) {
		if (k < passed && pass[k] == pkts[i])
			k++;
		else
			c->place[i] |= RT_FATE_OUTSIDE;
	}
}

/* Requests the entries, and gives the packets ids; NULL: they have theirs. */
static inline __attribute__((always_inline)) void prepare(const struct rt_fate_feed *w,
	struct rt_ids_run *ids, struct rt_fate_chunk *c, struct rte_mbuf **pkts, unsigned n,
	const bool bytes)
{
	const struct rt_fate_map map = rt_fate_map(w->f);
	const bool stamps = ids;
	struct rt_ids_run run = stamps ? *ids : (struct rt_ids_run){0};

	for (unsigned i = 0; stamps && i < RTE_MIN(n, AHEAD); i++)
		__builtin_prefetch(RTE_MBUF_DYNFIELD(pkts[i], run.offset, void *), 1, 3);
	for (unsigned i = 0; i < n; i++) {
		struct rte_mbuf *m = pkts[i];
		uint32_t place = rt_fate_request(&map, m);
		uint64_t id = stamps ? rt_ids_next(&run) : 0;

		if (stamps && i + AHEAD < n)
			__builtin_prefetch(
				RTE_MBUF_DYNFIELD(pkts[i + AHEAD], run.offset, void *), 1, 3);
		if (rt_unlikely(!is_simple(m, bytes))) {
			place |= RT_FATE_UNUSUAL;
			if (stamps)
				rt_ids_give(m, id);
		} else if (stamps) {
			m->ol_flags |= run.flag;
			*RTE_MBUF_DYNFIELD(m, run.offset, uint64_t *) = id;
		}
		c->place[i] = place;
	}
	if (stamps)
		ids->number = run.number;
	if (rt_unlikely(w->filter != NULL))
		find_outside(w->filter, c, pkts, n);
}

/* For packets that have ids. */
static __rte_noinline void prepare_given(
	const struct rt_fate_feed *w, struct rt_fate_chunk *c, struct rte_mbuf **pkts, unsigned n)
{
	prepare(w, NULL, c, pkts, n, true);
}

static __rte_noinline void receive_unusual(struct rt_fate_feed *w, struct rt_fate_burst *b,
	const struct rte_mbuf *m, uint32_t place, unsigned left)
{
	const bool outside = place & RT_FATE_OUTSIDE;
	struct rt_seg_fate *e = open_any(w, b, m, outside);

	rt_compiler_barrier(); /* as in receive_chunk() */
	b->left = left;
	rt_compiler_barrier();
	if (rt_likely(e != NULL))
		rt_store_release(PAIR(e, tap), pair_of(w->tap->index, RT_FATE_OPEN));
	else
		unknown(w, m, outside);
}

/* Values that do not change within a burst are in locals: with each barrier the compiler must
 * assume that all else has changed. left: packets of the burst behind these. */
static inline __attribute__((always_inline)) void receive_chunk(struct rt_fate_feed *w,
	struct rt_fate_burst *b, const struct rt_fate_chunk *c, struct rte_mbuf **pkts, unsigned n,
	unsigned left, const struct rt_fate_map map, const uint32_t snap)
{
	const struct rt_fates *f = w->f;
	const int32_t id_offset = rt_load(&rt_ids.offset);
	const uint64_t tsc = w->tsc;
	const pair tap_open = pair_of(w->tap->index, RT_FATE_OPEN);
	struct pool last = {NULL, 0};

	for (unsigned i = 0; i < RTE_MIN(n, AHEAD); i++)
		prefetch_data(pkts[i], rt_fate_at(f, c->place[i] & map.mask), snap);
	for (unsigned i = 0; i < n; i++) {
		const struct rte_mbuf *m = pkts[i];
		const uint32_t place = c->place[i];
		struct rt_seg_fate *e = rt_fate_near(&map, place & map.mask, m);

		if (i + AHEAD < n)
			prefetch_data(pkts[i + AHEAD],
				rt_fate_at(f, c->place[i + AHEAD] & map.mask), snap);
		if (rt_unlikely(rt_load(&e->mbuf) != (uintptr_t)m || place & RT_FATE_UNUSUAL)) {
			receive_unusual(w, b, m, place, left + n - 1 - i);
			continue;
		}
		take(w, e);
		open_simple(e, m, *RTE_MBUF_DYNFIELD(m, id_offset, const uint64_t *), tsc, snap,
			place & RT_FATE_OUTSIDE);
		set_pool(f, b, &last, e, m->pool);
		/* Pairs with rt_fates_mark(), which reads the id again once it has stored a
		 * number. */
		rt_store_release(&e->walk, 0);
		/* Before the packet can count again, or counts here: one that a jump leaves between
		 * stays open. */
		rt_compiler_barrier();
		b->left = left + n - 1 - i;
		rt_compiler_barrier();
		rt_store_release(PAIR(e, tap), tap_open);
	}
}

/* From here on a jump is mended. */
static struct rt_fate_burst *begin_burst(const struct rt_fate_feed *w, unsigned n)
{
	struct rt_fate_burst *b = w->r ? &w->f->bursts[w->r->index] : &w->sums->burst;
	struct rt_seg_count *c = &w->counts[w->tap->index];

	b->left = n;
	b->received = c->received + n;
	rt_compiler_barrier();
	b->tap = w->tap->index + 1;
	rt_compiler_barrier();
	if (rt_likely(w->r != NULL))
		rt_fates_add(&c->received, n);
	else /* before its packets count: other threads may see some */
		rt_fetch_add(&c->received, n);
	return b;
}

static void end_burst(struct rt_fate_burst *b)
{
	rt_compiler_barrier();
	b->tap = 0;
}

static void receive_run(struct rt_fate_feed *w, struct rte_mbuf **pkts, unsigned n)
{
	const struct rt_fate_map map = rt_fate_map(w->f);
	struct rt_fate_burst *b = begin_burst(w, n);
	struct rt_fate_chunk c;

	while (n) {
		unsigned chunk = RTE_MIN(n, RT_FATE_CHUNK);

		n -= chunk;
		prepare_given(w, &c, pkts, chunk);
		receive_chunk(w, b, &c, pkts, chunk, n, map, w->f->snap);
		pkts += chunk;
	}
	end_burst(b);
}

void rt_fates_receive_begin(struct rt_fate_feed *w, struct rt_ids_run *ids,
	struct rt_fate_chunk *first, struct rte_mbuf **pkts, unsigned n)
{
	unsigned chunk = RTE_MIN(n, RT_FATE_CHUNK);

	begin_burst(w, n);
	if (w->f->snap)
		prepare(w, ids, first, pkts, chunk, true);
	else
		prepare(w, ids, first, pkts, chunk, false);
	if (rt_unlikely(n > chunk))
		rt_ids_give_all(ids, pkts + chunk, n - chunk);
}

static inline __attribute__((always_inline)) void receive_all(struct rt_fate_feed *w,
	struct rt_fate_chunk *c, struct rte_mbuf **pkts, unsigned n, const struct rt_fate_map map,
	const uint32_t snap)
{
	struct rt_fate_burst *b = &w->f->bursts[w->r->index];

	for (unsigned chunk; n; pkts += chunk) {
		chunk = RTE_MIN(n, RT_FATE_CHUNK);
		n -= chunk;
		receive_chunk(w, b, c, pkts, chunk, n, map, snap);
		if (rt_unlikely(n))
			prepare_given(w, c, pkts + chunk, RTE_MIN(n, RT_FATE_CHUNK));
	}
	end_burst(b);
}

static __rte_noinline void receive_bytes(
	struct rt_fate_feed *w, struct rt_fate_chunk *first, struct rte_mbuf **pkts, unsigned n)
{
	receive_all(w, first, pkts, n, rt_fate_map(w->f), w->f->snap);
}

void rt_fates_receive_end(
	struct rt_fate_feed *w, struct rt_fate_chunk *first, struct rte_mbuf **pkts, unsigned n)
{
	struct rt_fate_map map = rt_fate_map(w->f);

	if (w->f->snap) {
		receive_bytes(w, first, pkts, n);
		return;
	}
	map.stride = sizeof(struct rt_seg_fate); /* a constant */
	receive_all(w, first, pkts, n, map, 0);
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

bool rt_fates_passes_on(struct rt_fate_feed *w, uint16_t port, struct rte_mbuf **pkts, unsigned n)
{
	const uint64_t flag = rt_load(&rt_ids.flag);

	for (unsigned i = 0; i < n; i++) {
		if (rt_unlikely(pkts[i]->ol_flags & flag) &&
			is_passed_on(w->f, pkts[i], port, &w->spare))
			return true;
	}
	return false;
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
