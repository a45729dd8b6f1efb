/* SPDX-License-Identifier: BSD-3-Clause */
/* The statistics' mempools. */
#include <stdio.h>
#include <string.h>

#include <rte_mbuf.h>
#include <rte_memory.h>
#include <rte_mempool.h>

#include "common/ipc.h"
#include "probe/dpdk/mempools.h"
#include "refresh.h"

static void show_place(struct rt_stat_pool *p, const struct rte_mempool *mp)
{
	uintptr_t from, to;

	if (rt_mempool_place(mp, &from, &to)) {
		p->base = from;
		p->span = to - from;
	}
	p->chunks = mp->nb_mem_chunks;
}

/* Where packets lie, which is outside the pool if its buffers are external. */
static uintptr_t show_buffers(struct rt_stat_pool *p, struct rte_mempool *mp)
{
	const struct rte_mbuf *m = rt_mempool_first_mbuf(mp);
	uintptr_t where = m ? (uintptr_t)m->buf_addr : p->base;
	const struct rte_memseg_list *msl = rte_mem_virt2memseg_list((void *)where);

	if (m) {
		p->buffer_bytes = rt_mempool_private(mp)->mbuf_data_room_size;
		p->pinned_external =
			(rt_mempool_private(mp)->flags & RTE_PKTMBUF_POOL_F_PINNED_EXT_BUF) != 0;
	}
	p->memory = msl && !msl->external ? RT_MEM_DPDK : RT_MEM_EXTERNAL;
	p->page_bytes = msl ? msl->page_sz : 0;
	return where;
}

static void show_identity(struct rt_stat_pool *p, struct rte_mempool *mp)
{
	const struct rte_mempool_ops *ops = rte_mempool_get_ops(mp->ops_index);

	memset(p, 0, sizeof(*p));
	rt_str_set(p->name, sizeof(p->name), mp->name);
	rt_str_set(p->ops, sizeof(p->ops), ops->name);
	p->address = (uintptr_t)mp;
	p->state = RT_IF_PRESENT;
	p->size = mp->size;
	p->object_bytes = mp->header_size + mp->elt_size + mp->trailer_size;
	p->socket = mp->socket_id;
	p->cache_size = mp->cache_size;
	p->lowest = UINT32_MAX;
	show_place(p, mp);
}

static void show_levels(struct rt_stat_pool *p, const struct rte_mempool *mp)
{
	/* Not an atomic snapshot: sums may be off by objects that move meanwhile. */
	uint32_t in_caches = 0, available = rt_mempool_available(mp);
	struct rt_mempool_caches c;

	(void)rt_mempool_caches(mp, &c);
	for (unsigned i = 0; i < c.count; i++) {
		uint32_t len = rt_load(&rt_mempool_cache(mp, &c, i)->len);

		in_caches += len;
		if (i < RTE_DIM(p->cache))
			rt_store(&p->cache[i], (uint16_t)RTE_MIN(len, (uint32_t)UINT16_MAX));
	}
	rt_store(&p->in_caches, in_caches);
	rt_store(&p->available, available);
	if (available < p->lowest)
		rt_store(&p->lowest, available);
}

static struct rt_stat_pool *find_pool(struct rt_stats *f, const struct rte_mempool *mp)
{
	uint32_t n = RTE_MIN(f->header->pool_count, (uint32_t)RT_STAT_POOLS);

	for (uint32_t i = 0; i < n; i++) {
		struct rt_stat_pool *p = &f->pools[i];

		if (p->state == RT_IF_PRESENT && p->address == (uintptr_t)mp &&
			strcmp(p->name, mp->name) == 0 && p->size == mp->size)
			return p;
	}
	return NULL;
}

struct newcomer {
	struct rt_stat_pool *pool;
	uintptr_t where; /* address of its buffers */
};

/* One mapping of /proc/self/smaps. */
struct mapping {
	unsigned long long begin, end, page_kib, rss_kib, huge_kib;
};

static void take_line(struct mapping *m, const char *line)
{
	unsigned long long kib;

	if (sscanf(line, "KernelPageSize: %llu", &kib) == 1)
		m->page_kib = kib;
	else if (sscanf(line, "Rss: %llu", &kib) == 1)
		m->rss_kib = kib;
	else if (sscanf(line, "AnonHugePages: %llu", &kib) == 1 ||
		 sscanf(line, "ShmemPmdMapped: %llu", &kib) == 1)
		m->huge_kib += kib;
}

static void show_pages(const struct mapping *m, const struct newcomer *fresh, uint32_t n)
{
	bool huge = m->huge_kib > m->rss_kib / 2;

	for (uint32_t i = 0; i < n && m->page_kib; i++) {
		if (fresh[i].where >= m->begin && fresh[i].where < m->end)
			fresh[i].pool->page_bytes = huge ? 2u << 20 : m->page_kib << 10;
	}
}

/* The pages that the buffers lie in: without huge pages of its own, DPDK gets pages of the
 * kernel's choice. */
static void ask_kernel(const struct newcomer *fresh, uint32_t n)
{
	FILE *f = n ? fopen("/proc/self/smaps", "re") : NULL;
	struct mapping m = {0};
	char line[256];

	while (f && fgets(line, sizeof(line), f)) {
		struct mapping next = {0};

		if (sscanf(line, "%llx-%llx ", &next.begin, &next.end) == 2) {
			show_pages(&m, fresh, n);
			m = next;
		} else {
			take_line(&m, line);
		}
	}
	show_pages(&m, fresh, n);
	if (f)
		fclose(f);
}

static bool pages_known(const struct rt_stat_pool *p)
{
	return p->memory == RT_MEM_DPDK && p->page_bytes > 4096;
}

struct walk {
	struct rt_stats *f;
	uint64_t seen;                          /* a bit for each entry of f */
	uint32_t count, fresh, beyond;          /* entries before; new ones; without an entry */
	struct newcomer unknown[RT_STAT_POOLS]; /* that need the kernel's page sizes */
	uint32_t unknown_count;
};

static void show_pool(struct rte_mempool *mp, void *arg)
{
	struct walk *w = arg;
	struct rt_stat_pool *p = find_pool(w->f, mp);
	bool fresh = !p;

	if (!p && w->count + w->fresh == RT_STAT_POOLS) {
		w->beyond++;
		return;
	}
	if (fresh) {
		p = &w->f->pools[w->count + w->fresh++];
		show_identity(p, mp);
	}
	/* Its mbufs may have been made after the pool was filled. */
	if (fresh || (!p->buffer_bytes && rt_mempool_first_mbuf(mp))) {
		uintptr_t where = show_buffers(p, mp);

		if (!pages_known(p))
			w->unknown[w->unknown_count++] = (struct newcomer){p, where};
	}
	show_levels(p, mp);
	w->seen |= 1ull << (p - w->f->pools);
}

void rt_stats_refresh_pools(struct rt_stats *f)
{
	struct walk w = {.f = f, .count = RTE_MIN(f->header->pool_count, (uint32_t)RT_STAT_POOLS)};

	static_assert(RT_STAT_POOLS <= 64, "a bit for each");
	if (rt_mempools_each(show_pool, &w))
		rt_store(&f->header->pools_beyond, w.beyond);
	ask_kernel(w.unknown, w.unknown_count);
	/* Entries are complete. Pairs with the acquire in take_count(). */
	rt_store_release(&f->header->pool_count, f->header->pool_count + w.fresh);
	for (uint32_t i = 0; i < f->header->pool_count; i++) {
		if (!(w.seen & 1ull << i))
			rt_store(&f->pools[i].state, RT_IF_GONE);
	}
}
