/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How long packets stay. A received packet gets a time stamp in a dynamic mbuf field and a flag; at
 * the sending side the flag marks a valid one. Still in the polling threads.
 *
 * Not all that bears the flag has been received: rte_pktmbuf_clone() and rte_pktmbuf_copy() take
 * flag and field along, and flags outlive a monitor. Hence the address of the mbuf and the number
 * of the monitor in the field (stamp.h), and no time stamp is older than the monitor. The port is
 * in the field because m->port is what the first driver has set (net_ring).
 *
 * Applications that reset ol_flags (testpmd: mac, macswap, csum, icmpecho, 5tswap) reset the flag
 * with it. A packet without the flag is *inferred* to have been received if its time stamp is
 * valid and has not been used, and m->port is the port of the time stamp: rte_pktmbuf_reset() sets
 * m->port to RTE_MBUF_PORT_INVALID, so no packet made by rte_pktmbuf_alloc() is. It is not certain:
 * neither freeing an mbuf nor rte_mbuf_raw_alloc() leaves a mark in it, so an application that
 * frees what it has received, and fills raw mbufs of the same pool itself (testpmd: flowgen), sends
 * mbufs of the same look. Hence inferred times have blocks of their own.
 *
 * With RT_COLLECT_SPLIT, blocks are also those of a sending queue and a class of lengths. That is
 * compiled as a loop of its own: the usual one does not read lengths.
 */
#include "count.h"
#include "stamp.h"
#include "probe/trace/trace.h"

/* Key of a pair: receiving port | KEY_INFERRED, or KEY_UNTIMED; sending port << 16. With
 * RT_COLLECT_SPLIT, size << SIZE_SHIFT and the sending queue << QUEUE_SHIFT as well. */
#define SIZE_SHIFT   RT_STAMP_PORT_BITS
#define SIZE_MASK    15u
#define QUEUE_SHIFT  (16 + RT_STAMP_PORT_BITS)
#define KEY_INFERRED 0x8000u
#define KEY_UNTIMED  0xffffu

static_assert(RT_STAT_PORTS < KEY_INFERRED, "no port is taken for an inferred one");
static_assert(RT_STAT_SIZES <= SIZE_MASK && RTE_MAX_QUEUES_PER_PORT <= 1 << (32 - QUEUE_SHIFT),
	"size and queue fit");

/* Other holders may exist: then nothing in the mbuf may be written. */
static inline bool is_shared(const struct rte_mbuf *m)
{
	return rte_mbuf_refcnt_read(m) != 1;
}

static void stamp_all(struct rte_mbuf **pkts, unsigned n, uint64_t stamp)
{
	const uint64_t flag = rt_load(&rt_stat_mode.latency_flag);
	const int32_t offset = rt_load(&rt_stat_mode.latency_field);

#pragma GCC unroll 4
	for (unsigned i = 0; i < n; i++) {
		struct rte_mbuf *m = pkts[i];

		if (rt_unlikely(is_shared(m)))
			continue;
		m->ol_flags |= flag;
		*rt_stamp_field(m, offset) = stamp + rt_stamp_place(m);
	}
}

/* Unsampled packets have a stale flag cleared; and, if times are inferred, the time stamp: they
 * may have been dropped unsent after they were chosen in an earlier use of the mbuf. */
static void stamp_some(struct rt_stat_own *o, struct rte_mbuf **pkts, unsigned n, uint64_t stamp,
	uint32_t every, bool infer)
{
	const uint64_t flag = rt_load(&rt_stat_mode.latency_flag);
	const int32_t offset = rt_load(&rt_stat_mode.latency_field);

	for (unsigned i = 0; i < n; i++) {
		struct rte_mbuf *m = pkts[i];
		bool chosen = --o->countdown == 0;

		if (rt_unlikely(chosen))
			o->countdown = every;
		if (rt_unlikely(is_shared(m)))
			continue;
		if (rt_unlikely(chosen)) {
			m->ol_flags |= flag;
			*rt_stamp_field(m, offset) = stamp + rt_stamp_place(m);
			continue;
		}
		if (rt_unlikely(m->ol_flags & flag))
			m->ol_flags &= ~flag;
		if (rt_unlikely(infer))
			*rt_stamp_field(m, offset) = rt_stamp_place(m);
	}
}

