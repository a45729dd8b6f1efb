/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory of fates, and the walk that finds received mbufs that are free in their pools. Under
 * DPDK's locks addresses are copied, of PIECE mbufs at a time; they are looked up in the table
 * afterwards, and never followed. The locks are the application's as well: a few pieces of some
 * microseconds in a second, rather than many small ones, each of which this thread may be
 * interrupted in. The application goes on taking and giving mbufs meanwhile: what
 * was received before the walk began and is in a free list then is what a walk finds.
 */
#include <stdlib.h>
#include <string.h>

#include <rte_ring.h>
#include <rte_stack.h>

#include "common/ipc.h"
#include "fate_table.h"
#include "probe/hook/hook.h"
#include "probe/dpdk/mbuf_field.h"
#include "probe/dpdk/mempools.h"
#include "probe/dpdk/teardown.h"

/* A tick keeps the control thread, and those that wait for its lock, for two pieces: for some
 * 16,000 cache misses, a millisecond or two, and where the table is full for eight times as many
 * probes at most. A million mbufs take six seconds. */
#define PIECE       4096u /* mbufs */
#define PIECES      2u    /* pieces in one tick */
#define AHEAD       8u    /* mbufs */
#define EVERY_MS    500u
#define CACHES_DONE UINT32_MAX

enum pool_kind { POOL_UNKNOWN, POOL_RING, POOL_STACK };

struct rt_fate_walk {
	bool on;
	bool last; /* under way */
	uint32_t number;
	uint64_t due_ms;
	uint64_t tsc, ns;   /* when it began */
	uint32_t pool;      /* the one that is being walked */
	uint32_t lcore;     /* its cache; CACHES_DONE: all are done */
	bool begun;         /* next and end are valid */
	bool again;         /* its caches are looked at once more */
	uint32_t next, end; /* in the ring, stack or cache */
	struct known {
		const struct rte_mempool *mp; /* NULL: freed */
		char name[RT_NAME_LEN];
		uint32_t size;
		enum pool_kind kind;
	} known[RT_FATE_POOLS];
	uint64_t seen;    /* pools that are there, by bit */
	uint32_t strange; /* pools that are there, and in no slot */
	const void *found[PIECE];
};

/* ---- the table ---- */

static void count_mbufs(struct rte_mempool *mp, void *arg)
{
	if (rt_mempool_first_mbuf(mp))
		*(uint64_t *)arg += mp->size;
}

uint64_t rt_fates_mbufs(void)
{
	uint64_t n = 0;

	rt_mempools_each(count_mbufs, &n);
	return n;
}

uint32_t rt_fates_bits(uint64_t mbufs, uint32_t snap, uint64_t most)
{
	uint64_t stride = sizeof(struct rt_seg_fate) + snap;
	uint32_t bits = RT_FATE_BITS_MIN;

	while (bits < RT_FATE_BITS_MAX && 1ull << bits < mbufs * 2 &&
		(!most || stride << (bits + 1) <= most))
		bits++;
	return bits;
}

struct rt_fates *rt_fates_new(const struct rt_session *s)
{
	const struct rt_seg_header *h = &s->shm.h;
	struct rt_fates *f = aligned_alloc(128, sizeof(*f));

	if (!f)
		return NULL;
	memset(f, 0, sizeof(*f));
	f->table = s->shm.fates;
	f->mask = (1ull << h->fate_bits) - 1;
	f->shift = 64 - h->fate_bits;
	f->probes = rt_fates_mbufs() * 2 <= f->mask + 1 ? RT_FATE_PROBES : RT_FATE_PROBES_SCARCE;
	f->stride = h->fate_stride;
	f->history = h->fate_history;
	f->history_field = f->history ? rt_mbuf_history_offset() : 0;
	f->snap = h->fate_snap - (f->history ? RT_FATE_HISTORY : 0);
	f->taps = s->taps;
	f->tap_capacity = s->tap_capacity;
	f->bursts = aligned_alloc(sizeof(*f->bursts), RT_MAX_RINGS * sizeof(*f->bursts));
	f->walk = calloc(1, sizeof(*f->walk));
	/* Touched now, not by a polling thread. */
	f->strays = aligned_alloc(128, RT_FATE_STRAYS * sizeof(*f->strays));
	if (f->bursts && f->walk && f->strays) {
		memset(f->strays, 0, RT_FATE_STRAYS * sizeof(*f->strays));
		memset(f->bursts, 0, RT_MAX_RINGS * sizeof(*f->bursts));
		return f;
	}
	rt_fates_free(f);
	return NULL;
}

