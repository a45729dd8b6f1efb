/* SPDX-License-Identifier: BSD-3-Clause */
/* The rarer parts of counting; they still run in the polling threads, see count.h. */
#include "count.h"
#include "probe/above.h"
#include "probe/dpdk/compat.h"

#define RUN_PATIENCE 5 /* runs that the control thread would have requested meanwhile */

struct rt_stat_mode rt_stat_mode;
struct rt_stats *rt_stat_current;
uint64_t rt_stat_no_thread;

bool rt_stat_take(struct rt_stat_supply *supply, uint32_t *count, uint32_t *index)
{
	*index = rt_load(count);
	do {
		/* Pairs with the release in extend(). */
		if (*index >= rt_load_acquire(&supply->ready)) {
			if (!rt_load(&supply->starved))
				rt_store(&supply->starved, 1);
			return false;
		}
	} while (!rt_cas(count, index, *index + 1)); /* fails if another thread has taken one */
	return true;
}

struct rt_stat_hook *rt_stat_claim_block(struct rt_stat_site *s, const struct rt_thread *t)
{
	struct rt_stats *f = s->stats;
	struct rt_stat_hook *b;
	uint32_t i;

	if (!rt_stat_take(&f->hook_supply, &f->header->hook_count, &i))
		return NULL;
	b = &f->hooks[i];
	b->thread = t->index;
	b->port_index = (uint16_t)s->where;
	b->queue = (uint16_t)(s->where >> 16);
	b->direction = s->direction;
	rt_store_release(&b->generation, t->generation); /* pairs with the acquire in meet_hook() */
	rt_stat_quick_of(s->column, t)->block = b;
	return b;
}

/* 0 if the counter has gone back (suspend, a guest that was restored): counters only grow. */
static uint64_t cycles_since(const struct rt_stat_own *o, uint64_t tsc)
{
	return (int64_t)(tsc - o->since_tsc) < 0 ? 0 : tsc - o->since_tsc;
}

/* Ends the current period; its sums and the start of the next are published in the order that
 * stats.h specifies. */
static void publish_period(struct rt_stat_own *o, enum rt_stat_kind kind, uint64_t tsc)
{
	struct rt_stat_thread *p = o->pub;
	uint64_t cycles = cycles_since(o, tsc);

	rt_store(&p->since_tsc, 0);
	if (o->kind == RT_STAT_BUSY)
		rt_store_release(&p->busy_cycles, p->busy_cycles + cycles);
	else if (o->kind == RT_STAT_IDLE)
		rt_store_release(&p->idle_cycles, p->idle_cycles + cycles);
	rt_store_release(&p->is_busy, kind == RT_STAT_BUSY);
	/* Pairs with the acquires in read_cycles(), like those before it. */
	rt_store_release(&p->since_tsc, kind == RT_STAT_NONE ? 0 : tsc);
	o->since_tsc = tsc;
	o->kind = kind;
}

/* A new burst must exceed the smallest entry of a full log. */
static void keep_burst(struct rt_stat_own *o, uint64_t cycles)
{
	struct rt_stat_window *w = &o->pub->window[o->window % RT_STAT_WINDOWS];
	struct rt_stat_burst *least = &w->burst[0];

	for (unsigned i = 1; i < RT_STAT_WORST; i++) {
		if (w->burst[i].packets < least->packets)
			least = &w->burst[i];
	}
	rt_store(&least->packets, 0);
	rt_store_release(&least->tsc, o->since_tsc);
	rt_store_release(&least->cycles, cycles);
	rt_store_release(&least->packets, o->packets); /* pairs with rt_copy_words() */
	o->burst_min = o->packets;
	for (unsigned i = 0; i < RT_STAT_WORST; i++) {
		if (w->burst[i].packets < o->burst_min)
			o->burst_min = w->burst[i].packets;
	}
}

static struct rt_stat_log *claim_log(const struct rt_stat_own *o)
{
	struct rt_stats *f = o->stats;
	struct rt_stat_log *l;
	uint32_t i;

	if (!rt_stat_take(&f->log_supply, &f->header->log_count, &i))
		return NULL;
	l = &f->logs[i];
	l->thread = (uint32_t)(o->pub - f->threads);
	rt_store_release(&l->generation, o->pub->generation); /* pairs with meet_log() */
	return l;
}

