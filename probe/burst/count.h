/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What hooks count while a monitor is attached. Everything written here belongs to the thread, or
 * to the thread at this hook: plain loads and stores. The common cases are inline and small; the
 * TSC is read at most once a call, and only where a collector needs it.
 */
#ifndef RINGTAP_PROBE_BURST_COUNT_H
#define RINGTAP_PROBE_BURST_COUNT_H

#include <rte_mbuf.h>

#include "common/clock.h"
#include "probe/monitor/stats.h"

/* Takes the next block, if there is one: *index is its number. Any thread. */
bool rt_stat_take(struct rt_stat_supply *supply, uint32_t *count, uint32_t *index);

/* The rarer parts, in burst.c and latency.c. */
struct rt_stat_hook *rt_stat_claim_block(struct rt_stat_site *s, const struct rt_thread *t);
void rt_stat_follow(struct rt_stat_own *o, const struct rt_thread *t, uint64_t state);
void rt_stat_turn(struct rt_stat_own *o, enum rt_stat_kind kind, uint32_t count, uint64_t tsc);
void rt_stat_new_window(struct rt_stat_own *o, uint32_t number);
void rt_stat_keep_gap(struct rt_stat_own *o, uint64_t cycles);
void rt_stat_sample(struct rt_stat_site *s, struct rt_stat_own *o, const struct rt_thread *t,
	struct rte_mbuf **pkts, unsigned n, uint64_t tsc);
void rt_stat_stamp(const struct rt_stat_site *s, struct rt_stat_own *o, struct rte_mbuf **pkts,
	unsigned n, uint64_t tsc);
void rt_stat_time(struct rt_stat_site *s, struct rt_stat_own *o, const struct rt_thread *t,
	struct rte_mbuf **pkts, unsigned n, bool split);

#define RT_STAT_ADD(counter, v) rt_store(&(counter), (counter) + (v))

/* Four sums, so that no addition waits for the previous one. */
static inline uint64_t rt_stat_bytes(struct rte_mbuf **pkts, unsigned n)
{
	uint64_t a = 0, b = 0, c = 0, d = 0;
	unsigned i = 0;

	for (; i + 4 <= n; i += 4) {
		a += rte_pktmbuf_pkt_len(pkts[i]);
		b += rte_pktmbuf_pkt_len(pkts[i + 1]);
		c += rte_pktmbuf_pkt_len(pkts[i + 2]);
		d += rte_pktmbuf_pkt_len(pkts[i + 3]);
	}
	for (; i < n; i++)
		a += rte_pktmbuf_pkt_len(pkts[i]);
	return a + b + c + d;
}

static inline void rt_stat_count(struct rt_stat_site *s, const struct rt_thread *t, uint64_t on,
	struct rte_mbuf **pkts, unsigned n, unsigned nb_pkts)
{
	struct rt_stat_quick *column = rt_load_acquire(&s->column); /* see give_column() */
	struct rt_stat_hook *b = NULL;

	if (rt_likely(column != NULL))
		b = rt_stat_quick_of(column, t)->block;
	if (rt_unlikely(!b)) {
		b = column ? rt_stat_claim_block(s, t) : NULL;
		if (!b) {
			RT_STAT_ADD(s->rows[t->index].own.no_block_polls, 1);
			return;
		}
	}
	if (rt_likely(on & RT_COLLECT_POLLS)) {
		if (rt_likely(n <= RT_STAT_BURSTS)) {
			RT_STAT_ADD(b->burst[n], 1);
		} else {
			RT_STAT_ADD(b->big_polls, 1);
			RT_STAT_ADD(b->big_packets, n);
		}
		if (rt_unlikely(nb_pkts > b->max_burst))
			rt_store(&b->max_burst, nb_pkts);
	}
	if (on & RT_COLLECT_BYTES) {
		uint64_t bytes = rt_stat_bytes(pkts, n);

		RT_STAT_ADD(b->bytes, bytes);
		RT_STAT_ADD(b->byte_packets, n);
	}
}

/* From one RX poll of the thread to the next. */
static inline void rt_stat_gap(const struct rt_stat_site *s, struct rt_stat_own *o,
	const struct rt_thread *t, unsigned n, uint64_t tsc)
{
	uint64_t cycles = tsc - o->last_tsc;

	if (rt_unlikely(rt_load(&rt_stat_mode.window) != o->window))
		rt_stat_new_window(o, rt_load(&rt_stat_mode.window));
	if (rt_likely(o->last_tsc)) {
		uint64_t *sizes = o->last_count ? o->pub->gaps_busy : o->pub->gaps_idle;
		unsigned size = 63 - (unsigned)__builtin_clzll(cycles | 1);

		if (rt_unlikely(size >= RT_STAT_GAP_SIZES)) {
			/* Below zero: the counter has gone back. */
			cycles = (int64_t)cycles < 0 ? 0 : cycles;
			size = cycles ? RT_STAT_GAP_SIZES - 1 : 0;
		}
		RT_STAT_ADD(sizes[size], 1);
		if (rt_unlikely(cycles > o->gap_min))
			rt_stat_keep_gap(o, cycles);
	}
	rt_store(&o->last_tsc, tsc);
	rt_store(&o->last_epoch, t->epoch);
	rt_store(&o->last_count, n);
	rt_store(&o->last_where, s->where);
}

