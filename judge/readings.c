/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "limits.h"
#include "measure/pools.h"
#include "measure/rates.h"
#include "readings.h"

/* ---- use, in parts of as many readings as it takes for all to fit */

static void merge_pairs(struct pool_use *u)
{
	for (uint32_t i = 0; i < USE_PARTS / 2; i++) {
		uint32_t a = 2 * i, b = a + 1;

		u->part[i].least =
			u->part[a].least < u->part[b].least ? u->part[a].least : u->part[b].least;
		u->part[i].most =
			u->part[a].most > u->part[b].most ? u->part[a].most : u->part[b].most;
	}
	u->parts = USE_PARTS / 2;
	u->each *= 2;
}

void pool_use_add(struct pool_use *u, uint64_t ns, uint32_t in_use)
{
	if (!u->parts) {
		u->first = in_use;
		u->first_ns = ns;
		u->each = 1;
	}
	u->last = in_use;
	u->last_ns = ns;
	if (u->parts && u->in_last < u->each) {
		uint32_t i = u->parts - 1;

		u->in_last++;
		if (in_use < u->part[i].least)
			u->part[i].least = in_use;
		if (in_use > u->part[i].most)
			u->part[i].most = in_use;
		return;
	}
	if (u->parts == USE_PARTS)
		merge_pairs(u);
	u->part[u->parts].least = u->part[u->parts].most = in_use;
	u->parts++;
	u->in_last = 1;
}

/* ---- snapshots */

unsigned readings_burst(const struct watched *a)
{
	struct tally t;
	struct span s;

	if (!span_of(a, &s))
		return LIMIT_BURST;
	tally_sum(&t, &s, RINGTAP_NO_INDEX, RINGTAP_NO_INDEX, RINGTAP_RX);
	return t.max_burst ? t.max_burst : LIMIT_BURST;
}

/* Mbufs in the receiving threads' caches of a pool: those of the thread with the most. */
struct receivers {
	uint32_t own;
	bool found;
	bool uncached; /* one has no cache that is known */
};

static struct receivers receivers(const struct watched *a, const struct ringtap_pool_stats *p)
{
	struct receivers r = {0};
	struct span s;

	if (!span_of(a, &s))
		return r;
	for (uint32_t i = 0; i < s.to->thread_count; i++) {
		uint32_t lcore = ringtap_snapshot_thread(s.to, i)->lcore;
		struct tally polls;

		tally_sum(&polls, &s, RINGTAP_NO_INDEX, i, RINGTAP_RX);
		if (!polls.calls)
			continue;
		r.found = true;
		r.uncached |= lcore >= p->cache_count;
		if (lcore < p->cache_count && p->cache[lcore] > r.own)
			r.own = p->cache[lcore];
	}
	return r;
}

/* All the free objects of a pool that only sends may lie in the cache of the sending thread, which
 * is not a fault: whether receiving threads lack them is known once one has some. */
static void add(struct pool_readings *l, const struct watched *a,
	const struct ringtap_pool_stats *p, unsigned burst)
{
	uint32_t common = p->available > p->in_caches ? p->available - p->in_caches : 0;
	const struct receivers r = receivers(a, p);

	if (!l->count++ || p->available < l->least)
		l->least = p->available;
	l->receives |= r.own || r.uncached;
	if (p->available < burst)
		l->empty++;
	else if (r.found && common + r.own < burst)
		l->beyond++;
}

uint32_t readings_starved(const struct pool_readings *p)
{
	return p->empty + (p->receives ? p->beyond : 0);
}

/* The list with count entries or more, new ones zeroed; *had: how many it has. NULL: out of memory,
 * or none are needed. */
static void *extended(void *list, uint32_t *had, uint32_t count, size_t size)
{
	char *more;

	if (count <= *had)
		return list;
	more = realloc(list, count * size);
	if (!more)
		return NULL;
	memset(more + *had * size, 0, (count - *had) * size);
	*had = count;
	return more;
}

static bool room_for_pools(struct readings *r, uint32_t count)
{
	struct pool_readings *more = extended(r->pools, &r->pool_count, count, sizeof(*more));

	if (more)
		r->pools = more;
	return more;
}

void readings_add_use(struct readings *r, const struct ringtap_snapshot *f)
{
	if (!room_for_pools(r, f->pool_count))
		return;
	for (uint32_t i = 0; i < f->pool_count; i++) {
		const struct ringtap_pool_stats *p = ringtap_snapshot_pool(f, i);

		pool_use_add(&r->pools[i].use, f->taken_mono_ns, pool_in_use(p));
	}
}

uint32_t ring_room(const struct ringtap_ring_stats *s)
{
	return s->capacity / 8 < LIMIT_BURST ? s->capacity / 8 : LIMIT_BURST;
}

/* Samples that the mark has had already. */
static uint64_t counted_at_mark(const struct watched *a, uint32_t i)
{
	return a->mark && i < a->mark->ring_count ? ringtap_snapshot_ring(a->mark, i)->samples : 0;
}

static void add_ring(struct ring_readings *r, const struct ringtap_ring_stats *s, uint64_t before)
{
	uint64_t fresh = s->samples - (r->counted ? r->counted : before);

	/* A probe that lies, or began again, counts down. */
	if (s->samples < r->counted || fresh > RINGTAP_RING_RECENT)
		fresh = RINGTAP_RING_RECENT;
	if (fresh > s->samples)
		fresh = s->samples;
	r->counted = s->samples;
	for (uint64_t i = 0; i < fresh; i++) {
		uint32_t used = s->recent[i] < s->capacity ? s->recent[i] : s->capacity;

		if (!r->samples++ || used < r->least)
			r->least = used;
		if (used > r->most)
			r->most = used;
		if (s->capacity - used <= ring_room(s))
			r->full++;
	}
}

static void add_rings(struct readings *r, const struct watched *a)
{
	const struct ringtap_snapshot *f = a->now;
	struct ring_readings *more =
		extended(r->rings, &r->ring_count, f->ring_count, sizeof(*more));

	if (!more)
		return;
	r->rings = more;
	for (uint32_t i = 0; i < f->ring_count; i++)
		add_ring(&r->rings[i], ringtap_snapshot_ring(f, i), counted_at_mark(a, i));
}

void readings_add(struct readings *r, const struct watched *a)
{
	const struct ringtap_snapshot *f = a->now;
	unsigned burst = readings_burst(a);

	add_rings(r, a);
	if (!room_for_pools(r, f->pool_count))
		return;
	for (uint32_t i = 0; i < f->pool_count; i++)
		add(&r->pools[i], a, ringtap_snapshot_pool(f, i), burst);
	readings_add_use(r, f);
}

void readings_free(struct readings *r)
{
	free(r->pools);
	free(r->rings);
	*r = (struct readings){0};
}