void rt_fates_free(struct rt_fates *f)
{
	if (!f)
		return;
	free(f->bursts);
	free(f->walk);
	free(f->strays);
	free(f);
}

/* ---- which pools there are ---- */

static enum pool_kind kind_of(const struct rte_mempool *mp)
{
	static const char *const rings[] = {"ring_mp_mc", "ring_sp_sc", "ring_mp_sc", "ring_sp_mc",
		"ring_mt_rts", "ring_mt_hts"};
	const char *ops = rte_mempool_get_ops(mp->ops_index)->name;

	if (rt_mempool_is_foreign(mp))
		return POOL_UNKNOWN;
	for (unsigned i = 0; i < RTE_DIM(rings); i++) {
		if (strcmp(ops, rings[i]) == 0)
			return POOL_RING;
	}
	return strcmp(ops, "stack") == 0 ? POOL_STACK : POOL_UNKNOWN;
}

static bool is_known(const struct known *k, const struct rte_mempool *mp)
{
	return k->mp == mp && k->size == mp->size && strcmp(k->name, mp->name) == 0;
}

static void fill_slot(struct rt_session *s, const struct rte_mempool *mp, uint32_t i)
{
	struct rt_fate_walk *w = s->fates->walk;
	struct known *k = &w->known[i];
	struct rt_seg_fate_pool *out = &s->shm.fate_pools[i];

	k->mp = mp;
	k->size = mp->size;
	k->kind = kind_of(mp);
	rt_str_set(k->name, sizeof(k->name), mp->name);
	memcpy(out->name, k->name, sizeof(out->name));
	out->size = k->size;
	out->walked = k->kind != POOL_UNKNOWN;
	rt_store(&s->fates->pools[i], mp);
	w->seen |= 1ull << i;
	rt_store(&s->fates->pool_count, RTE_MAX(s->fates->pool_count, i + 1));
	/* Pairs with the acquire in find_pool(). */
	rt_store_release(&s->fates->pool_version, s->fates->pool_version + 1);
	/* The entry is complete, for readers that load the count with acquire. */
	rt_store_release(&s->shm.header->fate_pools, s->fates->pool_count);
}

/* The slot that the pool had before it was freed and made again, a new one, or that of any pool
 * that was freed; RT_FATE_POOLS: none. */
static uint32_t slot_for(const struct rt_fates *f, const struct rte_mempool *mp)
{
	uint32_t n = f->pool_count, freed = RT_FATE_POOLS;

	for (uint32_t i = 0; i < n; i++) {
		const struct known *k = &f->walk->known[i];

		if (k->mp)
			continue;
		if (k->size == mp->size && strcmp(k->name, mp->name) == 0)
			return i;
		freed = RTE_MIN(freed, i);
	}
	return n < RT_FATE_POOLS ? n : freed;
}

static bool in_a_slot(const struct rt_fates *f, const struct rte_mempool *mp)
{
	for (uint32_t i = 0; i < f->pool_count; i++) {
		if (is_known(&f->walk->known[i], mp)) {
			f->walk->seen |= 1ull << i;
			return true;
		}
	}
	return false;
}

static void look_at_pool(struct rte_mempool *mp, void *arg)
{
	struct rt_session *s = arg;

	if (rt_mempool_first_mbuf(mp) && !in_a_slot(s->fates, mp))
		s->fates->walk->strange++;
}

static void add_pool(struct rte_mempool *mp, void *arg)
{
	struct rt_session *s = arg;
	uint32_t i;

	if (!rt_mempool_first_mbuf(mp) || in_a_slot(s->fates, mp))
		return;
	i = slot_for(s->fates, mp);
	if (i == RT_FATE_POOLS)
		s->fates->walk->strange++;
	else
		fill_slot(s, mp, i);
}

static void look_at_pools(struct rt_session *s)
{
	struct rt_fate_walk *w = s->fates->walk;

	static_assert(RT_FATE_POOLS <= 64, "a bit for each");
	w->seen = w->strange = 0;
	if (!rt_mempools_each(look_at_pool, s))
		return;
	for (uint32_t i = 0; i < s->fates->pool_count; i++) {
		if (w->seen & 1ull << i)
			continue;
		w->known[i].mp = NULL;
		rt_store(&s->fates->pools[i], NULL);
	}
	/* Once the slots of those that were freed are known. */
	if (w->strange) {
		w->strange = 0;
		(void)rt_mempools_each(add_pool, s);
	}
	rt_store(&s->shm.header->fate_pools_beyond, w->strange);
}

/* ---- a piece of a walk ---- */

