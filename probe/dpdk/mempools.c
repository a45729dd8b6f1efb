/* SPDX-License-Identifier: BSD-3-Clause */
#include <rte_eal_memconfig.h>
#include <rte_memzone.h>
#include <rte_tailq.h>

#include "build.h"
#include "mempools.h"
#include "secondary.h"
#include "teardown.h"

#define POOL_TAILQ "RTE_MEMPOOL" /* lib/mempool/rte_mempool.c */

TAILQ_HEAD(pool_list, rte_tailq_entry);

/* A pool is one memzone: struct rte_mempool, which is longer with RTE_LIBRTE_MEMPOOL_STATS, caches
 * of RTE_MEMPOOL_CACHE_MAX_SIZE for RTE_MAX_LCORE threads, and private data. */
bool rt_mempool_caches(const struct rte_mempool *mp, struct rt_mempool_caches *c)
{
	const size_t head = (uintptr_t)mp->local_cache - (uintptr_t)mp, line = RTE_CACHE_LINE_SIZE;
	size_t rest;

	*c = (struct rt_mempool_caches){.count = 0};
	if (!mp->mz || head < sizeof(*mp) || head % line ||
		mp->mz->len < head + mp->private_data_size)
		return false;
	rest = mp->mz->len - head - mp->private_data_size;
	if (!mp->cache_size)
		return !rest;
	c->count = rt_build_lcores();
	c->bytes = rest / c->count;
	c->room = (c->bytes - offsetof(struct rte_mempool_cache, objs)) / sizeof(void *);
	if (rest && rest % (c->count * line) == 0 && c->room >= mp->cache_size &&
		rt_mempool_cache(mp, c, 0)->size == mp->cache_size &&
		rt_mempool_cache(mp, c, c->count - 1)->size == mp->cache_size)
		return true;
	c->count = 0;
	return false;
}

const struct rte_pktmbuf_pool_private *rt_mempool_private(const struct rte_mempool *mp)
{
	return RTE_PTR_ADD(mp, mp->mz->len - mp->private_data_size);
}

/* A pool that is created but not filled yet has no ops to call, and its lists may grow. */
static bool usable(const struct rte_mempool *mp)
{
	struct rt_mempool_caches caches;

	return mp->flags & RTE_MEMPOOL_F_POOL_CREATED && mp->populated_size == mp->size &&
	       mp->pool_data && rt_mempool_caches(mp, &caches);
}

/* RTE_LIBRTE_MEMPOOL_DEBUG adds a number to the header of an object. */
/* A candidate may be misaligned: it is only compared. */
__attribute__((no_sanitize("alignment"))) const struct rte_mbuf *rt_mempool_first_mbuf(
	const struct rte_mempool *mp)
{
	const struct rte_mempool_objhdr *h = STAILQ_FIRST(&mp->elt_list);

	if (!h || mp->private_data_size < sizeof(struct rte_pktmbuf_pool_private) ||
		mp->elt_size < sizeof(struct rte_mbuf))
		return NULL;
	for (size_t more = 0; more <= sizeof(uint64_t); more += sizeof(uint64_t)) {
		const struct rte_mbuf *m = RTE_PTR_ADD(h + 1, more);

		if (m->pool == mp && m->buf_addr)
			return m;
	}
	return NULL;
}

bool rt_mempools_each(void (*f)(struct rte_mempool *mp, void *arg), void *arg)
{
	struct pool_list *list = RTE_TAILQ_LOOKUP(POOL_TAILQ, pool_list);
	struct rte_tailq_entry *entry;

	if (!list || rt_teardown_late() || rt_is_secondary())
		return false;
	rte_mcfg_mempool_read_lock();
	rte_mcfg_tailq_read_lock();
	TAILQ_FOREACH(entry, list, next)
	{
		if (usable(entry->data))
			f(entry->data, arg);
	}
	rte_mcfg_tailq_read_unlock();
	rte_mcfg_mempool_read_unlock();
	return true;
}
