/* SPDX-License-Identifier: BSD-3-Clause */
#include <rte_eal_memconfig.h>
#include <rte_tailq.h>

#include "mempools.h"
#include "secondary.h"
#include "teardown.h"

#define POOL_TAILQ "RTE_MEMPOOL" /* lib/mempool/rte_mempool.c */

TAILQ_HEAD(pool_list, rte_tailq_entry);

/* A pool that is created but not filled yet has no ops to call, and its lists may grow. */
static bool usable(const struct rte_mempool *mp)
{
	return mp->flags & RTE_MEMPOOL_F_POOL_CREATED && mp->populated_size == mp->size &&
	       mp->pool_data;
}

const struct rte_mbuf *rt_mempool_first_mbuf(const struct rte_mempool *mp)
{
	const struct rte_mempool_objhdr *h = STAILQ_FIRST(&mp->elt_list);
	const struct rte_mbuf *m = (const void *)(h + 1);

	if (!h || mp->private_data_size < sizeof(struct rte_pktmbuf_pool_private) ||
		mp->elt_size < sizeof(struct rte_mbuf))
		return NULL;
	return m->pool == mp && m->buf_addr ? m : NULL;
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
