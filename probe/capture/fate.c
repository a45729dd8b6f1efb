/* SPDX-License-Identifier: BSD-3-Clause */
/* See fate.h. All but the making runs in the polling threads. */
#include <string.h>

#include "common/atomics.h"
#include "fate_feed.h"
#include "probe/hook/hook.h"

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

static void give_sum(const struct rt_fate_feed *w, uint32_t i)
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

__rte_noinline struct rt_seg_count *rt_fates_sum(
	const struct rt_fate_feed *w, const struct rt_tap *tap)
{
	uint32_t i = tap->index % RT_FATE_SUMS;

	if (w->sums->tap[i] != tap->index + 1) {
		give_sum(w, i);
		w->sums->tap[i] = tap->index + 1;
	}
	return &w->sums->count[i];
}

/* ---- records ---- */

static struct rt_epb_kept kept_of(const struct rt_fate_feed *w, const struct rt_tap *tap,
	const struct rt_seg_fate *e, enum rt_fate_event event)
{
	const struct rt_clock_line line = rt_latch_read(&rt_hook_clock);
	struct rt_epb_kept k = {.data = (const uint8_t *)(e + 1),
		.cap = RTE_MIN(rt_load(&e->cap), w->f->snap),
		.len = rt_load(&e->len),
		.reason = rt_load(&e->reason) & RT_REASON_MASK};

	if (tap->ids & RT_IDS_EVENTS) {
		k.number = rt_load(&e->id) | tap->id_source;
		k.event = event;
	} else {
		k.number = rt_clock_ns(&line, rt_load(&e->tsc));
	}
	return k;
}

/* Busy, then the time: see reader/capture/merge.c. */
static void begin_ring(struct rt_fate_feed *w)
{
	struct rt_clock_line line;
	uint64_t ns;

	rt_ring_begin(w->r);
	rt_compiler_barrier();
	line = rt_latch_read(&rt_hook_clock);
	ns = rt_clock_now(&line);
	w->ns = w->r->last_ns = RTE_MAX(ns, w->r->last_ns);
	w->begun = true;
}

static void write_record(struct rt_fate_feed *w, const struct rt_tap *tap,
	const struct rt_seg_fate *e, enum rt_fate_event event)
{
	struct rt_epb_kept kept = kept_of(w, tap, e, event);
	const bool outside = rt_load(&e->outside);
	struct rt_ring *r = w->r;

	if (!w->begun && !outside)
		begin_ring(w);
	r->open = tap->index + 1;
	rt_compiler_barrier(); /* then the counters: see rt_epb_mend() */
	r->counts[tap->index].seen++;
	if (outside)
		r->counts[tap->index].filtered++;
	else if (!rt_epb_kept(r, tap, &kept, w->ns))
		rt_epb_lost(r, tap, 1);
	rt_compiler_barrier();
	r->open = w->tap->index + 1;
}

