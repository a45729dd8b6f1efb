/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a thread does with a burst inside of a hook: its sessions and statistics. For hook_burst.c
 * and offer_burst.c, each of which is compiled as a whole for the sake of the hot path.
 */
#ifndef RINGTAP_PROBE_BURST_RUN_H
#define RINGTAP_PROBE_BURST_RUN_H

#include <rte_lcore.h>
#include <rte_mbuf_dyn.h>

#include "probe/capture/epb.h"
#include "probe/capture/fate_feed.h"
#include "probe/capture/first.h"
#include "probe/capture/ids.h"
#include "probe/capture/sample.h"
#include "count.h"
#include "probe/above.h"
#include "probe/hook/hook.h"
#include "probe/capture/filter.h"
#include "trace_burst.h"

#define CHUNK 64 /* packets that a filter checks before they are copied */

static void count_orphans(struct rt_session *s, const struct rt_tap *tap, unsigned n)
{
	rt_fetch_add(&s->orphans[tap->index].seen, n);
	rt_fetch_add(&s->orphans[tap->index].lost[RT_LOSS_NO_RING], n);
	rt_trace_drop(rt_load(&tap->port), tap->queue, n, RT_LOSS_NO_RING);
}

static void push_filtered(struct rt_ring *r, const struct rt_tap *tap,
	const struct rt_filter *filter, struct rte_mbuf **pkts, unsigned n, uint64_t ns)
{
	struct rte_mbuf *pass[CHUNK];

	while (n) {
		unsigned look = n < CHUNK ? n : CHUNK, unreadable = 0;
		unsigned k = rt_filter_burst(filter, tap->direction, pkts, look, pass, &unreadable);

		r->counts[tap->index].filtered += look - k - unreadable;
		if (k)
			rt_epb_push(r, tap, pass, k, ns);
		if (rt_unlikely(unreadable))
			rt_epb_unreadable(r, tap, unreadable);
		pkts += look;
		n -= look;
	}
}

/* As push_filtered(), and cuts what is beyond the limit of its flow. */
static void push_first(struct rt_ring *r, const struct rt_tap *tap, const struct rt_filter *filter,
	struct rte_mbuf **pkts, unsigned n, uint64_t ns)
{
	struct rt_seg_count *c = &r->counts[tap->index];
	struct rte_mbuf *pass[CHUNK];

	for (unsigned look; n; pkts += look, n -= look) {
		struct rte_mbuf **from = filter ? pass : pkts;
		unsigned unreadable = 0, k, kept;

		k = look = n < CHUNK ? n : CHUNK;
		if (filter)
			k = rt_filter_burst(filter, tap->direction, pkts, look, pass, &unreadable);
		c->filtered += look - k - unreadable;
		kept = rt_first_choose(tap->session->first, r, tap, from, k, pass);
		c->cut += k - kept;
		if (kept)
			rt_epb_push(r, tap, pass, kept, ns);
		if (rt_unlikely(unreadable))
			rt_epb_unreadable(r, tap, unreadable);
	}
}

/* Packet by packet: waiting for room publishes last_ns in the middle of a burst. */
static uint64_t stamped_at(
	struct rt_ring *r, const struct rt_tap *tap, const struct rte_mbuf *m, uint64_t ns)
{
	uint64_t stamp = *RTE_MBUF_DYNFIELD(m, tap->nic_ts_offset, const uint64_t *);

	if ((m->ol_flags & tap->nic_ts_flag) && stamp > r->last_ns)
		r->last_ns = stamp;
	return r->last_ns ? r->last_ns : ns;
}

/* Bytes of a packet that the filter lets pass: 0, it refuses it. */
static uint32_t pass_of(const struct rt_tap *tap, const struct rt_filter *filter,
	struct rte_mbuf *m, unsigned *unreadable)
{
	struct rte_mbuf *pass;

	if (tap->lengths)
		return rt_filter_length(filter, tap->direction, m, unreadable);
	return rt_filter_burst(filter, tap->direction, &m, 1, &pass, unreadable) ? tap->snaplen : 0;
}

/* Whether the limit of its flow cuts a packet, which then counts. */
static bool is_cut(struct rt_ring *r, const struct rt_tap *tap, struct rte_mbuf *m)
{
	if (!tap->first || rt_first_choose(tap->session->first, r, tap, &m, 1, &m))
		return false;
	r->counts[tap->index].cut++;
	return true;
}

