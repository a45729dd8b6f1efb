/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What DPDK has noted of the mbufs of open packets, for readers. The table has their addresses, but
 * readers may write to it: an address is followed only if a pool has an mbuf there, and under
 * DPDK's locks, which keep the pool.
 */
#include "common/atomics.h"
#include "fate_table.h"
#include "probe/dpdk/mempools.h"
#include "probe/dpdk/teardown.h"

/* In a tick: entries, of which one line is read, and pieces of mbufs, a cache miss or two each. */
#define ENTRIES 32768u
#define PIECES  8u
#define PIECE   256u

struct piece {
	uint32_t n, field;
	struct open {
		struct rt_seg_fate *entry;
		uint64_t id, ops;
		uintptr_t mbuf;
		bool read;
	} open[PIECE];
};

static void find_open(struct rt_fates *f, struct piece *p, uint64_t end)
{
	for (p->n = 0; f->history_next < end && p->n < PIECE; f->history_next++) {
		struct rt_seg_fate *e = rt_fate_at(f, f->history_next);

		if (rt_load_acquire(&e->state) == RT_FATE_OPEN)
			p->open[p->n++] = (struct open){
				.entry = e, .id = rt_load(&e->id), .mbuf = rt_load(&e->mbuf)};
	}
}

static void read_pool(struct rte_mempool *mp, void *arg)
{
	struct piece *p = arg;

	if (!rt_mempool_first_mbuf(mp))
		return;
	for (uint32_t i = 0; i < p->n; i++) {
		struct open *o = &p->open[i];

		if (o->read || !rt_mempool_has(mp, o->mbuf))
			continue;
		o->ops = rt_load((const uint64_t *)(o->mbuf + p->field));
		o->read = true;
	}
}

static void note(const struct rt_fates *f, const struct open *o)
{
	struct rt_seg_history *h = (void *)((uint8_t *)o->entry + f->history);

	rt_fence_acquire();
	/* Received again meanwhile: the operations may be those of another packet. */
	if (!o->read || rt_load(&o->entry->state) != RT_FATE_OPEN ||
		rt_load(&o->entry->id) != o->id)
		return;
	rt_store(&h->id, 0);
	rt_fence_release(); /* pairs with the fence in read_history() of reader/capture/fates.c */
	rt_store(&h->ops, o->ops);
	rt_store_release(&h->id, o->id);
}

void rt_fates_begin_histories(struct rt_fates *f)
{
	if (f->history_next > f->mask)
		f->history_next = 0;
}

void rt_fates_read_histories(struct rt_fates *f)
{
	const uint64_t end = RTE_MIN(f->history_next + ENTRIES, f->mask + 1);
	struct piece p = {.field = f->history_field};

	if (!f->history)
		return;
	for (uint32_t n = 0; n < PIECES && f->history_next < end && !rt_teardown_late(); n++) {
		find_open(f, &p, end);
		if (!p.n || !rt_mempools_each(read_pool, &p))
			continue;
		for (uint32_t i = 0; i < p.n; i++)
			note(f, &p.open[i]);
	}
}
