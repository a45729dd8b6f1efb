/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory of fates, and the walk that finds received mbufs that are free in their pools. Under
 * DPDK's locks addresses are copied, of PIECE mbufs at a time; they are looked up in the table
 * afterwards, and never followed. The application goes on taking and giving mbufs meanwhile: what
 * was received before the walk began and is in a free list then is what a walk finds.
 */
#include <stdlib.h>
#include <string.h>

#include <rte_ring.h>
#include <rte_stack.h>

#include "common/ipc.h"
#include "fate.h"
#include "probe/core/hook_burst.h"
#include "probe/core/mempools.h"
#include "probe/core/teardown.h"

#define PIECE         256u /* mbufs */
#define PIECES        256u /* of one tick */
#define EVERY_MS      500u
#define PROBES        64u /* of a table that is half full at most */
#define PROBES_SCARCE 8u  /* of one that is too small: each costs a cache miss */

enum pool_kind { POOL_UNKNOWN, POOL_RING, POOL_STACK };

struct rt_fate_walk {
	bool on;
	bool last; /* under way */
	uint32_t number;
	uint64_t due_ms;
	uint64_t tsc, ns;   /* when it began */
	uint32_t pool;      /* the one that is being walked */
	uint32_t lcore;     /* its cache; RTE_MAX_LCORE: the caches are done */
	bool begun;         /* next and end are valid */
	uint32_t next, end; /* in the ring, stack or cache */
	struct known {
		const struct rte_mempool *mp; /* NULL: freed */
		char name[RT_NAME_LEN];
		uint32_t size;
		enum pool_kind kind;
	} known[RT_FATE_POOLS];
	uint64_t seen; /* pools that are there, by bit */
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
	struct rt_fates *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->table = s->shm.fates;
	f->mask = (1ull << h->fate_bits) - 1;
	f->shift = 64 - h->fate_bits;
	f->probes = rt_fates_mbufs() * 2 <= f->mask + 1 ? PROBES : PROBES_SCARCE;
	f->stride = h->fate_stride;
	f->snap = h->fate_snap;
	f->taps = s->taps;
	f->tap_capacity = s->tap_capacity;
	f->bursts = calloc(s->ring_count, sizeof(*f->bursts));
	f->walk = calloc(1, sizeof(*f->walk));
	if (f->bursts && f->walk)
		return f;
	rt_fates_free(f);
	return NULL;
}

void rt_fates_free(struct rt_fates *f)
{
	if (!f)
		return;
	free(f->bursts);
	free(f->walk);
	free(f);
}

/* ---- which pools there are ---- */

