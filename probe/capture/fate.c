/* SPDX-License-Identifier: BSD-3-Clause */
/* See fate.h. All but the making runs in the polling threads. */
#include <string.h>

#include "common/atomics.h"
#include "epb.h"
#include "fate_table.h"
#include "filter.h"
#include "ids.h"
#include "probe/core/hook.h"
#include "probe/core/hook_burst.h"
#include "readable.h"

#define AHEAD      4u /* packets */
#define DATA_LINES 2u /* of an entry that are prefetched */

#define SUMS 8u /* taps; a power of two */

/* Of a burst of a thread without a ring, whose row is that of others as well. */
struct sums {
	uint32_t tap[SUMS]; /* index + 1; 0: none */
	struct rt_seg_count count[SUMS];
};

/* What counts for the packets of one burst. */
struct feed {
	struct rt_fates *f;
	struct rt_ring *r;           /* NULL: the thread has none */
	struct rt_seg_count *counts; /* row of the ring, or of all threads without one */
	struct sums *sums;           /* NULL: the thread has a ring */
	const struct rt_tap *tap;
	const struct rt_filter *filter; /* of received packets; NULL: all have records */
	uint64_t tsc, ns;
	uint32_t spare; /* probes, see fate_table.h */
};

/* Once for each mbuf. False: another one's thread has claimed the entry. */
static bool claimed(struct rt_fates *f, struct rt_seg_fate *e, uint64_t mbuf)
{
	uint64_t there = 0;

	if (!rt_cas(&e->mbuf, &there, mbuf))
		return there == mbuf;
	/* The pools have outgrown the table. */
	if (rt_fetch_add(&f->used, 1) > f->mask / 2)
		rt_store(&f->probes, RTE_MIN(rt_load(&f->probes), RT_FATE_PROBES_SCARCE));
	return true;
}

__rte_noinline struct rt_seg_fate *rt_fate_search(
	struct rt_fates *f, const void *mbuf, bool claim, uint32_t *spare)
{
	const uint64_t key = (uintptr_t)mbuf;
	uint64_t i = rt_fate_place(f, key);
	uint32_t left = *spare + RT_FATE_SPARE_EACH, most = RTE_MIN(rt_load(&f->probes), left);
	struct rt_seg_fate *found = NULL;
	uint32_t n = 0;

	for (bool more = true; more && n < most; n++, i = (i + 1) & f->mask) {
		struct rt_seg_fate *e = rt_fate_at(f, i);
		uint64_t there = rt_load(&e->mbuf);

		if (there == key || (!there && claim && claimed(f, e, key)))
			found = e;
		more = !found && (there || claim);
	}
	*spare = left - n;
	return found;
}

static inline bool is_shared(const struct rte_mbuf *m)
{
	return rte_mbuf_refcnt_read(m) != 1;
}

static inline uint64_t id_in(const struct rte_mbuf *m)
{
	return *RTE_MBUF_DYNFIELD(m, rt_load(&rt_ids.offset), const uint64_t *) & RT_ID_MASK;
}

static inline bool has_flag(const struct rte_mbuf *m)
{
	return m->ol_flags & rt_load(&rt_ids.flag);
}

static inline void add(uint64_t *counter, uint64_t n)
{
	rt_store(counter, *counter + n);
}

static void give_sum(const struct feed *w, uint32_t i)
{
	const uint64_t *from = (const uint64_t *)&w->sums->count[i];
	uint64_t *to;

	if (!w->sums->tap[i])
		return;
	to = (uint64_t *)&w->counts[w->sums->tap[i] - 1];
	for (uint32_t k = 0; k < sizeof(w->sums->count[i]) / sizeof(uint64_t); k++) {
		if (from[k])
			rt_fetch_add(&to[k], from[k]);
	}
	w->sums->tap[i] = 0;
	memset(&w->sums->count[i], 0, sizeof(w->sums->count[i]));
}