void rt_stat_stamp(const struct rt_stat_site *s, struct rt_stat_own *o, struct rte_mbuf **pkts,
	unsigned n, uint64_t tsc)
{
	uint32_t every = rt_load(&rt_stat_mode.latency_every);
	bool infer = every & RT_STAT_INFER;
	uint64_t stamp = rt_stamp(rt_load(&rt_stat_mode.latency_generation), s->where, tsc);

	every &= ~RT_STAT_INFER;
	if (every == 1)
		stamp_all(pkts, n, stamp);
	else
		stamp_some(o, pkts, n, stamp, every, infer);
}

static struct rt_stat_pair *claim_pair(
	struct rt_stats *f, struct rt_stat_own *o, const struct rt_thread *t, uint32_t key)
{
	struct rt_stat_pair *p;
	uint32_t i;

	if (!rt_stat_take(&f->pair_supply, &f->header->pair_count, &i))
		return NULL;
	p = &f->pairs[i];
	p->thread = t->index;
	p->inferred = (key & KEY_UNTIMED) != KEY_UNTIMED && key & KEY_INFERRED;
	p->rx_index = (key & KEY_UNTIMED) == KEY_UNTIMED ? UINT16_MAX
							 : (uint16_t)(key & RT_STAMP_PORT_MASK);
	p->tx_index = (uint16_t)(key >> 16 & RT_STAMP_PORT_MASK);
	p->size = p->rx_index == UINT16_MAX ? 0 : (uint8_t)(key >> SIZE_SHIFT & SIZE_MASK);
	p->tx_queue = (uint16_t)(key >> QUEUE_SHIFT);
	p->min = UINT64_MAX;
	f->pair_keys[i] = key;
	o->pairs[o->pair_count++] = (uint8_t)i;
	rt_store_release(&p->generation, t->generation); /* pairs with the acquire in meet_pair() */
	return p;
}

/* min and max are since the collector was switched on. */
static void renew(struct rt_stats *f, struct rt_stat_pair *p)
{
	uint32_t *generation = &f->pair_generations[p - f->pairs],
		 now = rt_load(&rt_stat_mode.latency_generation);

	if (*generation == now)
		return;
	*generation = now;
	rt_store(&p->min, UINT64_MAX);
	rt_store(&p->max, 0);
}

/* NULL: none is left. */
static struct rt_stat_pair *find_pair(
	struct rt_stats *f, struct rt_stat_own *o, const struct rt_thread *t, uint32_t key)
{
	struct rt_stat_pair *p = NULL;

	if (rt_likely(o->pair && o->pair_key == key &&
		      o->pair_generation == rt_load(&rt_stat_mode.latency_generation)))
		return o->pair;
	for (uint32_t i = 0; i < o->pair_count && !p; i++) {
		if (f->pair_keys[o->pairs[i]] == key)
			p = &f->pairs[o->pairs[i]];
	}
	if (!p)
		p = claim_pair(f, o, t, key);
	if (!p)
		return NULL;
	renew(f, p);
	o->pair = p;
	o->pair_key = key;
	o->pair_generation = rt_load(&rt_stat_mode.latency_generation);
	return p;
}

/* For the event of one burst. */
struct times {
	uint64_t sum, greatest; /* cycles */
	uint32_t packets;
};

static void add_times(struct times *times, uint64_t cycles, uint32_t run)
{
	times->packets += run;
	times->sum += cycles * run;
	if (cycles > times->greatest)
		times->greatest = cycles;
}

/* Packets that came in one burst and leave in one have one latency. */
struct run {
	uint64_t stamp; /* without the place */
	uint32_t size;  /* class of lengths + 1; 0: not split */
	bool inferred;
	unsigned packets;
};