/* Time stamps of the NIC, lengths and metadata of mbufs differ from packet to packet. */
static __rte_noinline void push_each(struct rt_ring *r, const struct rt_tap *tap,
	const struct rt_filter *filter, struct rte_mbuf **pkts, unsigned n, uint64_t ns)
{
	if (tap->first && tap->nic_ts_offset < 0 && !tap->mbufs && !tap->lengths) {
		push_first(r, tap, filter, pkts, n, ns);
		return;
	}
	for (unsigned i = 0; i < n; i++) {
		uint32_t len = tap->snaplen;
		unsigned unreadable = 0;

		if (tap->stamped)
			ns = stamped_at(r, tap, pkts[i], ns);
		if (filter && !(len = pass_of(tap, filter, pkts[i], &unreadable))) {
			if (unreadable)
				rt_epb_unreadable(r, tap, 1);
			else
				r->counts[tap->index].filtered++;
			continue;
		}
		if (is_cut(r, tap, pkts[i]))
			continue;
		if (!rt_epb_cut(r, tap, pkts[i], RTE_MIN(len, tap->snaplen), ns))
			rt_epb_lost(r, tap, 1);
	}
}

/* For a ring that stays busy, whose last_ns is the time stamp that no later received packet
 * precedes. Returns the time for packets without a stamp (those that the thread sends): last_ns,
 * to keep the ring in order; ns as long as last_ns is unknown. */
static __rte_noinline uint64_t stamped_until(struct rt_ring *r, uint64_t ns)
{
	r->held = true;
	if (rt_hook_until > r->last_ns)
		r->last_ns = rt_hook_until;
	return r->last_ns ? r->last_ns : ns;
}

/* Writes records, and does not publish them. */
static inline void put(struct rt_ring *r, const struct rt_tap *tap, struct rte_mbuf **pkts,
	unsigned n, uint64_t ns)
{
	/* Load it once, since it may be replaced. Pairs with the release in
	 * rt_session_set_filter(). */
	const struct rt_filter *filter = rt_load_acquire(&tap->filter);

	if (rt_unlikely(tap->stamped || r->held)) {
		ns = stamped_until(r, ns);
	} else {
		/* The clock does not go back, but the previous line may have rounded up. */
		if (rt_unlikely(ns < r->last_ns))
			ns = r->last_ns;
		r->last_ns = ns;
	}
	r->open = tap->index + 1;
	rt_compiler_barrier(); /* then the counters: see rt_epb_mend() */
	r->counts[tap->index].seen += n;
	if (rt_unlikely(tap->each))
		push_each(r, tap, filter, pkts, n, ns);
	else if (filter)
		push_filtered(r, tap, filter, pkts, n, ns);
	else
		rt_epb_push(r, tap, pkts, n, ns);
}

static void feed(struct rt_ring *r, const struct rt_tap *tap, struct rte_mbuf **pkts, unsigned n,
	uint64_t ns)
{
	put(r, tap, pkts, n, ns);
	rt_ring_publish(r);
	r->open = 0;
}

/* n packets of a session that takes one of N, with ids or of several sessions. */
static __rte_noinline void feed_sample(struct rt_ring *r, const struct rt_tap *tap,
	struct rt_sample_state *state, struct rte_mbuf **pkts, unsigned n, uint64_t ns)
{
	struct rt_seg_count *c = &r->counts[tap->index];
	struct rte_mbuf *chosen[CHUNK];

	for (unsigned look; n; pkts += look, n -= look) {
		unsigned k;

		look = n < CHUNK ? n : CHUNK;
		k = rt_sampler_choose(tap->session->sampler, state, tap, pkts, look, chosen);
		r->open = tap->index + 1;
		rt_compiler_barrier(); /* then the counters: see rt_epb_mend() */
		c->seen += look - k;
		c->not_sampled += look - k;
		feed(r, tap, chosen, k, ns);
	}
}

static __rte_noinline void mend(const struct rt_session *s, struct rt_ring *r)
{
	if (s->fates)
		rt_fates_mend(s->fates, r);
	rt_epb_mend(r, s->flags);
	if (!s->fates)
		return;
	/* Later bursts do it only if they have records. */
	rt_ring_publish(r);
	rt_ring_end(r);
}

static inline bool flows(const struct rt_session *s)
{
	return rt_load_acquire(&s->flows); /* pairs with the release in rt_session_publish() */
}

/* Whether a session wants them whose packets flow already. */
static bool wants_ids(const struct rt_tapset *set)
{
	for (uint32_t i = 0; i < set->count; i++) {
		if (set->tap[i]->ids && flows(set->tap[i]->session))
			return true;
	}
	return false;
}