static __rte_noinline struct rt_seg_count *sum_of(const struct feed *w, const struct rt_tap *tap)
{
	uint32_t i = tap->index % SUMS;

	if (w->sums->tap[i] != tap->index + 1) {
		give_sum(w, i);
		w->sums->tap[i] = tap->index + 1;
	}
	return &w->sums->count[i];
}

/* Where the thread counts for a tap, until the next call. */
static inline struct rt_seg_count *count_of(const struct feed *w, const struct rt_tap *tap)
{
	return rt_likely(w->r != NULL) ? &w->counts[tap->index] : sum_of(w, tap);
}

/* Where the packet of an entry was received. NULL: the reader has overwritten the entry. */
static inline const struct rt_tap *tap_of(const struct rt_fates *f, const struct rt_seg_fate *e)
{
	uint32_t i = rt_load(&e->tap);
	const struct rt_tap *t;

	if (rt_unlikely(i >= f->tap_capacity))
		return NULL;
	/* Pairs with the release in add_tap(). */
	t = rt_load_acquire(&f->taps[i]);
	return t && t->direction == RT_DIR_RX ? t : NULL;
}

/* ---- records ---- */

static struct rt_epb_kept kept_of(const struct feed *w, const struct rt_tap *tap,
	const struct rt_seg_fate *e, enum rt_fate_event event)
{
	const struct rt_clock_line line = rt_latch_read(&rt_hook_clock);
	struct rt_epb_kept k = {.data = (const uint8_t *)(e + 1),
		.cap = RTE_MIN(rt_load(&e->cap), w->f->snap),
		.len = rt_load(&e->len)};

	if (tap->ids & RT_IDS_EVENTS) {
		k.number = rt_load(&e->id) | tap->id_source;
		k.event = event;
	} else {
		k.number = rt_clock_ns(&line, rt_load(&e->tsc));
	}
	return k;
}

static void write_record(const struct feed *w, const struct rt_tap *tap,
	const struct rt_seg_fate *e, enum rt_fate_event event)
{
	struct rt_epb_kept kept = kept_of(w, tap, e, event);
	struct rt_ring *r = w->r;

	r->open = tap->index + 1;
	rt_compiler_barrier(); /* then the counters: see rt_epb_mend() */
	r->counts[tap->index].seen++;
	if (rt_load(&e->outside))
		r->counts[tap->index].filtered++;
	else if (!rt_epb_kept(r, tap, &kept, w->ns))
		rt_epb_lost(r, tap, 1);
	rt_compiler_barrier();
	r->open = w->tap->index + 1;
}

/* c: what the thread counts for the tap of the reception. */
static __rte_noinline void record(const struct feed *w, const struct rt_tap *tap,
	struct rt_seg_count *c, const struct rt_seg_fate *e, enum rt_fate_event event)
{
	if (rt_likely(w->r != NULL)) {
		write_record(w, tap, e, event);
		return;
	}
	c->seen++;
	if (rt_load(&e->outside))
		c->filtered++;
	else
		c->lost[RT_LOSS_NO_RING]++;
}

/* Of an entry that this thread has settled: no other one writes to it. */
static void not_offered(const struct feed *w, const struct rt_seg_fate *e)
{
	const struct rt_tap *tap = tap_of(w->f, e);
	struct rt_seg_count *c;

	if (rt_unlikely(!tap))
		return;
	c = count_of(w, tap);
	add(&c->not_offered, 1);
	record(w, tap, c, e, RT_EVENT_NOT_OFFERED);
}

/* Whether the packet is to have no record. */
static inline bool is_outside(const struct feed *w, const struct rte_mbuf *m)
{
	struct rte_mbuf *one = (struct rte_mbuf *)(uintptr_t)m, *pass;
	unsigned unreadable = 0;

	return rt_unlikely(w->filter != NULL) &&
	       !rt_filter_burst(w->filter, RT_DIR_RX, &one, 1, &pass, &unreadable);
}