/* times: NULL if no tracer needs them. */
static void add_run(struct rt_stat_site *s, struct rt_stat_own *o, const struct rt_thread *t,
	const struct run *r, uint64_t tsc, uint32_t *unstamped, struct times *times)
{
	uint64_t cycles = (tsc - r->stamp) & RT_STAMP_TSC_MASK;
	uint32_t key =
		(uint32_t)(r->stamp >> RT_STAMP_PORT_SHIFT & RT_STAMP_PORT_MASK) | s->where << 16;
	struct rt_stat_pair *p;

	if (rt_unlikely(r->size))
		key |= r->size << SIZE_SHIFT | s->where >> 16 << QUEUE_SHIFT;

	/* From an earlier monitoring, or from a CPU whose counter is ahead, which turns a
	 * negative time into one of nearly 2^42. */
	if (rt_unlikely(cycles > tsc - rt_load(&rt_stat_mode.latency_on_tsc) ||
			cycles >= 1ull << (RT_STAT_LAT_MAX - 1))) {
		*unstamped += r->packets;
		return;
	}
	p = find_pair(s->stats, o, t, r->inferred ? key | KEY_INFERRED : key);
	if (rt_unlikely(!p)) {
		RT_STAT_ADD(o->no_pair_packets, r->packets);
		return;
	}
	RT_STAT_ADD(p->bucket[rt_stat_bucket(cycles)], r->packets);
	RT_STAT_ADD(p->sum, cycles * r->packets);
	if (rt_unlikely(cycles < p->min))
		rt_store(&p->min, cycles);
	if (rt_unlikely(cycles > p->max))
		rt_store(&p->max, cycles);
	RT_STAT_ADD(p->count, r->packets);
	if (rt_unlikely(times) && !r->inferred)
		add_times(times, cycles, r->packets);
}

static void trace_burst(const struct rt_stat_site *s, const struct times *times)
{
	const struct rt_stat_port *port = &s->stats->ports[s->where & UINT16_MAX];

	rt_trace_latency((uint16_t)port->port_id, (uint16_t)(s->where >> 16), times->packets,
		times->sum, times->greatest);
}

static void add_untimed(struct rt_stat_site *s, struct rt_stat_own *o, const struct rt_thread *t,
	uint32_t unstamped, uint32_t shared)
{
	struct rt_stat_pair *p = find_pair(s->stats, o, t, KEY_UNTIMED | s->where << 16);

	if (!p) {
		RT_STAT_ADD(o->no_pair_packets, unstamped + shared);
		return;
	}
	RT_STAT_ADD(p->unstamped, unstamped);
	RT_STAT_ADD(p->shared, shared);
}

/* Conditions for a packet without the flag to count as received, before its second line is
 * touched: packets that the application has made have no port. */
static inline bool may_infer(const struct rte_mbuf *m, bool infer)
{
	return infer && m->port != RTE_MBUF_PORT_INVALID;
}

static inline bool is_port_of(const struct rt_stats *f, const struct rte_mbuf *m, uint64_t stamp)
{
	return f->ports[stamp >> RT_STAMP_PORT_SHIFT & RT_STAMP_PORT_MASK].port_id == m->port;
}

/* Without a branch: lengths of packets are mixed. */
static inline uint32_t size_of(const struct rte_mbuf *m)
{
	uint32_t size = 1;

	for (uint32_t i = 0; i < RT_STAT_SIZES - 1; i++)
		size += m->pkt_len >= rt_stat_size_limit(i);
	return size;
}

/* The time stamp of a packet that is sent is used up: a driver may refuse it, so that it is offered
 * again, or return its mbuf for the application to fill; or the mbuf circulates. Its flag may stay:
 * alone it marks nothing. */
static inline void use_up(struct rte_mbuf *m, int32_t offset, uint64_t place)
{
	*rt_stamp_field(m, offset) = place;
}