static void log_interval(struct rt_stat_own *o, const struct rt_stat_interval *v)
{
	struct rt_stat_interval *to;
	uint64_t head;

	if (!o->log)
		o->log = claim_log(o);
	if (rt_unlikely(!o->log)) {
		RT_STAT_ADD(o->no_log_intervals, 1);
		return;
	}
	head = o->log->head;
	to = &o->log->interval[head % RT_STAT_INTERVALS];
	/* The head before this entry: pairs with the acquires of the words in read_log(). */
	rt_store_release(&to->tsc, v->tsc);
	rt_store_release(&to->cycles, v->cycles);
	rt_store_release(&to->packets, v->packets);
	rt_store_release(&to->port_index, v->port_index);
	rt_store_release(&to->kind, v->kind);
	rt_store_release(&to->queue, v->queue);
	rt_store_release(&o->log->head, head + 1); /* pairs with the acquire in read_log() */
}

static void log_burst(struct rt_stat_own *o, uint64_t tsc)
{
	unsigned size = 63 - (unsigned)__builtin_clzll(o->packets | 1);
	uint64_t cycles = cycles_since(o, tsc);

	if (rt_load(&rt_stat_mode.window) != o->window)
		rt_stat_new_window(o, rt_load(&rt_stat_mode.window));
	RT_STAT_ADD(o->pub->busy_periods, 1);
	RT_STAT_ADD(o->pub->busy_period_packets[size < 40 ? size : 39], 1);
	if (o->packets > o->burst_min)
		keep_burst(o, cycles);
	if (cycles >= o->log_min)
		log_interval(o, &(struct rt_stat_interval){.tsc = o->since_tsc,
					.cycles = cycles,
					.packets = (uint32_t)RTE_MIN(o->packets, UINT32_MAX),
					.port_index = UINT8_MAX,
					.kind = RT_INTERVAL_BUSY});
}

void rt_stat_turn(struct rt_stat_own *o, enum rt_stat_kind kind, uint32_t count, uint64_t tsc)
{
	if (o->kind == RT_STAT_BUSY)
		log_burst(o, tsc);
	publish_period(o, kind, tsc);
	o->packets = count;
}

void rt_stat_new_window(struct rt_stat_own *o, uint32_t number)
{
	struct rt_stat_window *w = &o->pub->window[number % RT_STAT_WINDOWS];

	rt_store(&w->number, 0);
	for (unsigned i = 0; i < RT_STAT_WORST; i++) {
		rt_store_release(&w->gap[i].cycles, 0);
		rt_store_release(&w->burst[i].packets, 0);
	}
	rt_store_release(&w->number, number); /* pairs with the acquire in read_worst() */
	rt_store(&o->pub->window_next, number + 1);
	o->window = number;
	o->gap_min = o->worst_min = o->burst_min = 0;
}

static void keep_worst_gap(struct rt_stat_own *o, uint64_t cycles)
{
	struct rt_stat_window *w = &o->pub->window[o->window % RT_STAT_WINDOWS];
	struct rt_stat_gap *least = &w->gap[0];

	for (unsigned i = 1; i < RT_STAT_WORST; i++) {
		if (w->gap[i].cycles < least->cycles)
			least = &w->gap[i];
	}
	rt_store(&least->cycles, 0);
	rt_store_release(&least->tsc, o->last_tsc);
	rt_store_release(&least->packets, o->last_count);
	rt_store_release(&least->port_index, (uint16_t)o->last_where);
	rt_store_release(&least->queue, (uint16_t)(o->last_where >> 16));
	rt_store_release(&least->cycles, cycles); /* pairs with rt_copy_words() */
	o->worst_min = cycles;
	for (unsigned i = 0; i < RT_STAT_WORST; i++) {
		if (w->gap[i].cycles < o->worst_min)
			o->worst_min = w->gap[i].cycles;
	}
}

void rt_stat_keep_gap(struct rt_stat_own *o, uint64_t cycles)
{
	if (cycles > o->worst_min)
		keep_worst_gap(o, cycles);
	if (cycles >= o->log_min)
		log_interval(o, &(struct rt_stat_interval){.tsc = o->last_tsc,
					.cycles = cycles,
					.packets = o->last_count,
					.port_index = (uint8_t)o->last_where,
					.kind = RT_INTERVAL_GAP,
					.queue = (uint16_t)(o->last_where >> 16)});
	o->gap_min = RTE_MIN(o->worst_min, o->log_min - 1);
}

static void close_period(struct rt_stat_own *o)
{
	if (o->kind != RT_STAT_NONE)
		publish_period(o, RT_STAT_NONE, rt_tsc());
}

/* Publishes the owner of the slot, before anything that refers to it. */
static void introduce(struct rt_stat_own *o, const struct rt_thread *t)
{
	if (o->pub->generation == t->generation)
		return;
	rt_store(&o->pub->lcore, rt_load(&t->lcore));
	rt_store(&o->pub->tid, rt_load(&t->tid));
	rt_store_release(&o->pub->generation, t->generation); /* pairs with rt_thread_read() */
}

