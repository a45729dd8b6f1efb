/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "chunks.h"

#define WORD    64u /* chunks in a word of free */
#define REUSING 1   /* in rt_ring.oldest */

int rt_chunks_init(struct rt_chunks *c, uint8_t *data, uint64_t size, uint32_t count,
	uint32_t rings, uint32_t order_count)
{
	*c = (struct rt_chunks){.data = data,
		.size = size,
		.shift = (uint32_t)__builtin_ctzll(size),
		.count = count,
		.window = rt_chunks_window(size, count, rings),
		.reserve = rt_chunks_reserve(size, count, rings),
		.alone = rt_chunks_reserve_alone(size, count, rings),
		.rings = rings,
		.order_count = order_count,
		.free_count = count};
	c->free = malloc((count + WORD - 1) / WORD * sizeof(*c->free));
	c->ticked = calloc(rings, sizeof(*c->ticked));
	if (!c->free || !c->ticked) {
		rt_chunks_free(c);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < count; i += WORD)
		c->free[i / WORD] = count - i < WORD ? (1ull << (count - i)) - 1 : UINT64_MAX;
	return 0;
}

void rt_chunks_free(struct rt_chunks *c)
{
	free(c->free);
	free(c->ticked);
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

/* free_count has to be increased besides. */
static void give_back(struct rt_chunks *c, uint32_t id)
{
	rt_fetch_or(&c->free[id / WORD], 1ull << id % WORD);
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

static uint32_t id_of(const struct rt_ring *r, uint64_t number)
{
	return rt_load(place(r, r->order, number));
}

static void put(struct rt_ring *r, uint64_t number, uint32_t id)
{
	rt_store(place(r, r->order, number), id);
	/* Published by the release of a head behind it. */
	rt_store(place(r, r->pub_order, number), id);
}

static int64_t oldest(const struct rt_ring *r)
{
	return rt_load(&r->oldest) >> 1;
}

/* The ring's oldest chunk, if it is before number `end`, becomes the caller's. The ring's thread
 * and the control thread may try at once. False: there is none. */
static bool claim(struct rt_ring *r, int64_t end, int flags, uint32_t *id)
{
	int64_t was = rt_load_acquire(&r->oldest);

	do {
		if (was & REUSING || was >> 1 >= end)
			return false;
		/* Before it is claimed: then the ring may use this entry for another one. */
		*id = id_of(r, (uint64_t)(was >> 1));
	} while (!rt_cas(&r->oldest, &was, was + 2 + flags));
	return true;
}

/* After a jump the chunk that was to be written again may be the current one or not. */
static void end_reuse(struct rt_ring *r, uint32_t current)
{
	int64_t was = rt_load(&r->oldest);
	bool done;

	if (!(was & REUSING))
		return;
	done = id_of(r, (uint64_t)(was >> 1) - 1) == current;
	/* Pairs with the acquire in claim(). */
	rt_store_release(&r->oldest, done ? was - REUSING : was - REUSING - 2);
}

void rt_chunks_mend(struct rt_ring *r)
{
	const struct rt_chunks *c = r->chunks;
	uint64_t number = r->head >> c->shift;
	uint32_t id = id_of(r, number);

	end_reuse(r, id);
	r->chunk = c->data + ((uint64_t)id << c->shift);
	/* Pairs with the acquire in rt_chunks_tick(): the entries up to it are there. */
	rt_store_release(&r->limit, (number << c->shift) + c->size - RT_CHUNK_GUARD);
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
		r->oldest -= i > 0 ? 2 : 0;
	}
	rt_store(r->pub_order, first);
	rt_chunks_mend(r);
}

/* After the reader has caught up. In parts, as the hook waits for it. */
static void shrink(struct rt_ring *r, int64_t now, int64_t read)
{
	int64_t end = now + 1 - (int64_t)r->chunks->window;
	uint32_t id, n = 0;

	if (end > read - 1)
		end = read - 1;
	/* Who jumps out here loses a chunk or some, never has one twice. */
	for (; n < RT_CHUNKS_BACK && claim(r, end, 0, &id); n++)
		give_back(r->chunks, id);
	if (n)
		rt_fetch_add(&r->chunks->free_count, n);
}

/* Beyond its window a ring leaves some chunks to rings that have less: the reader merges by time,
 * so that these wait for the backlog of this one. A thread that polls alone leaves a few to those
 * that may begin. */
static bool get(struct rt_ring *r, int64_t now, int64_t read, uint32_t *id)
{
	struct rt_chunks *c = r->chunks;
	uint32_t reserve = rt_load(&c->busy) > 1 ? c->reserve : c->alone;
	bool small = now - oldest(r) + 1 < (int64_t)c->window;

	if (small && take_any(c, r->index, id))
		return true;
	if (claim(r, read, REUSING, id))
		return true;
	return (small || rt_load(&c->free_count) > reserve) && take_any(c, r->index, id);
}

bool rt_chunks_next(struct rt_ring *r)
{
	struct rt_chunks *c = r->chunks;
	uint64_t now = r->head >> c->shift;
	int64_t read = (int64_t)(r->tail >> c->shift);
	uint32_t id;

	shrink(r, (int64_t)now, read);
	if (!get(r, (int64_t)now, read, &id))
		return false;
	memset(r->chunk + (r->head & r->mask), RT_CHUNK_END, sizeof(uint32_t));
	put(r, now + 1, id);
	if (rt_load(&c->ticked[r->index]) == 2 * now) /* the last tick has not counted it */
		rt_fetch_add(&c->busy, 1);
	rt_compiler_barrier(); /* a signal handler may jump out: rt_epb_mend() mends it */
	r->head = (now + 1) << c->shift;
	rt_compiler_barrier();
	rt_chunks_mend(r);
	return true;
}

/* Takes back what a ring has and does not use: it has not gone on since the last tick. Returns
 * whether it is busy. */
static bool take_back(struct rt_chunks *c, struct rt_ring *r, uint64_t *ticked)
{
	/* Pairs with the release in rt_chunks_mend(). The thread may be ahead of it. */
	int64_t now = (int64_t)(rt_load_acquire(&r->limit) >> c->shift);
	/* Pairs with the release in ringtap_capture_release(). The reader may lie, and then reads
	 * what others write; it does not make the ring lose the chunk that is being written. */
	int64_t end = (int64_t)(rt_load_acquire(&r->peer->tail) >> c->shift);
	bool idle = rt_load(ticked) >> 1 == (uint64_t)now;
	/* A ring that has filled its window may have found no more: it would go on. */
	bool busy = !idle || now - end + 1 >= (int64_t)c->window;
	uint32_t id, n = 0;

	rt_store(ticked, 2 * (uint64_t)now + busy);
	if (end > now + 1 - RT_CHUNKS_OF_RING)
		end = now + 1 - RT_CHUNKS_OF_RING;
	for (; idle && claim(r, end, 0, &id); n++)
		give_back(c, id);
	if (n)
		rt_fetch_add(&c->free_count, n);
	return busy;
}

void rt_chunks_tick(struct rt_chunks *c, struct rt_ring *rings)
{
	uint32_t before = rt_load(&c->busy), busy = 0;

	for (uint32_t i = 0; i < c->rings; i++)
		busy += take_back(c, &rings[i], &c->ticked[i]);
	/* What rings have added in the meantime stays, until the next tick. */
	rt_fetch_add(&c->busy, busy - before);
}