/* How many packets, from the first on, have their flag and this time stamp, which is used up. A
 * loop of its own, without a call: for most packets there is nothing else to do. */
static inline __attribute__((always_inline)) unsigned follow(struct rte_mbuf **pkts, unsigned n,
	uint64_t stamp, uint32_t size, uint64_t flag, int32_t offset, bool split)
{
	const uint64_t mask = RTE_MBUF_F_INDIRECT | flag;
	struct rte_mbuf **p = pkts, **end = pkts + n;

#pragma GCC unroll 2
	for (; p < end; p++) {
		struct rte_mbuf *m = *p;
		uint64_t place = rt_stamp_place(m);

		if (rt_unlikely((m->ol_flags & mask) != flag || is_shared(m) ||
				*rt_stamp_field(m, offset) != stamp + place))
			break;
		if (split && size_of(m) != size)
			break;
		use_up(m, offset, place);
	}
	return (unsigned)(p - pkts);
}

static inline __attribute__((always_inline)) void time_all(struct rt_stat_site *s,
	struct rt_stat_own *o, const struct rt_thread *t, struct rte_mbuf **pkts, unsigned n,
	bool split)
{
	/* Pairs with the release in rt_stat_set_every(): before it, latency_on_tsc has been set. */
	const uint32_t every = rt_load_acquire(&rt_stat_mode.latency_every);
	const bool infer = every == 1 || every & RT_STAT_INFER;
	const uint64_t flag = rt_load(&rt_stat_mode.latency_flag);
	const uint16_t generation = (uint16_t)rt_load(&rt_stat_mode.latency_generation);
	const int32_t offset = rt_load(&rt_stat_mode.latency_field);
	uint64_t tsc = rt_tsc();
	uint32_t unstamped = 0, shared = 0;
	struct run run = {0};
	struct times sums = {0}, *times = rt_trace_latency_enabled() ? &sums : NULL;

	for (unsigned i = 0; i < n; i++) {
		struct rte_mbuf *m = pkts[i];
		uint64_t flags = m->ol_flags, place = rt_stamp_place(m), stamp;
		bool inferred = !(flags & flag);
		uint32_t size = 0;

		if (rt_unlikely(flags & RTE_MBUF_F_INDIRECT || is_shared(m))) {
			if (inferred)
				unstamped++;
			else
				shared++;
			continue;
		}
		if (rt_unlikely(inferred && !may_infer(m, infer))) {
			unstamped++;
			continue;
		}
		stamp = *rt_stamp_field(m, offset) - place;
		if (rt_unlikely(stamp >> RT_STAMP_GENERATION_SHIFT != generation)) {
			unstamped++;
			continue;
		}
		use_up(m, offset, place);
		if (rt_unlikely(inferred && !is_port_of(s->stats, m, stamp))) {
			unstamped++;
			continue;
		}
		if (split)
			size = size_of(m);
		if (stamp != run.stamp || inferred != run.inferred || size != run.size) {
			if (run.packets)
				add_run(s, o, t, &run, tsc, &unstamped, times);
			run = (struct run){.stamp = stamp, .size = size, .inferred = inferred};
		}
		run.packets++;
		if (rt_likely(!inferred)) {
			unsigned more =
				follow(pkts + i + 1, n - i - 1, stamp, size, flag, offset, split);

			run.packets += more;
			i += more;
		}
	}
	if (run.packets)
		add_run(s, o, t, &run, tsc, &unstamped, times);
	if (unstamped + shared)
		add_untimed(s, o, t, unstamped, shared);
	if (rt_unlikely(sums.packets))
		trace_burst(s, &sums);
}

void rt_stat_time(struct rt_stat_site *s, struct rt_stat_own *o, const struct rt_thread *t,
	struct rte_mbuf **pkts, unsigned n, bool split)
{
	if (rt_unlikely(split))
		time_all(s, o, t, pkts, n, true);
	else
		time_all(s, o, t, pkts, n, false);
}