/* A thread that is new here, or collectors that have been switched. Time that was not observed
 * counts neither as work nor as a gap. */
void rt_stat_follow(struct rt_stat_own *o, const struct rt_thread *t, uint64_t state)
{
	uint32_t every = rt_load(&rt_stat_mode.latency_every) & ~RT_STAT_INFER;

	introduce(o, t);
	if (!(state & RT_COLLECT_BUSY))
		close_period(o);
	if (o->busy_generation != rt_load(&rt_stat_mode.busy_generation)) {
		o->busy_generation = rt_load(&rt_stat_mode.busy_generation);
		o->kind = RT_STAT_NONE; /* the period began before an unobserved time */
		rt_store(&o->pub->since_tsc, 0);
	}
	if (o->gaps_generation != rt_load(&rt_stat_mode.gaps_generation)) {
		rt_store(&o->gaps_generation, rt_load(&rt_stat_mode.gaps_generation));
		rt_store(&o->last_tsc, 0);
	}
	if (o->addresses_generation != rt_load(&rt_stat_mode.addresses_generation)) {
		o->addresses_generation = rt_load(&rt_stat_mode.addresses_generation);
		o->filling = NULL; /* its packets would not be consecutive */
	}
	o->log_min = state & RT_COLLECT_INTERVALS ? o->stats->header->interval_cycles : UINT64_MAX;
	o->gap_min = RTE_MIN(o->worst_min, o->log_min - 1);
	if (!o->countdown || o->countdown > every)
		o->countdown = every;
	o->switching = (uint32_t)(state >> 32);
}

void rt_stat_thread_ends(struct rt_thread *t)
{
	struct rt_stats *f;

	rt_thread_enter(t);
	f = rt_load_acquire(&rt_stat_current); /* pairs with the release in begin() */
	/* Pairs with the release in supply_threads(). */
	if (f && t->index < rt_load_acquire(&f->threads_ready)) {
		struct rt_stat_own *o = &f->rows[t->index].own;

		close_period(o);
		rt_store(&o->last_tsc, 0);
		o->filling = NULL;
		o->switching = 0; /* the next owner of the slot publishes itself */
	}
	rt_thread_exit(t);
}

/* One run after the other, each when the control thread requests it. */
static struct rt_stat_run *next_run(struct rt_stat_own *o, uint64_t tsc)
{
	uint64_t wanted = rt_load(&rt_stat_mode.wanted);
	struct rt_stat_run *st;

	if (wanted == o->run)
		return NULL;
	o->run = wanted;
	st = &o->sampler->run[wanted % RT_STAT_RUNS];
	rt_store(&st->number, 0);
	rt_fence_release(); /* pairs with the second load of number in read_run() */
	rt_store(&st->count, 0);
	rt_store(&st->tsc, tsc);
	return st;
}

static struct rt_stat_sampler *claim_sampler(struct rt_stats *f, const struct rt_thread *t)
{
	struct rt_stat_sampler *s;
	uint32_t i;

	if (!rt_stat_take(&f->sampler_supply, &f->header->sampler_count, &i))
		return NULL;
	s = &f->samplers[i];
	s->thread = t->index;
	rt_store_release(&s->generation, t->generation); /* pairs with meet_sampler() */
	return s;
}

void rt_stat_sample(struct rt_stat_site *s, struct rt_stat_own *o, const struct rt_thread *t,
	struct rte_mbuf **pkts, unsigned n, uint64_t tsc)
{
	struct rt_stat_run *st;
	uint64_t at;

	if (!o->sampler)
		o->sampler = claim_sampler(s->stats, t);
	if (!o->sampler)
		return;
	if (!o->filling)
		o->filling = next_run(o, tsc);
	st = o->filling;
	if (!st)
		return;
	at = st->count;
	for (unsigned i = 0; i < n && at < RT_STAT_RUN; i++, at++) {
		st->sample[at] = (struct rt_stat_sample){
			.buf_addr = (uintptr_t)pkts[i]->buf_addr,
			.iova = rt_compat_mbuf_iova(pkts[i]),
			.tsc = (uint32_t)tsc,
			.port_index = (uint16_t)s->where,
			.queue = (uint16_t)(s->where >> 16),
		};
	}
	rt_store(&st->count, at);
	/* With little traffic, accept a short run. */
	if (at < RT_STAT_RUN && rt_load(&rt_stat_mode.wanted) - o->run < RUN_PATIENCE)
		return;
	/* Pairs with the acquire in read_run(). */
	rt_store_release(&st->number, o->run);
	rt_store_release(&o->sampler->done, o->run);
	o->filling = NULL;
}