/* The ring of a thread whose counters are not there yet: one object for each including file, in
 * which alone it is compared. */
static struct rt_ring no_ring;

static __rte_noinline void give_ids(
	const struct rt_tapset *set, struct rt_thread *t, struct rte_mbuf **pkts, unsigned n)
{
	if (!wants_ids(set))
		return;
	if (set->fates)
		rt_fates_stamp(set, t, pkts, n);
	else
		rt_ids_stamp(t, set->port, pkts, n);
}

/* ring: by tap. */
static inline bool begin_fates(struct rt_fate_visit *v, const struct rt_tapset *set,
	struct rt_ring *const *ring, struct rt_thread *t, struct rte_mbuf **pkts, unsigned n,
	uint64_t tsc)
{
	struct rt_ring *r = set->only_fates ? ring[set->only_fates - 1] : NULL;

	return r && r != &no_ring && rt_fates_begin(v, set, r, t, pkts, n, tsc);
}

/* For taps that may wait, begun_ns is not meant: their rings were not busy then. */
static inline uint64_t time_at(const struct rt_clock_line *line, uint64_t begun_ns, bool meant)
{
	return begun_ns && meant ? begun_ns : rt_clock_now(line);
}

/* ring: by tap. NULL: its session wants no packets yet. */
static inline void begin_rings(const struct rt_tapset *set, uint32_t first, uint32_t last,
	struct rt_thread *t, struct rt_ring **ring)
{
	for (unsigned i = first; i < last; i++) {
		ring[i] = NULL;
		if (rt_unlikely(!flows(set->tap[i]->session)))
			continue;
		ring[i] = &set->tap[i]->session->rings[t->index];
		if (rt_unlikely(!ring[i]->used) &&
			!rt_session_begin_ring(set->tap[i]->session, ring[i], t)) {
			ring[i] = &no_ring;
			continue;
		}
		if (rt_unlikely(ring[i]->open))
			mend(set->tap[i]->session, ring[i]);
		if (rt_likely(!set->fates || !set->tap[i]->session->fates))
			rt_ring_begin(ring[i]);
	}
}

/* Taps first to last - 1, all with the same time stamp. begun_ns: that of begin_records(); 0: now.
 */
static inline void run_taps(const struct rt_tapset *set, uint32_t first, uint32_t last,
	struct rt_thread *t, struct rte_mbuf **pkts, unsigned n, uint64_t begun_ns)
{
	struct rt_ring *ring[RT_HOOK_TAPS];
	struct rt_clock_line line;
	struct rt_fate_visit visit;
	bool visited = false;
	uint64_t tsc, ns;

	begin_rings(set, first, last, t, ring);
	rt_compiler_barrier(); /* busy first, then the time: the watermark depends on it */
	line = rt_latch_read(&rt_hook_clock);
	tsc = rt_tsc();
	ns = begun_ns && first < set->wait_from ? begun_ns : rt_clock_at(&line, tsc);
	if (rt_unlikely(set->fates) && !first)
		visited = begin_fates(&visit, set, ring, t, pkts, n, tsc);
	if (rt_unlikely(set->gives_ids) && !first && !visited)
		give_ids(set, t, pkts, n);
	for (unsigned i = first; i < last; i++) {
		if (rt_unlikely(!ring[i]))
			continue;
		if (rt_unlikely(set->fates) && set->tap[i]->session->fates) {
			if (!visited)
				rt_fates_feed(ring[i] != &no_ring ? ring[i] : NULL, set->tap[i],
					pkts, n, tsc);
			continue;
		}
		if (rt_unlikely(ring[i] == &no_ring)) {
			count_orphans(set->tap[i]->session, set->tap[i], n);
			continue;
		}
		if (rt_unlikely(set->sampled) && set->tap[i]->sampled)
			feed_sample(ring[i], set->tap[i],
				&set->tap[i]->session->sampler->state[t->index], pkts, n, ns);
		else
			feed(ring[i], set->tap[i], pkts, n, ns);
		/* Packets have time stamps older than the burst: none is before last_ns. */
		if (rt_likely(!ring[i]->held))
			rt_ring_end(ring[i]);
	}
	if (visited)
		rt_fates_end(&visit, pkts, n);
}

/* The thread's ring, if nothing has to be done before it is used. */
static inline struct rt_ring *ready_ring(const struct rt_session *s, const struct rt_thread *t)
{
	struct rt_ring *r;

	if (rt_unlikely(!flows(s)))
		return NULL;
	r = &s->rings[t->index];
	return rt_unlikely(!r->used || r->open || r->held) ? NULL : r;
}