/* Received, and without an entry. One that others hold has no id that a record could bear. */
static __rte_noinline void unknown(const struct feed *w, const struct rte_mbuf *m)
{
	struct rt_seg_count *c = count_of(w, w->tap);
	struct rt_seg_fate e = {.id = id_in(m), .tsc = w->tsc, .len = m->pkt_len};

	add(&c->unknown, 1);
	if (!(w->tap->ids & RT_IDS_EVENTS) || is_shared(m))
		return;
	e.outside = is_outside(w, m);
	record(w, w->tap, c, &e, RT_EVENT_UNKNOWN);
}

/* ---- receiving ---- */

/* The first bytes of the frame as on the wire, as far as the first segment has them. */
static uint32_t keep(
	uint8_t *to, const struct rte_mbuf *m, uint64_t tags, uint32_t tag_len, uint32_t room)
{
	uint32_t n = RTE_MIN((uint32_t)m->data_len, m->pkt_len);
	const uint8_t *from = rte_pktmbuf_mtod(m, const uint8_t *);

	if (!room)
		return 0;
	if (rt_unlikely(!m->nb_segs || !rt_readable(m, RTE_MIN(n, room))))
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

/* Takes an entry from whatever it was. A reader that copies it sees that its state is not open
 * before anything else changes. */
static inline void take(const struct feed *w, struct rt_seg_fate *e)
{
	bool open = rt_load(&e->state) == RT_FATE_OPEN;

	rt_store(&e->state, RT_FATE_SETTLED);
	rt_compiler_barrier(); /* a jump out of the hook must not count it again */
	if (rt_unlikely(open))
		not_offered(w, e);
	rt_fence_release(); /* for readers, which load the state with acquire */
}

static inline void open_entry(const struct feed *w, struct rt_fate_burst *b, struct rt_seg_fate *e,
	const struct rte_mbuf *m)
{
	uint64_t tags;
	uint32_t tag_len = rt_epb_vlan(m, RT_DIR_RX, &tags);
	uint64_t wire = (uint64_t)m->pkt_len + tag_len;

	rt_store(&e->id, id_in(m));
	rt_store(&e->tsc, w->tsc);
	rt_store(&e->tap, w->tap->index);
	rt_store(&e->len, (uint32_t)RTE_MIN(wire, UINT32_MAX));
	rt_store(&e->cap, keep((uint8_t *)(e + 1), m, tags, tag_len, w->f->snap));
	set_pool(w->f, b, e, m->pool);
	rt_store(&e->outside, is_outside(w, m));
	/* Pairs with rt_fates_mark(), which reads the id again once it has stored a number. */
	rt_store_release(&e->walk, 0);
}

/* Mbufs of the other segments: what they were received with before was not offered. */
static __rte_noinline void receive_rest(struct feed *w, const struct rte_mbuf *first)
{
	const struct rte_mbuf *m = first->next;

	for (unsigned segs = first->nb_segs - 1u; m && segs; m = m->next, segs--) {
		struct rt_seg_fate *e = is_shared(m) ? NULL : rt_fate_of(w->f, m, false, &w->spare);

		if (e && rt_load(&e->state) == RT_FATE_OPEN)
			take(w, e);
	}
}

static void prefetch_received(const struct rt_fates *f, const struct rte_mbuf *m)
{
	const uint8_t *e = (const uint8_t *)rt_fate_at(f, rt_fate_place(f, (uintptr_t)m));

	__builtin_prefetch(e, 1, 3);
	if (!f->snap)
		return;
	__builtin_prefetch(rte_pktmbuf_mtod(m, const void *));
	for (uint32_t i = 1; i < DATA_LINES; i++)
		__builtin_prefetch(e + i * RT_CACHE_LINE, 1, 3);
}

static void receive_run(struct feed *w, struct rte_mbuf **pkts, unsigned n)
{
	struct rt_fate_burst none = {0}, *b = w->r ? &w->f->bursts[w->r->index] : &none;
	struct rt_seg_count *c = &w->counts[w->tap->index];

	for (unsigned i = 0; i < RTE_MIN(n, AHEAD); i++)
		prefetch_received(w->f, pkts[i]);
	b->left = n;
	b->received = c->received + n;
	rt_compiler_barrier();
	b->tap = w->tap->index + 1;
	rt_compiler_barrier(); /* from here on, a jump is mended */
	if (rt_likely(w->r != NULL))
		add(&c->received, n);
	else /* before its packets count: other threads may see some */
		rt_fetch_add(&c->received, n);
	for (unsigned i = 0; i < n; i++) {
		const struct rte_mbuf *m = pkts[i];
		struct rt_seg_fate *e = is_shared(m) ? NULL : rt_fate_of(w->f, m, true, &w->spare);

		if (i + AHEAD < n)
			prefetch_received(w->f, pkts[i + AHEAD]);
		if (rt_unlikely(m->nb_segs > 1))
			receive_rest(w, m);
		if (rt_likely(e != NULL)) {
			take(w, e);
			open_entry(w, b, e, m);
		}
		/* Before the packet can count again, or counts here: one that a jump leaves between
		 * stays open. */
		rt_compiler_barrier();
		b->left = n - 1 - i;
		rt_compiler_barrier();
		if (rt_likely(e != NULL))
			rt_store_release(&e->state, RT_FATE_OPEN);
		else
			unknown(w, m);
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

	if (rt_likely(rt_ids_has_port(id_in(m), port)) || !has_flag(m) || is_shared(m))
		return false;
	e = rt_fate_of(f, m, false, spare);
	return e && rt_load(&e->state) == RT_FATE_OPEN && rt_load(&e->id) == id_in(m);
}

/* What is passed on stays the packet of the first reception, and counts nothing here. */
static void receive(struct feed *w, struct rte_mbuf **pkts, unsigned n)
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

/* Of a session that closes. */
static __rte_noinline void receive_last(struct feed *w, struct rte_mbuf **pkts, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		const struct rte_mbuf *m = pkts[i];
		struct rt_seg_fate *e;

		if (is_passed_on(w->f, m, w->tap->port, &w->spare))
			continue;
		e = is_shared(m) ? NULL : rt_fate_of(w->f, m, false, &w->spare);
		if (e && rt_load(&e->state) == RT_FATE_OPEN)
			take(w, e);
		if (rt_unlikely(m->nb_segs > 1))
			receive_rest(w, m);
	}
}

void rt_fates_close(struct rt_fates *f)
{
	rt_store(&f->closing, 1);
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
		if (rt_likely(!has_flag(pkts[i]) || !is_passed_on_to(set, pkts[i], &spare)))
			continue;
		rt_ids_stamp(t, set->port, pkts + from, i - from);
		from = i + 1;
	}
	rt_ids_stamp(t, set->port, pkts + from, n - from);
}