/* Whether only bursts are counted, so that the quick path suffices from now on. state was read
 * before anything else. */
static inline void rt_stat_settle(struct rt_stat_site *s, const struct rt_thread *t, uint64_t state)
{
	struct rt_stat_quick *column = rt_load_acquire(&s->column), *q;
	uint32_t more = s->direction == RT_DIR_RX
				? RT_COLLECT_BYTES | RT_COLLECT_GAPS | RT_COLLECT_LATENCY |
					  RT_COLLECT_ADDRESSES | RT_COLLECT_TRACE
				: RT_COLLECT_BYTES | RT_COLLECT_LATENCY | RT_COLLECT_TRACE;

	if (!column || !(state & RT_COLLECT_POLLS) || state & more)
		return;
	q = rt_stat_quick_of(column, t);
	if (!q->block)
		return;
	q->own = &s->rows[t->index].own;
	q->max_burst = RTE_MIN(q->block->max_burst, (uint32_t)RT_STAT_BURSTS);
	q->state = state;
}

/* The quick paths. False: nothing has happened, take the long path. The driver, and other
 * callbacks, guarantee that n is at most nb_pkts. */
static inline bool rt_stat_rx_quick(
	struct rt_stat_quick *column, const struct rt_thread *t, unsigned n, unsigned nb_pkts)
{
	struct rt_stat_quick *q = rt_stat_quick_of(column, t);
	/* Pairs with the release in set_state(). */
	uint64_t state = rt_load_acquire(&rt_stat_mode.state);

	/* Rows from there on are not populated. */
	if (rt_unlikely(t->index >= rt_load(&rt_stat_mode.threads)))
		return false;
	if (rt_unlikely(q->state != state || nb_pkts > q->max_burst || n > RT_STAT_BURSTS))
		return false;
	if (state & RT_COLLECT_BUSY) {
		struct rt_stat_own *o = q->own;

		if (rt_unlikely(o->kind != (n ? RT_STAT_BUSY : RT_STAT_IDLE)))
			return false;
		o->packets += n;
	}
	RT_STAT_ADD(q->block->burst[n], 1);
	return true;
}

static inline bool rt_stat_tx_quick(
	struct rt_stat_quick *column, const struct rt_thread *t, unsigned n)
{
	struct rt_stat_quick *q = rt_stat_quick_of(column, t);

	if (rt_unlikely(t->index >= rt_load(&rt_stat_mode.threads))) /* as above */
		return false;
	/* Pairs with the release in set_state(). */
	if (rt_unlikely(q->state != rt_load_acquire(&rt_stat_mode.state) || n > RT_STAT_BURSTS))
		return false;
	RT_STAT_ADD(q->block->burst[n], 1);
	return true;
}

/* The long paths. tsc: that of the packets' records, 0: not read yet. */
static inline void rt_stat_rx(struct rt_stat_site *s, const struct rt_thread *t, uint64_t on,
	struct rte_mbuf **pkts, unsigned n, unsigned nb_pkts, uint64_t tsc)
{
	struct rt_stat_own *o = &s->rows[t->index].own;

	if (rt_unlikely(on >> 32 != o->switching))
		rt_stat_follow(o, t, on);
	if (on & RT_COLLECT_GAPS) {
		tsc = tsc ? tsc : rt_tsc();
		rt_stat_gap(s, o, t, n, tsc);
	}
	if (on & RT_COLLECT_BUSY) {
		enum rt_stat_kind kind = n ? RT_STAT_BUSY : RT_STAT_IDLE;

		if (rt_likely(kind == o->kind)) {
			o->packets += n;
		} else {
			tsc = tsc ? tsc : rt_tsc();
			rt_stat_turn(o, kind, n, tsc);
		}
	}
	if (on & (RT_COLLECT_POLLS | RT_COLLECT_BYTES))
		rt_stat_count(s, t, on, pkts, n, nb_pkts);
	if (rt_unlikely(on & (RT_COLLECT_LATENCY | RT_COLLECT_ADDRESSES)) && n) {
		tsc = tsc ? tsc : rt_tsc();
		if (on & RT_COLLECT_LATENCY)
			rt_stat_stamp(s, o, pkts, n, tsc);
		if (on & RT_COLLECT_ADDRESSES)
			rt_stat_sample(s, o, t, pkts, n, tsc);
	}
}

static inline void rt_stat_tx(struct rt_stat_site *s, const struct rt_thread *t, uint64_t on,
	struct rte_mbuf **pkts, unsigned n)
{
	struct rt_stat_own *o = &s->rows[t->index].own;

	if (rt_unlikely(on >> 32 != o->switching))
		rt_stat_follow(o, t, on);
	if (on & (RT_COLLECT_POLLS | RT_COLLECT_BYTES))
		rt_stat_count(s, t, on, pkts, n, 0);
	if ((on & RT_COLLECT_LATENCY) && n)
		rt_stat_time(s, o, t, pkts, n, on & RT_COLLECT_SPLIT);
}

#endif