struct piece {
	struct rt_fate_walk *w;
	const struct known *k;
	bool there; /* the pool still is */
	bool done;  /* nothing is left of the pool */
	uint32_t n;
	const void **mbuf; /* PIECE */
};

/* Between the tails: what a thread is putting in is not there yet. */
static void copy_ring(struct piece *p, const struct rte_ring *r)
{
	struct rt_fate_walk *w = p->w;
	const void *const *slots = (const void *)(r + 1);
	const void **to = p->mbuf + p->n;
	uint32_t from = __atomic_load_n(&r->cons.tail, __ATOMIC_ACQUIRE), gone, n;

	if (!w->begun) {
		w->next = from;
		w->end = __atomic_load_n(&r->prod.tail, __ATOMIC_ACQUIRE);
		w->begun = true;
	}
	if ((int32_t)(from - w->next) > 0)
		w->next = from;
	if ((int32_t)(w->end - w->next) <= 0) {
		p->done = true;
		return;
	}
	n = RTE_MIN(w->end - w->next, PIECE - p->n);
	for (uint32_t i = 0; i < n; i++)
		to[i] = rt_load(&slots[(w->next + i) & r->mask]);
	rt_fence_acquire(); /* the slots before the tail, which consumers store with release */
	/* Entries that were taken since may have been replaced. */
	gone = rt_load(&r->cons.tail) - w->next;
	for (uint32_t i = 0; (int32_t)gone > 0 && i < RTE_MIN(gone, n); i++)
		to[i] = NULL;
	p->n += n;
	w->next += n;
	p->done = w->next == w->end;
}

/* Copies an array that threads change without a lock that could be taken here. Some change its
 * length before they write: an entry that differs between two readings is in motion. True: the
 * whole array is copied. */
static bool copy_array(struct piece *p, void *const *objs, const uint32_t *len, uint32_t most)
{
	struct rt_fate_walk *w = p->w;
	const void **to = p->mbuf + p->n;
	uint32_t end = RTE_MIN(rt_load(len), most), n;

	n = end > w->next ? RTE_MIN(end - w->next, PIECE - p->n) : 0;
	for (uint32_t i = 0; i < n; i++)
		to[i] = rt_load(&objs[w->next + i]);
	rt_fence_acquire();
	end = RTE_MIN(rt_load(len), most);
	for (uint32_t i = 0; i < n; i++) {
		if (w->next + i >= end || rt_load(&objs[w->next + i]) != to[i])
			to[i] = NULL;
	}
	p->n += n;
	w->next += n;
	return w->next >= end;
}

static void copy_caches(struct piece *p, const struct rte_mempool *mp)
{
	struct rt_fate_walk *w = p->w;
	struct rt_mempool_caches caches;

	(void)rt_mempool_caches(mp, &caches);
	for (; w->lcore < caches.count && p->n < PIECE; w->lcore++, w->next = 0) {
		const struct rte_mempool_cache *c = rt_mempool_cache(mp, &caches, w->lcore);

		if (!copy_array(p, c->objs, &c->len, caches.room))
			return;
	}
	if (w->lcore == caches.count)
		w->lcore = CACHES_DONE;
}

static void copy_stack(struct piece *p, const struct rte_stack *s)
{
	if (s->flags & RTE_STACK_F_LF) {
		p->done = true;
		return;
	}
	p->done = copy_array(p, s->stack_std.objs, &s->stack_std.len, s->capacity);
}

/* Copies from the caches, or from what is behind them. */
static void copy_step(struct piece *p, const struct rte_mempool *mp)
{
	struct rt_fate_walk *w = p->w;

	if (!mp->cache_size)
		w->lcore = CACHES_DONE;
	if (w->lcore < CACHES_DONE)
		copy_caches(p, mp);
	else if (w->again)
		p->done = true;
	else if (p->k->kind == POOL_RING)
		copy_ring(p, mp->pool_data);
	else
		copy_stack(p, mp->pool_data);
	if (p->done && !w->again && mp->cache_size) {
		w->again = true;
		w->lcore = w->next = 0;
		p->done = false;
	}
}

/* Caches first, for mbufs that go to the ring meanwhile, and last, for those that come from it. */
static void copy_piece(struct rte_mempool *mp, void *arg)
{
	struct piece *p = arg;

	if (p->there || !is_known(p->k, mp))
		return;
	p->there = true;
	while (!p->done && p->n < PIECE)
		copy_step(p, mp);
}

static void prefetch(const struct rt_fates *f, const void *mbuf)
{
	__builtin_prefetch(rt_fate_at(f, rt_fate_place(f, (uintptr_t)mbuf)), 1, 3);
}