/* The ring of the one ordinary session of most hooks. NULL: it is not that simple. */
static inline struct rt_ring *ring_of_only(const struct rt_tapset *set, const struct rt_thread *t)
{
	return rt_likely(set->only != NULL) ? ready_ring(set->only, t) : NULL;
}

/* The same for the one ordinary session, without arrays and what it does not need. False:
 * run_taps() has to do it. */
static inline bool run_only(const struct rt_tapset *set, struct rt_thread *t,
	struct rte_mbuf **pkts, unsigned n, uint64_t begun_ns)
{
	struct rt_ring *r = ring_of_only(set, t);
	struct rt_clock_line line;

	if (rt_unlikely(!r))
		return false;
	rt_ring_begin(r);
	rt_compiler_barrier(); /* as in run_taps() */
	line = rt_latch_read(&rt_hook_clock);
	feed(r, set->tap[0], pkts, n, time_at(&line, begun_ns, set->wait_from));
	rt_ring_end(r);
	return true;
}

/* The same for set->pair. */
static __rte_noinline bool run_pair(const struct rt_tapset *set, struct rt_thread *t,
	struct rte_mbuf **pkts, unsigned n, uint64_t begun_ns)
{
	const struct rt_tap *fates = set->tap[set->only_fates - 1];
	const struct rt_tap *tap = set->tap[2 - set->only_fates];
	struct rt_ring *events = ready_ring(fates->session, t), *r = ready_ring(tap->session, t);
	struct rt_fate_visit visit;
	struct rt_clock_line line;
	uint64_t tsc, ns;
	bool visited;

	if (rt_unlikely(!events || !r))
		return false;
	rt_ring_begin(r);
	rt_compiler_barrier(); /* as in run_taps() */
	line = rt_latch_read(&rt_hook_clock);
	tsc = rt_tsc();
	ns = begun_ns ? begun_ns : rt_clock_at(&line, tsc);
	visited = rt_fates_begin(&visit, set, events, t, pkts, n, tsc);
	if (rt_unlikely(!visited)) {
		rt_fates_stamp(set, t, pkts, n);
		rt_fates_feed(events, fates, pkts, n, tsc);
	}
	feed(r, tap, pkts, n, ns);
	rt_ring_end(r);
	if (rt_likely(visited))
		rt_fates_end(&visit, pkts, n);
	return true;
}

/* Counts a burst of which a sample takes nothing: the usual case, without a look at the packets or
 * the time. False: run_taps() has to do it. */
static __rte_noinline bool skip_sampled(
	const struct rt_tapset *set, const struct rt_thread *t, unsigned n, uint64_t begun_ns)
{
	const struct rt_session *s = set->only_sampled;
	struct rt_sample_state *state;
	struct rt_seg_count *c;
	struct rt_ring *r;

	if (!s || rt_unlikely(!flows(s)))
		return false;
	r = &s->rings[t->index];
	state = &s->sampler->state[t->index];
	if (rt_unlikely(state->skip < n || !r->used || r->open || r->held))
		return false;
	c = &r->counts[set->tap[0]->index];
	r->open = set->tap[0]->index + 1;
	rt_compiler_barrier(); /* then the counters: see rt_epb_mend() */
	state->skip -= n;
	c->seen += n;
	c->not_sampled += n;
	rt_compiler_barrier();
	r->open = 0;
	if (begun_ns)
		rt_ring_end(r);
	return true;
}

/* Taps that may wait come last and run one by one: a ring must not be busy while the hook waits
 * for another ring's reader. */
static inline __attribute__((always_inline)) void run_set(const struct rt_tapset *set,
	struct rt_thread *t, struct rte_mbuf **pkts, unsigned n, uint64_t begun_ns)
{
	if (rt_likely(run_only(set, t, pkts, n, begun_ns)) ||
		(set->pair && run_pair(set, t, pkts, n, begun_ns)) ||
		(set->only_sampled && skip_sampled(set, t, n, begun_ns)))
		return;
	if (rt_likely(set->wait_from))
		run_taps(set, 0, set->wait_from, t, pkts, n, begun_ns);
	for (uint32_t i = set->wait_from; rt_unlikely(i < set->count); i++)
		run_taps(set, i, i + 1, t, pkts, n, begun_ns);
	if (rt_unlikely(set->uses_ids))
		rt_ids_use(pkts, n);
}

/* Counts only: it must not touch memory that can be freed, or that the interrupted visit uses. */
static void visit_outside(struct rt_hook *h, unsigned n)
{
	if (n)
		rt_fetch_add(&h->orphaned, n);
	if (rt_load(&h->stats))
		rt_fetch_add(&rt_stat_no_thread, 1);
}