static enum pool_kind kind_of(const struct rte_mempool *mp)
{
	static const char *const rings[] = {"ring_mp_mc", "ring_sp_sc", "ring_mp_sc", "ring_sp_mc",
		"ring_mt_rts", "ring_mt_hts"};
	const char *ops = rte_mempool_get_ops(mp->ops_index)->name;

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

static void add_pool(struct rt_session *s, const struct rte_mempool *mp, uint32_t i)
{
	struct known *k = &s->fates->walk->known[i];
	struct rt_seg_fate_pool *out = &s->shm.fate_pools[i];

	k->mp = mp;
	k->size = mp->size;
	k->kind = kind_of(mp);
	rt_str_set(k->name, sizeof(k->name), mp->name);
	memcpy(out->name, k->name, sizeof(out->name));
	out->size = k->size;
	out->walked = k->kind != POOL_UNKNOWN;
	rt_store(&s->fates->pools[i], mp);
	rt_store(&s->fates->pool_count, i + 1);
	/* The entry is complete, for readers that load the count with acquire. */
	rt_store_release(&s->shm.header->fate_pools, i + 1);
}

static void look_at_pool(struct rte_mempool *mp, void *arg)
{
	struct rt_session *s = arg;
	struct rt_fate_walk *w = s->fates->walk;
	uint32_t n = s->fates->pool_count;

	if (!rt_mempool_first_mbuf(mp))
		return;
	for (uint32_t i = 0; i < n; i++) {
		if (is_known(&w->known[i], mp)) {
			w->seen |= 1ull << i;
			return;
		}
	}
	if (n == RT_FATE_POOLS)
		return;
	add_pool(s, mp, n);
	w->seen |= 1ull << n;
}

static void look_at_pools(struct rt_session *s)
{
	struct rt_fate_walk *w = s->fates->walk;

	static_assert(RT_FATE_POOLS <= 64, "a bit for each");
	w->seen = 0;
	if (!rt_mempools_each(look_at_pool, s))
		return;
	for (uint32_t i = 0; i < s->fates->pool_count; i++) {
		if (w->seen & 1ull << i)
			continue;
		w->known[i].mp = NULL;
		rt_store(&s->fates->pools[i], NULL);
	}
}

/* ---- a piece of a walk ---- */

struct piece {
	struct rt_fate_walk *w;
	const struct known *k;
	bool there; /* the pool still is */
	bool done;  /* nothing is left of the pool */
	uint32_t n;
	const void *mbuf[PIECE];
};

/* Between the tails: what a thread is putting in is not there yet. */
static void copy_ring(struct piece *p, const struct rte_ring *r)
{
	struct rt_fate_walk *w = p->w;
	const void *const *slots = (const void *)(r + 1);
	uint32_t from = __atomic_load_n(&r->cons.tail, __ATOMIC_ACQUIRE), gone;

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
	p->n = RTE_MIN(w->end - w->next, PIECE);
	for (uint32_t i = 0; i < p->n; i++)
		p->mbuf[i] = rt_load(&slots[(w->next + i) & r->mask]);
	rt_fence_acquire(); /* the slots before the tail, which consumers store with release */
	/* Those that have been taken since may have been replaced. */
	gone = rt_load(&r->cons.tail) - w->next;
	for (uint32_t i = 0; (int32_t)gone > 0 && i < RTE_MIN(gone, p->n); i++)
		p->mbuf[i] = NULL;
	w->next += p->n;
}

/* Of an array with its length, which threads use without a lock that could be taken here. Some
 * change the length before they write: what is not the same in two looks is in motion. */
static void copy_array(struct piece *p, void *const *objs, const uint32_t *len, uint32_t most)
{
	struct rt_fate_walk *w = p->w;
	uint32_t end = RTE_MIN(rt_load(len), most);

	p->n = end > w->next ? RTE_MIN(end - w->next, PIECE) : 0;
	for (uint32_t i = 0; i < p->n; i++)
		p->mbuf[i] = rt_load(&objs[w->next + i]);
	rt_fence_acquire();
	end = RTE_MIN(rt_load(len), most);
	for (uint32_t i = 0; i < p->n; i++) {
		if (w->next + i >= end || rt_load(&objs[w->next + i]) != p->mbuf[i])
			p->mbuf[i] = NULL;
	}
	w->next += p->n;
}

static void copy_cache(struct piece *p, const struct rte_mempool *mp)
{
	const struct rte_mempool_cache *c = &mp->local_cache[p->w->lcore];

	copy_array(p, c->objs, &c->len, RTE_DIM(c->objs));
	if (p->n < PIECE) {
		p->w->lcore++;
		p->w->next = 0;
	}
}

static void copy_stack(struct piece *p, const struct rte_stack *s)
{
	if (s->flags & RTE_STACK_F_LF) {
		p->done = true;
		return;
	}
	copy_array(p, s->stack_std.objs, &s->stack_std.len, s->capacity);
	p->done = p->n < PIECE;
}

/* Caches first, as mbufs go from them to the ring rather than back while packets are dropped. */
static void copy_piece(struct rte_mempool *mp, void *arg)
{
	struct piece *p = arg;
	struct rt_fate_walk *w = p->w;

	if (p->there || !is_known(p->k, mp))
		return;
	p->there = true;
	if (!mp->cache_size)
		w->lcore = RTE_MAX_LCORE;
	while (w->lcore < RTE_MAX_LCORE && !rt_load(&mp->local_cache[w->lcore].len))
		w->lcore++;
	if (w->lcore < RTE_MAX_LCORE)
		copy_cache(p, mp);
	else if (p->k->kind == POOL_RING)
		copy_ring(p, mp->pool_data);
	else
		copy_stack(p, mp->pool_data);
}

static void next_pool(struct rt_fate_walk *w)
{
	w->pool++;
	w->lcore = w->next = 0;
	w->begun = false;
}

static void walk_piece(struct rt_session *s)
{
	struct rt_fate_walk *w = s->fates->walk;
	struct piece p = {.w = w, .k = &w->known[w->pool]};

	if (p.k->mp && p.k->kind != POOL_UNKNOWN)
		(void)rt_mempools_each(copy_piece, &p);
	for (uint32_t i = 0; i < p.n; i++)
		rt_fates_prefetch(s->fates, p.mbuf[i]);
	for (uint32_t i = 0; i < p.n; i++) {
		if (p.mbuf[i])
			rt_fates_mark(s->fates, p.mbuf[i], w->number, w->tsc);
	}
	if (!p.there || p.done)
		next_pool(w);
}

/* ---- walks ---- */

static void begin(struct rt_session *s, const struct rt_clock_line *line)
{
	struct rt_fate_walk *w = s->fates->walk;

	look_at_pools(s);
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
	rt_store(&s->shm.header->fate_walk_ns, w->ns);
	/* The numbers are in the entries, the time is in place, for readers that load this with
	 * acquire. */
	rt_store_release(&s->shm.header->fate_walk, w->number);
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

	if (!w->on && now_ms < w->due_ms)
		return;
	if (!w->on) {
		begin(s, &line);
		w->due_ms = now_ms + EVERY_MS;
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