/* ---- sending ---- */

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

/* The packet of an entry that is settled now, by the mbuf that was offered. */
static void count(const struct feed *w, const struct rt_seg_fate *e, const struct rte_mbuf *m)
{
	bool same = id_in(m) == rt_load(&e->id);
	const struct rt_tap *tap = tap_of(w->f, e);
	struct rt_seg_count *c;

	if (rt_unlikely(!tap))
		return;
	c = count_of(w, tap);
	if (rt_likely(has_flag(m) && same)) {
		add(&c->offered, 1);
	} else if (!has_flag(m) && same && m->port != RTE_MBUF_PORT_INVALID &&
		   rt_ids_has_port(id_in(m), m->port)) {
		add(&c->unknown, 1);
		add(&c->inferred, 1);
		if (tap->ids & RT_IDS_EVENTS)
			record(w, tap, c, e, RT_EVENT_INFERRED);
	} else { /* a clone, a copy or a packet of the application was made here, or another port
		  * has received one */
		not_offered(w, e);
	}
}

/* True: the mbuf's entry has its id, it was received as a first segment. */
static inline bool offer(struct feed *w, const struct rte_mbuf *m, bool alone)
{
	struct rt_seg_fate *e = rt_fate_of(w->f, m, false, &w->spare);

	if (!e)
		return false;
	if (rt_load_acquire(&e->state) == RT_FATE_OPEN && settle(e, alone))
		count(w, e, m);
	return rt_load(&e->id) == id_in(m);
}

