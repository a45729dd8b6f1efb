/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/atomics.h"
#include "fate.h"
#include "ids.h"

#define PROBES 64u /* entries that are looked at; the table is half full at most */

int rt_fates_make(struct rt_fates *f, uint32_t mbufs)
{
	uint32_t bits = 64 - (uint32_t)__builtin_clzll((uint64_t)mbufs * 2 | PROBES);
	size_t bytes = sizeof(*f->entries) << bits;

	f->shift = 64 - bits;
	f->entries = aligned_alloc(RT_CACHE_LINE, bytes);
	if (!f->entries)
		return -ENOMEM;
	memset(f->entries, 0, bytes); /* also populates it: polling threads do not fault */
	return 0;
}

void rt_fates_free(struct rt_fates *f)
{
	free(f->entries);
	f->entries = NULL;
}

/* Of an mbuf; NULL: it has none, and there is no room where it would be, or it is not claimed. */
static struct rt_fate_entry *entry_of(struct rt_fates *f, const struct rte_mbuf *m, bool claim)
{
	const uint64_t key = (uintptr_t)m, mask = UINT64_MAX >> f->shift;
	uint64_t i = (key >> 6) * 0x9e3779b97f4a7c15ull >> f->shift;

	for (unsigned n = 0; n < PROBES; n++, i = (i + 1) & mask) {
		struct rt_fate_entry *e = &f->entries[i];
		uint64_t there = rt_load(&e->mbuf);

		if (there == key)
			return e;
		if (there)
			continue;
		if (!claim)
			return NULL;
		if (rt_cas(&e->mbuf, &there, key))
			return e;
		if (there == key) /* cannot be: one thread has the mbuf */
			return e;
	}
	return NULL;
}

static inline bool is_shared(const struct rte_mbuf *m)
{
	return rte_mbuf_refcnt_read(m) != 1;
}

static inline uint64_t id_in(const struct rte_mbuf *m)
{
	return *RTE_MBUF_DYNFIELD(m, rt_load(&rt_ids.offset), const uint64_t *) & RT_ID_MASK;
}

#define ADD(counter, v) rt_store(&(counter), (counter) + (v))

void rt_fate_received(struct rt_fates *f, struct rt_fate_count *row, uint32_t site,
	struct rte_mbuf **pkts, unsigned n, uint64_t tsc)
{
	ADD(row[site].seen, n);
	for (unsigned i = 0; i < n; i++) {
		struct rte_mbuf *m = pkts[i];
		struct rt_fate_entry *e = is_shared(m) ? NULL : entry_of(f, m, true);

		if (rt_unlikely(!e)) {
			ADD(row[site].unknown, 1);
			continue;
		}
		if (rt_load(&e->state) == RT_FATE_OPEN)
			ADD(row[e->site].not_offered, 1);
		rt_store(&e->id, id_in(m));
		rt_store(&e->tsc, tsc);
		rt_store(&e->site, site);
		rt_store(&e->state, RT_FATE_OPEN);
	}
}

/* True for the one thread that settles it. Others may have the same mbuf, or clones of it. */
static bool settle(struct rt_fate_entry *e, bool alone)
{
	uint32_t open = RT_FATE_OPEN;

	if (!alone)
		return rt_cas(&e->state, &open, RT_FATE_SETTLED);
	rt_store(&e->state, RT_FATE_SETTLED);
	return true;
}

/* The packet of an open entry, by the mbuf that was offered. */
static void count(struct rt_fate_count *c, const struct rt_fate_entry *e, const struct rte_mbuf *m)
{
	bool same = id_in(m) == e->id;

	if (m->ol_flags & rt_load(&rt_ids.flag)) {
		if (same)
			ADD(c->offered, 1);
		else /* a clone or a copy of another packet was made here */
			ADD(c->not_offered, 1);
	} else if (same && m->port != RTE_MBUF_PORT_INVALID) {
		ADD(c->unknown, 1);
		ADD(c->inferred, 1);
	} else { /* the application has made a packet here */
		ADD(c->not_offered, 1);
	}
}

static void offer(
	struct rt_fates *f, struct rt_fate_count *row, const struct rte_mbuf *m, bool alone)
{
	struct rt_fate_entry *e = entry_of(f, m, false);

	if (e && rt_load(&e->state) == RT_FATE_OPEN && settle(e, alone))
		count(&row[e->site], e, m);
}

void rt_fate_offered(
	struct rt_fates *f, struct rt_fate_count *row, struct rte_mbuf **pkts, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		const struct rte_mbuf *m = pkts[i];

		for (unsigned segs = m->nb_segs; m && segs; m = m->next, segs--) {
			offer(f, row, m, !is_shared(m));
			if (RTE_MBUF_CLONED(m))
				offer(f, row,
					rte_mbuf_from_indirect((struct rte_mbuf *)(uintptr_t)m),
					false);
		}
	}
}
