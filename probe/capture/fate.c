/* SPDX-License-Identifier: BSD-3-Clause */
/* See fate.h. All but the making runs in the polling threads. */
#include <string.h>

#include "common/atomics.h"
#include "fate_feed.h"
#include "probe/core/hook.h"
#include "probe/core/hook_burst.h"

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
		.len = rt_load(&e->len)};

	if (tap->ids & RT_IDS_EVENTS) {
		k.number = rt_load(&e->id) | tap->id_source;
		k.event = event;
	} else {
		k.number = rt_clock_ns(&line, rt_load(&e->tsc));
	}
	return k;
}

static void write_record(const struct rt_fate_feed *w, const struct rt_tap *tap,
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

__rte_noinline void rt_fates_record(const struct rt_fate_feed *w, const struct rt_tap *tap,
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

__rte_noinline void rt_fates_not_offered(const struct rt_fate_feed *w, const struct rt_seg_fate *e)
{
	const struct rt_tap *tap = rt_fates_tap(w->f, rt_load(&e->tap));
	struct rt_seg_count *c;

	if (rt_unlikely(!tap))
		return;
	c = rt_fates_count(w, tap);
	rt_fates_add(&c->not_offered, 1);
	rt_fates_record(w, tap, c, e, RT_EVENT_NOT_OFFERED);
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

/* Of threads without a ring: atomic additions, a few for each burst. */
static __rte_noinline void feed_alone(struct rt_fate_feed *w, struct rte_mbuf **pkts, unsigned n)
{
	struct rt_fate_sums sums = {0};

	w->sums = &sums;
	w->counts = w->tap->session->orphans;
	feed(w, pkts, n);
	for (uint32_t i = 0; i < RT_FATE_SUMS; i++)
		give_sum(w, i);
}

void rt_fates_feed(struct rt_ring *r, const struct rt_tap *tap, struct rte_mbuf **pkts, unsigned n,
	uint64_t ns)
{
	struct rt_fate_feed w = {.f = tap->session->fates,
		.r = r,
		.tap = tap,
		/* Load it once. Pairs with the release in rt_session_set_filter(). */
		.filter = rt_load_acquire(&tap->filter),
		.tsc = tap->direction == RT_DIR_RX ? rt_tsc() : 0,
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