/* A segment of another mbuf's packet, which is not offered with it. */
static inline bool is_rest(const struct rte_mbuf *m, uint64_t id)
{
	return has_flag(m) && !RTE_MBUF_CLONED(m) && id_in(m) != id && id_in(m);
}

static void offer_packet(struct feed *w, const struct rte_mbuf *m)
{
	uint64_t id = 0; /* of this packet, once it is known */
	bool rest = false;

	for (unsigned segs = m->nb_segs; m && segs; m = m->next, segs--) {
		bool alone = !is_shared(m);

		/* Who gave back the reference of a clone had settled the entry before. */
		rt_fence_acquire();
		if (offer(w, m, alone))
			id = id_in(m);
		else
			rest |= is_rest(m, id);
		if (rt_unlikely(RTE_MBUF_CLONED(m)))
			offer(w, rte_mbuf_from_indirect((struct rte_mbuf *)(uintptr_t)m), false);
	}
	if (rt_unlikely(rest) && !rt_load(&w->f->closing)) /* later ones have ids and no entry */
		add(&count_of(w, w->tap)->rest_offered, 1);
}

static void send(struct feed *w, struct rte_mbuf **pkts, unsigned n)
{
	for (unsigned i = 0; i < RTE_MIN(n, AHEAD); i++)
		rt_fates_prefetch(w->f, pkts[i]);
	for (unsigned i = 0; i < n; i++) {
		if (i + AHEAD < n)
			rt_fates_prefetch(w->f, pkts[i + AHEAD]);
		offer_packet(w, pkts[i]);
	}
}

static void feed(struct feed *w, struct rte_mbuf **pkts, unsigned n)
{
	if (w->tap->direction == RT_DIR_TX)
		send(w, pkts, n);
	else if (rt_unlikely(rt_load(&w->f->closing)))
		receive_last(w, pkts, n);
	else
		receive(w, pkts, n);
}

/* Of threads without a ring: atomic additions, a few for each burst. */
static __rte_noinline void feed_alone(struct feed *w, struct rte_mbuf **pkts, unsigned n)
{
	struct sums sums = {0};

	w->sums = &sums;
	w->counts = w->tap->session->orphans;
	feed(w, pkts, n);
	for (uint32_t i = 0; i < SUMS; i++)
		give_sum(w, i);
}

void rt_fates_feed(struct rt_ring *r, const struct rt_tap *tap, struct rte_mbuf **pkts, unsigned n,
	uint64_t ns)
{
	struct feed w = {.f = tap->session->fates,
		.r = r,
		.tap = tap,
		/* Load it once. Pairs with the release in rt_session_set_filter(). */
		.filter = rt_load_acquire(&tap->filter),
		.tsc = rt_tsc(),
		.ns = ns,
		.spare = RT_FATE_SPARE};

	if (rt_unlikely(!r)) {
		feed_alone(&w, pkts, n);
		return;
	}
	w.counts = r->counts;
	w.ns = r->last_ns = RTE_MAX(ns, r->last_ns);
	r->open = tap->index + 1;
	rt_compiler_barrier(); /* then the counters: see rt_fates_mend() */
	feed(&w, pkts, n);
	rt_ring_publish(r);
	r->open = 0;
}

void rt_fates_mend(const struct rt_fates *f, struct rt_ring *r)
{
	struct rt_fate_burst *b = &f->bursts[r->index];

	if (b->tap) {
		r->counts[b->tap - 1].received = b->received;
		r->counts[b->tap - 1].unknown += b->left;
	}
	b->tap = 0;
}