void rt_fates_mark(
	struct rt_fates *f, const void *mbuf, uint32_t walk, uint64_t since, uint32_t *spare)
{
	struct rt_seg_fate *e = rt_fate_of(f, mbuf, false, spare);
	uint64_t id;

	if (!e)
		return;
	id = rt_load_acquire(&e->id); /* first: another one later on is a later reception */
	/* Pairs with the release in receive_chunk(). */
	if (rt_load_acquire(&e->state) != RT_FATE_OPEN || (int64_t)(rt_load(&e->tsc) - since) >= 0)
		return;
	__atomic_exchange_n(&e->walk, walk, __ATOMIC_SEQ_CST);
	/* Received again meanwhile: its thread may have cleared the number before. */
	if (rt_load_acquire(&e->id) != id || rt_load_acquire(&e->state) != RT_FATE_OPEN)
		rt_store(&e->walk, 0);
}

static void next_pool(struct rt_fate_walk *w)
{
	w->pool++;
	w->lcore = w->next = 0;
	w->begun = w->again = false;
}

static void walk_piece(struct rt_session *s)
{
	struct rt_fate_walk *w = s->fates->walk;
	struct piece p = {.w = w, .k = &w->known[w->pool], .mbuf = w->found};
	uint32_t spare = RT_FATE_SPARE; /* entries in all: the reader may have filled the table */

	if (p.k->mp && p.k->kind != POOL_UNKNOWN)
		(void)rt_mempools_each(copy_piece, &p);
	for (uint32_t i = 0; i < p.n; i++) {
		if (i + AHEAD < p.n)
			prefetch(s->fates, p.mbuf[i + AHEAD]);
		if (p.mbuf[i])
			rt_fates_mark(s->fates, p.mbuf[i], w->number, w->tsc, &spare);
	}
	if (!p.there || p.done)
		next_pool(w);
}

/* ---- walks ---- */

static void begin(struct rt_session *s, const struct rt_clock_line *line)
{
	struct rt_fate_walk *w = s->fates->walk;

	look_at_pools(s);
	rt_fates_begin_histories(s->fates);
	w->on = true;
	w->number++;
	w->pool = UINT32_MAX;
	next_pool(w);
	w->tsc = rt_tsc();
	w->ns = rt_clock_ns(line, w->tsc);
}

static void end(struct rt_session *s)
{
	struct rt_fate_walk *w = s->fates->walk;

	w->on = false;
	rt_fates_watch(s); /* before what it has found counts */
	rt_store(&s->shm.header->fate_walk_ns, w->ns);
	/* The numbers are in the entries, the time is in place, for readers that load this with
	 * acquire. */
	rt_store_release(&s->shm.header->fate_walk, w->number);
}

static uint64_t open_in(const struct rt_session *s, const struct rt_seg_count *row)
{
	uint64_t open = 0;

	for (uint32_t t = 0; t < s->tap_count; t++)
		open += rt_load(&row[t].received) - rt_load(&row[t].offered) -
			rt_load(&row[t].not_offered) - rt_load(&row[t].unknown);
	return open;
}

/* Whether a walk could find anything. By counters that the reader may have changed: its own
 * numbers are wrong then. */
static bool has_open(const struct rt_session *s)
{
	uint64_t open = 0;

	RT_EACH_RING(s, r)
	open += open_in(s, s->rings[r].counts);
	return open + open_in(s, s->orphans) != 0;
}

/* False: the walk is over. */
static bool go_on(struct rt_session *s, uint32_t pieces)
{
	struct rt_fate_walk *w = s->fates->walk;

	for (; w->pool < s->fates->pool_count; walk_piece(s)) {
		if (!pieces-- || rt_teardown_late())
			return true;
	}
	end(s);
	return false;
}

void rt_fates_walk(struct rt_session *s, uint64_t now_ms)
{
	const struct rt_clock_line line = rt_latch_read(&rt_hook_clock);
	struct rt_fate_walk *w = s->fates->walk;

	if (!w->on) {
		if (now_ms < w->due_ms)
			return;
		w->due_ms = now_ms + EVERY_MS;
		if (w->number && !has_open(s))
			return;
		begin(s, &line);
	}
	(void)go_on(s, PIECES);
}

bool rt_fates_walk_last(struct rt_session *s)
{
	const struct rt_clock_line line = rt_latch_read(&rt_hook_clock);

	struct rt_fate_walk *w = s->fates->walk;

	if (!w->last)
		begin(s, &line);
	w->last = go_on(s, 1);
	return !w->last;
}
