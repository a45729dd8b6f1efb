/* SPDX-License-Identifier: BSD-3-Clause */
/* The statistics' rings. */
#include <string.h>

#include <rte_mempool.h>

#include "common/ipc.h"
#include "probe/dpdk/rings.h"
#include "refresh.h"

#define POOL_PREFIX RTE_MEMPOOL_MZ_PREFIX

struct walk {
	struct rt_stats *f;
	uint32_t count, beyond; /* entries, new ones included; rings without an entry */
	bool seen[RT_STAT_RINGS];
};

/* A mempool keeps its objects in a ring of this name: it is shown as the pool's level. The table
 * lacks pools that are being filled. */
static bool is_of_pool(const struct walk *w, const char *name)
{
	const size_t prefix = strlen(POOL_PREFIX);

	if (strncmp(name, POOL_PREFIX, prefix))
		return false;
	for (uint32_t i = 0; i < RTE_MIN(w->f->header->pool_count, (uint32_t)RT_STAT_POOLS); i++)
		if (!strcmp(w->f->pools[i].name, name + prefix))
			return true;
	return rte_mempool_lookup(name + prefix) != NULL;
}

static struct rt_stat_ring *entry_of(struct walk *w, const struct rt_ring_level *r)
{
	struct rt_stat_ring *e;
	char name[RT_NAME_LEN];

	rt_str_set(name, sizeof(name), r->name);
	for (uint32_t i = 0; i < w->count; i++) {
		e = &w->f->rings[i];
		if (e->capacity == r->capacity && !strcmp(e->name, name))
			return e;
	}
	if (w->count == RT_STAT_RINGS)
		return NULL;
	e = &w->f->rings[w->count++];
	memset(e, 0, sizeof(*e));
	rt_str_set(e->name, sizeof(e->name), name);
	e->capacity = r->capacity;
	return e;
}

static void sample(const struct rt_ring_level *r, void *arg)
{
	struct walk *w = arg;
	struct rt_stat_ring *e;

	if (is_of_pool(w, r->name))
		return;
	e = entry_of(w, r);
	if (!e) {
		w->beyond++;
		return;
	}
	w->seen[e - w->f->rings] = true;
	rt_store(&e->state, RT_IF_PRESENT);
	rt_store(&e->used, r->used);
	if (r->used > e->highest)
		rt_store(&e->highest, r->used);
	rt_store(&e->recent[e->samples % RT_STAT_RECENT], r->used);
	/* Pairs with the acquire in read_rings(). */
	rt_store_release(&e->samples, e->samples + 1);
}

void rt_stats_sample_rings(struct rt_stats *f)
{
	struct walk w = {.f = f, .count = RTE_MIN(f->header->ring_count, (uint32_t)RT_STAT_RINGS)};
	uint32_t unread;

	if (rt_rings_each(sample, &w, &unread))
		rt_store(&f->header->rings_beyond, w.beyond + unread);
	/* Entries are complete. Pairs with the acquire in take_count(). */
	rt_store_release(&f->header->ring_count, w.count);
	for (uint32_t i = 0; i < w.count; i++)
		if (!w.seen[i])
			rt_store(&f->rings[i].state, RT_IF_GONE);
}