static void visit_slotless(struct rt_hook *h, unsigned n, unsigned nb_pkts)
{
	if ((rt_load(&h->stats) || rt_load(&h->taps)) &&
		rt_load(&rt_stat_mode.state) & RT_COLLECT_TRACE)
		rt_trace_burst(h->direction, h->port, h->queue, nb_pkts, n);
	visit_outside(h, n);
}

/* Rings of taps that do not wait are busy from now on, or no longer, as in run_taps(); those of
 * fates only while they get records. */
static void set_busy(const struct rt_tapset *set, struct rt_thread *t, bool busy)
{
	for (uint32_t i = 0; set && i < set->wait_from; i++) {
		struct rt_session *s = set->tap[i]->session;
		struct rt_ring *r = flows(s) && !s->fates ? &s->rings[t->index] : NULL;

		if (!r || (!r->used && !(busy && rt_session_begin_ring(s, r, t))))
			continue;
		if (busy)
			rt_ring_begin(r);
		else if (!r->held)
			rt_ring_end(r);
	}
}

/* A time, by both clocks. */
struct begun {
	uint64_t tsc, ns;
};

/* A packet's latency and its record begin at one time: a thread that loses its CPU between two
 * readings would delay the packet for one of them only. The time of sending is read for the latency
 * first, so that a latency above a threshold is above it in the records. */
static __rte_noinline struct begun begin_records(const struct rt_tapset *set, struct rt_thread *t)
{
	struct rt_clock_line line;
	uint64_t tsc;

	set_busy(set, t, true);
	rt_compiler_barrier(); /* as in run_taps() */
	/* The line first: one that has been replaced since looks as if the TSC had jumped. */
	line = rt_latch_read(&rt_hook_clock);
	tsc = rt_tsc();
	return (struct begun){tsc, rt_clock_at(&line, tsc)};
}

/* The thread is inside the hook. begun_ns: see run_taps(). records: false: statistics only. */
static inline __attribute__((always_inline)) void work(struct rt_hook *h, struct rt_thread *t,
	struct rte_mbuf **pkts, uint16_t n, unsigned nb_pkts, uint64_t begun_ns, bool records)
{
	/* Read the state first: writers update the hook, then publish the state. Pairs with the
	 * release in set_state(), stats.c. */
	uint64_t state = rt_load_acquire(&rt_stat_mode.state);
	const struct rt_tapset *set;
	struct rt_stat_site *site;
	uint64_t tsc = 0;

	if (rt_unlikely(!rt_thread_set_has(&h->seen, t->index)))
		rt_thread_set_add(&h->seen, t->index);
	/* Pairs with the release in rt_hook_count(). */
	site = rt_load_acquire(&h->stats);
	/* Pairs with the release in replace(), hook.c. */
	set = rt_load_acquire(&h->taps);
	/* The callback is installed before there is a place to count in. */
	if (rt_unlikely(state & RT_COLLECT_TRACE) && (site || set))
		rt_trace_burst(h->direction, h->port, h->queue, nb_pkts, n);
	/* Compare with the site's own statistics: the mode may already belong to the next. Pairs
	 * with the release in supply_threads(). */
	if (site && rt_unlikely(t->index >= rt_load_acquire(&site->stats->threads_ready))) {
		rt_fetch_add(&site->stats->no_row_polls, 1);
		site = NULL;
	}
	if (rt_unlikely(state & RT_COLLECT_LATENCY) && site && set && n &&
		h->direction == RT_DIR_RX) {
		struct begun b = begin_records(set, t); /* run_set() ends them */

		tsc = b.tsc;
		begun_ns = b.ns;
	}
	if (site && h->direction == RT_DIR_RX)
		rt_stat_rx(site, t, state, pkts, n, nb_pkts, tsc);
	else if (site)
		rt_stat_tx(site, t, state, pkts, n);
	if (set && records && (n || rt_unlikely(rt_hook_until)))
		run_set(set, t, pkts, n, begun_ns);
	if (site && !set)
		rt_stat_settle(site, t, state);
}

/* stack: of the hook. Store it last: a signal handler that polls before the epoch is odd enters
 * the hook, and must not leave its own stack behind. Until it is stored, a handler reads 0. */
static inline void go_in(struct rt_thread *t, uintptr_t stack)
{
	rt_thread_enter(t);
	t->stack = stack;
	rt_compiler_barrier();
}

#endif
