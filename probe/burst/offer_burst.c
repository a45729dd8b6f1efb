/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets for guests: see offer.h. Runs in the polling threads. */
#include <string.h>

#include "run.h"
#include "offer.h"

static inline uint16_t call(const struct rt_offer *o, uint16_t first, uint16_t n)
{
	if (rt_unlikely(o->submits))
		return rt_vhost_calls.submit(
			o->vid, o->queue, o->pkts + first, n, o->dma[0], o->dma[1]);
	return rt_vhost_calls.enqueue(o->vid, o->queue, o->pkts + first, n);
}

/* A ring, before a packet that the library may refuse. */
struct before {
	uint8_t *chunk;
	uint64_t head, pending;
	uint32_t gaps;
	struct rt_seg_count count;
};

#define RECORDS 32 /* that can be taken back */

static struct before save(const struct rt_ring *r, uint32_t tap)
{
	return (struct before){r->chunk, r->head, r->pending[tap], r->gaps, r->counts[tap]};
}

static bool in_next_chunk(const struct rt_ring *r, const struct before *b)
{
	return (r->head ^ b->head) & ~r->mask;
}

/* Takes back the records since then. A chunk that has begun stays the ring's. seen goes last: as
 * long as it is higher, rt_epb_mend() finds packets missing. */
static void take_back(struct rt_ring *r, uint32_t tap, const struct before *b)
{
	struct rt_seg_count *c = &r->counts[tap], count = b->count;

	count.seen = c->seen;
	*c = count;
	rt_compiler_barrier();
	if (in_next_chunk(r, b)) {
		memset(b->chunk + (b->head & r->mask), RT_CHUNK_END, sizeof(uint32_t));
		r->head &= ~r->mask;
	} else {
		r->head = b->head;
	}
	r->gaps = b->gaps;
	r->pending[tap] = b->pending;
	rt_compiler_barrier();
	c->seen = b->count.seen;
}

/* Records packets from `first` on, as many as can be taken back, and submits them. Returns how many
 * were accepted; *all: all of them. A thread that leaves in the library's call leaves its rings
 * open: rt_epb_mend() keeps the records, as the library may have accepted each packet. */
static uint16_t submit_some(const struct rt_tapset *set, const struct rt_offer *o, uint16_t first,
	struct rt_ring **ring, uint64_t ns, bool *all)
{
	struct before before[RECORDS], *b = before;
	unsigned most = RTE_MIN(RECORDS / set->count, (unsigned)o->n - first), n = 0, accepted;
	bool whole = true;

	for (; n < most && whole; n++) {
		for (uint32_t i = 0; i < set->count; i++, b++) {
			struct rt_ring *r = ring[i];

			if (!r || r == &no_ring)
				continue;
			*b = save(r, set->tap[i]->index);
			put(r, set->tap[i], &o->pkts[first + n], 1, ns);
			whole = whole && !in_next_chunk(r, b);
		}
	}
	if (rt_unlikely(set->uses_ids))
		rt_ids_use(o->pkts + first, n);
	accepted = call(o, first, n);
	if (rt_unlikely(set->uses_ids))
		rt_ids_unuse(o->pkts + first + accepted, n - accepted);
	for (uint32_t i = 0; i < set->count; i++) {
		struct rt_ring *r = ring[i];

		if (r == &no_ring)
			count_orphans(set->tap[i]->session, set->tap[i], accepted);
		if (!r || r == &no_ring)
			continue;
		if (accepted < n)
			take_back(r, set->tap[i]->index, &before[accepted * set->count + i]);
		rt_ring_publish(r);
		rt_compiler_barrier();
		r->open = 0;
	}
	*all = accepted == n;
	return accepted;
}

static bool has_first(const struct rt_tapset *set)
{
	for (uint32_t i = 0; i < set->count; i++)
		if (set->tap[i]->first)
			return true;
	return false;
}

/* Statistics, fates, samples and limits of flows count what is submitted, as they do at a driver.
 */
static __rte_noinline uint16_t submit_inside(
	struct rt_hook *h, struct rt_thread *t, const struct rt_offer *o)
{
	/* Pairs with the release in replace(), hook.c. */
	const struct rt_tapset *set = rt_load_acquire(&h->taps);
	bool exact = set && set->wait_from == set->count && !set->fates && !set->sampled &&
		     !has_first(set);
	struct rt_ring *ring[RT_HOOK_TAPS];
	struct rt_clock_line line;
	uint16_t n = 0;
	bool all = o->n;

	work(h, t, o->pkts, o->n, o->n, 0, !exact);
	if (!exact || !o->n)
		return call(o, 0, o->n);
	begin_rings(set, 0, set->count, t, ring);
	rt_compiler_barrier(); /* as in run_taps() */
	line = rt_latch_read(&rt_hook_clock);
	for (uint64_t ns = rt_clock_now(&line); all && n < o->n;)
		n += submit_some(set, o, n, ring, ns, &all);
	set_busy(set, t, false);
	return n;
}

/* The guest may answer before the library's function returns: the time is that before the call, and
 * the merge has to wait for the packets as long. The set may be replaced meanwhile, but not freed.
 */
static uint16_t offer_inside(struct rt_hook *h, struct rt_thread *t, const struct rt_offer *o)
{
	/* Pairs with the release in replace(), hook.c. */
	const struct rt_tapset *set = rt_load_acquire(&h->taps);
	struct rt_ring *only = set ? ring_of_only(set, t) : NULL;
	struct rt_clock_line line;
	uint64_t ns;
	uint16_t n;

	if (rt_likely(only)) {
		rt_ring_begin(only);
		rt_compiler_barrier(); /* as in run_taps() */
		line = rt_latch_read(&rt_hook_clock);
		ns = rt_clock_now(&line);
	} else {
		ns = begin_records(set, t).ns;
	}
	n = call(o, 0, o->n);
	/* Open vSwitch tries a guest that has no room several times. */
	if (n || rt_load(&h->stats))
		work(h, t, o->pkts, n, n, set ? ns : 0, true);
	if (rt_likely(only))
		rt_ring_end(only);
	else
		set_busy(set, t, false);
	return n;
}

uint16_t rt_hook_offer(struct rt_hook *h, const struct rt_offer *o)
{
	uintptr_t stack = rt_stack_pointer();
	struct rt_thread *t = rt_thread_self;
	uint16_t n;

	if (rt_unlikely(t && rt_thread_inside(t)) && !rt_thread_jumped(t, stack)) {
		n = call(o, 0, o->n);
		visit_outside(h, n);
		return n;
	}
	if (rt_unlikely(!t))
		t = rt_thread_claim(rte_lcore_id());
	if (rt_unlikely(!t)) {
		n = call(o, 0, o->n);
		visit_slotless(h, n, n);
		return n;
	}
	t->stack = 0; /* left by a visit that ended without an exit */
	go_in(t, stack);
	n = rt_unlikely(o->submits) ? submit_inside(h, t, o) : offer_inside(h, t, o);
	rt_thread_exit(t);
	return n;
}
