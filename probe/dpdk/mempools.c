/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include <rte_eal_memconfig.h>
#include <rte_memzone.h>
#include <rte_tailq.h>

#include "common/atomics.h"
#include "build.h"
#include "mempools.h"
#include "secondary.h"
#include "teardown.h"

#define POOL_TAILQ "RTE_MEMPOOL" /* lib/mempool/rte_mempool.c */

#define FOREIGN_CHUNKS 4096u /* a millisecond under DPDK's locks, once for a pool */

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

bool rt_mempool_is_foreign(const struct rte_mempool *mp)
{
	return !(mp->flags & RTE_MEMPOOL_F_POOL_CREATED) || !mp->pool_data;
}

/* The lists of a foreign pool are the application's: the kernel reads them, which gives an error
 * instead of a signal. */
static bool copy(const struct rte_mempool *mp, void *to, const void *from, size_t size)
{
	const struct iovec local = {to, size}, remote = {(void *)from, size};

	if (rt_mempool_is_foreign(mp))
		return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == (ssize_t)size;
	memcpy(to, from, size);
	return true;
}

/* A list of another pool's objects is not a pool: VPP has one that frees in another way. */
static bool has_own_objects(const struct rte_mempool *mp)
{
	struct {
		struct rte_mempool_objhdr header;
		char object[sizeof(uint64_t) + sizeof(struct rte_mbuf)];
	} first;
	const void *h = STAILQ_FIRST(&mp->elt_list);

	return !rt_mempool_is_foreign(mp) ||
	       (h && copy(mp, &first, h, sizeof(first)) && first.header.mp == mp);
}

/* The lists of a pool that is not filled yet may grow. */
static bool usable(const struct rte_mempool *mp)
{
	struct rt_mempool_caches caches;

	return mp->size && mp->populated_size == mp->size && rt_mempool_caches(mp, &caches) &&
	       has_own_objects(mp);
}

uint32_t rt_mempool_available(const struct rte_mempool *mp)
{
	static const char *const dpdk[] = {"ring_mp_mc", "ring_sp_sc", "ring_mp_sc", "ring_sp_mc",
		"ring_mt_rts", "ring_mt_hts", "stack", "lf_stack", "bucket", "dpaa", "dpaa2",
		"octeontx_fpavf", "cn9k_mempool_ops", "cn10k_mempool_ops", "cn10k_hwpool_ops"};
	const char *ops = rte_mempool_get_ops(mp->ops_index)->name;
	bool known = !strcmp(ops, "vpp"); /* loads a number */

	for (size_t i = 0; i < RTE_DIM(dpdk) && !known && !rt_mempool_is_foreign(mp); i++)
		known = !strcmp(ops, dpdk[i]);
	return known ? rte_mempool_avail_count(mp) : UINT32_MAX;
}

bool rt_mempool_place(const struct rte_mempool *mp, uintptr_t *from, uintptr_t *to)
{
	const struct rte_mempool_memhdr *h = STAILQ_FIRST(&mp->mem_list);
	struct rte_mempool_memhdr chunk;

	*from = UINTPTR_MAX;
	*to = 0;
	for (uint32_t i = 0; h && i < mp->nb_mem_chunks; i++, h = STAILQ_NEXT(&chunk, next)) {
		if ((i == FOREIGN_CHUNKS && rt_mempool_is_foreign(mp)) ||
			!copy(mp, &chunk, h, sizeof(chunk)))
			return false;
		*from = RTE_MIN(*from, (uintptr_t)chunk.addr);
		*to = RTE_MAX(*to, (uintptr_t)chunk.addr + chunk.len);
	}
	return *to;
}

/* VPP sets another pool in the mbufs of shared buffers, for a time: in a foreign pool the buffer
 * behind the mbuf tells. A candidate may be misaligned: it is only compared. */
__attribute__((no_sanitize("alignment"))) static bool is_mbuf(
	const struct rte_mempool *mp, const struct rte_mbuf *m)
{
	if (!rt_mempool_is_foreign(mp))
		return m->pool == mp && m->buf_addr;
	return (uintptr_t)m->buf_addr - (uintptr_t)m <= sizeof(*m) + UINT16_MAX;
}

/* RTE_LIBRTE_MEMPOOL_DEBUG adds a number to the header of an object. */
const struct rte_mbuf *rt_mempool_first_mbuf(const struct rte_mempool *mp)
{
	const struct rte_mempool_objhdr *h = STAILQ_FIRST(&mp->elt_list);

	if (!h || mp->private_data_size < sizeof(struct rte_pktmbuf_pool_private) ||
		mp->elt_size < sizeof(struct rte_mbuf))
		return NULL;
	for (size_t more = 0; more <= sizeof(uint64_t); more += sizeof(uint64_t)) {
		const struct rte_mbuf *m = RTE_PTR_ADD(h + 1, more);

		if (is_mbuf(mp, m))
			return m;
	}
	return NULL;
}

bool rt_mempool_has(const struct rte_mempool *mp, uintptr_t mbuf)
{
	const struct rte_mempool_memhdr *h;

	if (rt_mempool_is_foreign(mp) || mbuf % sizeof(void *))
		return false;
	STAILQ_FOREACH(h, &mp->mem_list, next)
	{
		const uintptr_t at = mbuf - (uintptr_t)h->addr;

		if (at < h->len)
			return h->len - at >= sizeof(struct rte_mbuf) &&
			       rt_load((const void *const *)(mbuf + offsetof(struct rte_mbuf,
									    pool))) == mp;
	}
	return false;
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
