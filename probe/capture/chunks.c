/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "chunks.h"

#define WORD 64u /* chunks in a word of free */

int rt_chunks_init(struct rt_chunks *c, uint8_t *data, uint64_t size, uint32_t count,
	uint32_t rings, uint32_t order_count)
{
	*c = (struct rt_chunks){.data = data,
		.size = size,
		.shift = (uint32_t)__builtin_ctzll(size),
		.count = count,
		.window = rt_chunks_window(size, count, rings),
		.reserve = rt_chunks_reserve(size, count, rings),
		.rings = rings,
		.order_count = order_count,
		.free_count = count};
	c->free = malloc((count + WORD - 1) / WORD * sizeof(*c->free));
	if (!c->free)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i += WORD)
		c->free[i / WORD] = count - i < WORD ? (1ull << (count - i)) - 1 : UINT64_MAX;
	return 0;
}

void rt_chunks_free(struct rt_chunks *c)
{
	free(c->free);
	*c = (struct rt_chunks){0};
}

/* The first chunk that is on the NUMA node of the ring's thread, see struct rt_msg_layout. */
static uint32_t home(const struct rt_chunks *c, uint32_t ring)
{
	return (uint32_t)((uint64_t)ring * c->count / c->rings);
}

/* Pairs of these order what rings do with a chunk: one has finished before another begins. */
static bool take(struct rt_chunks *c, uint32_t id)
{
	uint64_t bit = 1ull << id % WORD;

	if (!(__atomic_fetch_and(&c->free[id / WORD], ~bit, __ATOMIC_ACQ_REL) & bit))
		return false;
	rt_fetch_add(&c->free_count, -1u);
	return true;
}

static void give_back(struct rt_chunks *c, uint32_t id)
{
	rt_fetch_or(&c->free[id / WORD], 1ull << id % WORD);
	rt_fetch_add(&c->free_count, 1);
}

/* One that no ring has, from the ring's home on. False: there is none. */
static bool take_any(struct rt_chunks *c, uint32_t ring, uint32_t *id)
{
	uint32_t words = (c->count + WORD - 1) / WORD, from = home(c, ring);
	uint64_t before = (1ull << from % WORD) - 1; /* bits of the first word that come last */

	if (!rt_load(&c->free_count))
		return false;
	for (uint32_t i = 0; i <= words; i++) {
		uint32_t w = (from / WORD + i) % words;
		uint64_t bits = rt_load(&c->free[w]);

		if (!i)
			bits &= ~before;
		while (bits) {
			*id = w * WORD + (uint32_t)__builtin_ctzll(bits);
			if (take(c, *id))
				return true;
			bits &= bits - 1;
		}
	}
	return false;
}

static uint32_t *place(const struct rt_ring *r, uint32_t *order, uint64_t number)
{
	return &order[number & (r->chunks->order_count - 1)];
}

static void put(struct rt_ring *r, uint64_t number, uint32_t id)
{
	*place(r, r->order, number) = id;
	/* Published by the release of a head behind it. */
	rt_store(place(r, r->pub_order, number), id);
}

void rt_chunks_mend(struct rt_ring *r)
{
	const struct rt_chunks *c = r->chunks;
	uint64_t number = r->head >> c->shift;
	uint32_t id = *place(r, r->order, number);

	/* It is written again: it is no longer the oldest. */
	if (r->oldest != number && *place(r, r->order, r->oldest) == id)
		r->oldest++;
	r->chunk = c->data + ((uint64_t)id << c->shift);
	r->limit = (number << c->shift) + c->size - RT_CHUNK_GUARD;
}

void rt_chunks_begin(struct rt_chunks *c, struct rt_ring *r)
{
	uint32_t first = home(c, r->index);

	r->chunks = c;
	r->mask = c->size - 1;
	/* As if it had been written and read: chunk -1 is the next to be written. */
	r->oldest = 0;
	for (uint32_t i = RT_CHUNKS_OF_RING; i-- > 0;) {
		if (!take(c, first + i))
			continue;
		*place(r, r->order, -(uint64_t)i) = first + i;
		r->oldest -= i > 0;
	}
	rt_store(r->pub_order, first);
	rt_chunks_mend(r);
}

/* After the reader has caught up. RT_CHUNKS_BACK at a time take some microseconds. */
static void shrink(struct rt_ring *r, uint64_t now, uint64_t read)
{
	for (unsigned i = 0; i < RT_CHUNKS_BACK; i++) {
		if (now - r->oldest + 1 <= r->chunks->window || read <= r->oldest + 1)
			return;
		r->oldest++;
		rt_compiler_barrier(); /* who jumps out here loses a chunk, never has it twice */
		give_back(r->chunks, *place(r, r->order, r->oldest - 1));
	}
}

/* Beyond its window a ring leaves some chunks to rings that have less: the reader merges by time,
 * so that these wait for the backlog of this one. */
static bool may_grow(const struct rt_ring *r, uint64_t owned, uint64_t reusable)
{
	const struct rt_chunks *c = r->chunks;

	return owned < c->window || (!reusable && rt_load(&c->free_count) > c->reserve);
}

bool rt_chunks_next(struct rt_ring *r)
{
	struct rt_chunks *c = r->chunks;
	uint64_t now = r->head >> c->shift, read = r->tail >> c->shift;
	uint64_t reusable;
	uint32_t id;

	shrink(r, now, read);
	reusable = read - r->oldest;
	if (!may_grow(r, now - r->oldest + 1, reusable) || !take_any(c, r->index, &id)) {
		if (!reusable)
			return false;
		id = *place(r, r->order, r->oldest);
	}
	memset(r->chunk + (r->head & r->mask), RT_CHUNK_END, sizeof(uint32_t));
	put(r, now + 1, id);
	rt_compiler_barrier(); /* a signal handler may jump out: rt_epb_mend() mends it */
	r->head = (now + 1) << c->shift;
	rt_compiler_barrier();
	rt_chunks_mend(r);
	return true;
}