__rte_noinline void rt_fates_record(struct rt_fate_feed *w, const struct rt_tap *tap,
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

/* A time of the TSC that has not passed when the packet was received. */
static bool was_received_before(const struct rt_seg_fate *e, uint64_t tsc)
{
	return tsc && (int64_t)(rt_load(&e->tsc) - tsc) < 0;
}

#define ASKED (1u << 31) /* with RT_DOUBT_… */

/* Whether the packet may have been sent where no hook is. */
static enum rt_fate_event find_doubt(struct rt_fate_feed *w, const struct rt_seg_fate *e)
{
	struct rt_fates *f = w->f;

	if (!w->doubts)
		w->doubts = ASKED | rt_fates_doubts(f);
	if (w->doubts & RT_DOUBT_STOPPED || was_received_before(e, rt_load(&f->stopped_tsc)))
		return RT_EVENT_STOPPED;
	if (w->doubts & RT_DOUBT_UNSEEN || was_received_before(e, rt_load(&f->unseen_tsc)))
		return RT_EVENT_UNSEEN;
	return RT_EVENT_NOT_OFFERED;
}

/* Whether a clone of the packet was offered that has its buffer, and not its mbuf; see
 * rt_fates_note_stray(). */
static enum rt_fate_event find_stray(const struct rt_fates *f, const struct rt_seg_fate *e)
{
	const struct rt_fate_stray *s;
	uint64_t id = rt_load(&e->id);

	if (rt_load(&e->external))
		return RT_EVENT_UNKNOWN;
	if (rt_likely(!rt_load_acquire(&f->stray_seen)))
		return RT_EVENT_NOT_OFFERED;
	s = &f->strays[id % RT_FATE_STRAYS];
	if (rt_load_acquire(&s->id) == id)
		return RT_EVENT_NONE;
	/* Another one has taken the place since. */
	return was_received_before(e, rt_load(&s->tsc)) ? RT_EVENT_UNKNOWN : RT_EVENT_NOT_OFFERED;
}

void rt_fates_note_stray(struct rt_fates *f, uint64_t id)
{
	struct rt_fate_stray *s = &f->strays[id % RT_FATE_STRAYS];
	uint64_t now = rt_tsc(), before = rt_load(&s->tsc);

	/* The time first, and never an earlier one: it covers the id that is replaced. */
	while ((int64_t)(now - before) > 0 && !rt_cas(&s->tsc, &before, now))
		;
	__atomic_exchange_n(&s->id, id, __ATOMIC_ACQ_REL);
	rt_store_release(&f->stray_seen, 1);
}

/* True: it is an event. */
static bool count_unknown(
	const struct rt_tap *tap, struct rt_seg_count *c, enum rt_fate_event event)
{
	rt_fates_add(&c->unknown, 1);
	if (event == RT_EVENT_UNSEEN)
		rt_fates_add(&c->unseen, 1);
	else if (event == RT_EVENT_STOPPED)
		rt_fates_add(&c->stopped, 1);
	return tap->ids & RT_IDS_EVENTS;
}

__rte_noinline void rt_fates_not_offered(struct rt_fate_feed *w, const struct rt_seg_fate *e)
{
	const struct rt_tap *tap = rt_fates_tap(w->f, rt_load(&e->tap));
	enum rt_fate_event event = find_stray(w->f, e);
	struct rt_seg_count *c;

	if (rt_unlikely(!tap))
		return;
	if (event == RT_EVENT_NOT_OFFERED)
		event = find_doubt(w, e);
	c = rt_fates_count(w, tap);
	if (event == RT_EVENT_NONE)
		rt_fates_add(&c->offered, 1);
	else if (event == RT_EVENT_NOT_OFFERED)
		rt_fates_add(&c->not_offered, 1);
	else if (!count_unknown(tap, c, event))
		return;
	if (event != RT_EVENT_NONE)
		rt_fates_record(w, tap, c, e, event);
}

void rt_fates_close(struct rt_fates *f)
{
	rt_store(&f->closing, 1);
}

static void feed(struct rt_fate_feed *w, struct rte_mbuf **pkts, unsigned n)
{
	if (w->tap->direction == RT_DIR_TX)
		rt_fates_send(w, pkts, n);
	else
		rt_fates_receive(w, pkts, n);
}

/* For threads without a ring: atomic additions, a few for each burst. */
static __rte_noinline void feed_alone(struct rt_fate_feed *w, struct rte_mbuf **pkts, unsigned n)
{
	struct rt_fate_sums sums = {0};

	w->sums = &sums;
	w->counts = w->tap->session->orphans;
	feed(w, pkts, n);
	for (uint32_t i = 0; i < RT_FATE_SUMS; i++)
		give_sum(w, i);
}

/* Field by field: copies of what was just stored in other widths would wait for it. */
static inline void set_feed(
	struct rt_fate_feed *w, struct rt_ring *r, const struct rt_tap *tap, uint64_t tsc)
{
	w->f = tap->session->fates;
	w->r = r;
	w->counts = r ? r->counts : NULL;
	w->sums = NULL;
	w->tap = tap;
	/* Load it once. Pairs with the release in rt_session_set_filter(). */
	w->filter = rt_load_acquire(&tap->filter);
	w->tsc = tsc;
	w->begun = false;
	w->spare = RT_FATE_SPARE;
	w->doubts = 0;
}

static inline void open_ring(const struct rt_fate_feed *w)
{
	w->r->open = w->tap->index + 1;
	rt_compiler_barrier(); /* then the counters: see rt_fates_mend() */
}

static inline void close_ring(const struct rt_fate_feed *w)
{
	if (rt_unlikely(w->begun)) {
		rt_ring_publish(w->r);
		rt_ring_end(w->r);
	}
	rt_compiler_barrier(); /* a jump before leaves the ring busy, which mend() ends */
	w->r->open = 0;
}

void rt_fates_feed(struct rt_ring *r, const struct rt_tap *tap, struct rte_mbuf **pkts, unsigned n,
	uint64_t tsc)
{
	struct rt_fate_feed w;

	set_feed(&w, r, tap, tsc);
	if (rt_unlikely(!r)) {
		feed_alone(&w, pkts, n);
		return;
	}
	open_ring(&w);
	feed(&w, pkts, n);
	close_ring(&w);
}

bool rt_fates_begin(struct rt_fate_visit *v, const struct rt_tapset *set, struct rt_ring *r,
	struct rt_thread *t, struct rte_mbuf **pkts, unsigned n, uint64_t tsc)
{
	struct rt_fate_feed *w = &v->w;

	set_feed(w, r, set->tap[set->only_fates - 1], tsc);
	if (w->tap->direction == RT_DIR_TX) {
		open_ring(w);
		rt_fates_send_begin(w, &v->first, pkts, n);
		return true;
	}
	if (rt_unlikely(rt_load(&w->f->closing) || rt_fates_passes_on(w, set->port, pkts, n) ||
			!rt_ids_take(&v->ids, t, set->port, n)))
		return false;
	open_ring(w);
	rt_fates_receive_begin(w, &v->ids, &v->first, pkts, n);
	return true;
}

void rt_fates_end(struct rt_fate_visit *v, struct rte_mbuf **pkts, unsigned n)
{
	if (v->w.tap->direction == RT_DIR_TX)
		rt_fates_send_end(&v->w, &v->first, pkts, n);
	else
		rt_fates_receive_end(&v->w, &v->first, pkts, n);
	close_ring(&v->w);
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
