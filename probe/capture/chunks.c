/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "chunks.h"
#include "common/proto.h"

#define WORD 64u /* chunks in a word of free */
#define STILL_TICKS \
	20 /* a ring that began no chunk for so long does not count as one that writes */
#define FRESH_MIN 2u
#define FRESH_MAX 32u

/* struct rt_ring.oldest: a chunk's number in the ring, the chunk, and whether the ring's thread
 * is about to write the chunk before it again. Each chunk leads to the next one. */
#define REUSING 1u
#define ID_BITS 20
#define NONE    ((1u << ID_BITS) - 1)
static_assert(RT_BUFFER_MAX / RT_CHUNK_MIN < NONE, "each chunk has a number");

static uint64_t pack(uint64_t number, uint32_t id)
{
	return (number << ID_BITS | id) << 1;
}

static uint64_t number_of(uint64_t oldest)
{
	return oldest >> (ID_BITS + 1);
}

static uint32_t id_of(uint64_t oldest)
{
	return (uint32_t)(oldest >> 1) & NONE;
}

/* Chunks that rings keep when that number of them writes. */
static void set_shares(struct rt_chunks *c, uint32_t rings)
{
	uint32_t window = (uint32_t)(RT_WINDOW / c->size), part = (c->there - c->fresh) / rings;
	uint32_t reserve = c->there / 4;

	if (part < window)
		window = part;
	if (window < RT_CHUNKS_OF_RING)
		window = RT_CHUNKS_OF_RING;
	/* No more than all windows, and that of a ring that begins: nothing else may use them. */
	if (reserve > (rings + 1) * window)
		reserve = (rings + 1) * window;
	rt_store(&c->window, window);
	rt_store(&c->reserve, reserve > c->fresh ? reserve : c->fresh);
	rt_store(&c->alone, window / 4 > c->fresh ? window / 4 : c->fresh);
}

static void set_there(struct rt_chunks *c, uint32_t there)
{
	uint32_t fresh = there / 16;

	c->there = there;
	fresh = fresh < FRESH_MIN ? FRESH_MIN : fresh;
	rt_store(&c->fresh, fresh > FRESH_MAX ? FRESH_MAX : fresh);
}

/* Zeroed, and populated: calloc() leaves large areas to the first access, of a polling thread. */
static void *populated(size_t bytes)
{
	void *p = malloc(bytes);

	return p ? memset(p, 0, bytes) : NULL;
}

int rt_chunks_init(struct rt_chunks *c, struct rt_ring *rings, uint8_t *data, uint64_t size,
	uint32_t count, uint32_t order_count)
{
	*c = (struct rt_chunks){.rings = rings,
		.data = data,
		.size = size,
		.shift = (uint32_t)__builtin_ctzll(size),
		.count = count,
		.order_count = order_count,
		.free_count = count};
	set_there(c, count);
	c->free = populated((count + WORD - 1) / WORD * sizeof(*c->free));
	c->next = populated(count * sizeof(*c->next));
	c->parts = populated(RT_MAX_RINGS * sizeof(*c->parts));
	c->trials = populated(RT_MAX_RINGS * sizeof(*c->trials));
	if (!c->free || !c->next || !c->parts || !c->trials) {
		rt_chunks_free(c);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < count; i += WORD)
		c->free[i / WORD] = count - i < WORD ? (1ull << (count - i)) - 1 : UINT64_MAX;
	rt_chunks_share(c, 1, &(int32_t){RT_NODE_UNKNOWN});
	return 0;
}

void rt_chunks_free(struct rt_chunks *c)
{
	free(c->free);
	free(c->next);
	free(c->parts);
	free(c->trials);
	*c = (struct rt_chunks){0};
}

/* Where share i of the chunks from..to begins. */
static uint32_t first_of(const struct rt_chunks *c, uint32_t i, uint32_t from, uint32_t to)
{
	return from + (uint32_t)((uint64_t)i * (to - from) / c->shares);
}

void rt_chunks_share(struct rt_chunks *c, uint32_t shares, const int32_t *node)
{
	c->shares = shares;
	for (uint32_t i = 0; i < shares; i++) {
		c->parts[i].first = first_of(c, i, 0, c->count);
		c->parts[i].node = node[i];
	}
	set_shares(c, shares);
}

/* Both memories, that of the beginning and the rest, have all shares. */
void rt_chunks_withhold(struct rt_chunks *c, uint32_t there)
{
	for (uint32_t i = there; i < c->count; i++)
		c->free[i / WORD] &= ~(1ull << i % WORD);
	c->free_count = c->begun = there;
	set_there(c, there);
	for (uint32_t i = 0; i < c->shares; i++)
		c->parts[i].first = first_of(c, i, 0, there);
	set_shares(c, c->shares);
}

/* Rings go on from the same share of the rest, which is larger. One that takes its place just now
 * may keep the old one, and finds the rest behind that. */
static void move_homes(struct rt_chunks *c)
{
	for (uint32_t r = 0; r < RT_MAX_RINGS; r++) {
		for (uint32_t i = 0; i < c->shares; i++) {
			if (rt_load(&c->parts[r].home) == first_of(c, i, 0, c->begun))
				rt_store(&c->parts[r].home, first_of(c, i, c->begun, c->count));
		}
	}
	for (uint32_t i = 0; i < c->shares; i++)
		rt_store(&c->parts[i].first, first_of(c, i, c->begun, c->count));
}

void rt_chunks_empty(struct rt_chunks *c, struct rt_ring *r)
{
	r->chunks = c;
	r->mask = c->size - 1;
	rt_store(&r->oldest, pack(0, NONE));
	rt_chunks_mend(r);
}

/* The i-th of n, spread over them: low i are far apart. */
static uint32_t spread(uint32_t i, uint32_t n)
{
	return (uint32_t)((uint64_t)(i * 2654435769u) * n >> 32);
}

void rt_chunks_use(struct rt_chunks *c, const struct rt_ring *r, int32_t node)
{
	uint32_t there = 0, at;

	for (uint32_t i = 0; i < c->shares; i++)
		there += c->parts[i].node == node;
	at = spread(r->index, there ? there : c->shares);
	for (uint32_t i = 0; i < c->shares; i++) {
		if (there && c->parts[i].node != node)
			continue;
		if (!at--) {
			rt_store(&c->parts[r->index].home, rt_load(&c->parts[i].first));
			break;
		}
	}
	rt_thread_set_add(&c->used, r->index);
}

bool rt_chunks_oldest(const struct rt_ring *r, uint64_t *number, uint32_t *id)
{
	uint64_t oldest = rt_load(&r->oldest);

	*number = number_of(oldest);
	*id = id_of(oldest);
	return *id != NONE;
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

void rt_chunks_offer(struct rt_chunks *c, uint32_t there)
{
	uint32_t n = there - c->there;

	for (uint32_t i = c->there; i < there; i++)
		give_back(c, i);
	rt_fetch_add(&c->free_count, n);
	set_there(c, there);
	set_shares(c, c->shares);
	if (there == c->count)
		move_homes(c);
}

/* One that no ring has, from the ring's home on. False: there is none. */
static bool take_any(struct rt_chunks *c, uint32_t ring, uint32_t *id)
{
	uint32_t words = (c->count + WORD - 1) / WORD, from = rt_load(&c->parts[ring].home);
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

/* The chunk that follows the one at head. */
static void put(struct rt_ring *r, uint64_t number, uint32_t id)
{
	struct rt_chunks *c = r->chunks;

	if (number)
		rt_store(&c->next[r->id[(number - 1) & 1]], id);
	r->id[number & 1] = id;
	/* Published by the release of a head behind it. */
	rt_store(&r->pub_order[number & (c->order_count - 1)], id);
}

/* The ring's oldest chunk, if it is before number `end`, becomes the caller's. The ring's thread,
 * the control thread and threads of other rings may try at once. False: there is none. */
static bool claim(struct rt_ring *r, uint64_t end, uint32_t flags, uint32_t *id)
{
	uint64_t was = rt_load_acquire(&r->oldest), rest;

	do {
		*id = id_of(was);
		if (was & REUSING || *id == NONE || number_of(was) >= end)
			return false;
		/* Before it is claimed: then another ring may use this entry. */
		rest = pack(number_of(was) + 1, rt_load(&r->chunks->next[*id]));
		if (flags)
			r->reused = *id;
	} while (!rt_cas(&r->oldest, &was, rest | flags));
	return true;
}

/* After a jump the chunk that was to be written again may be the current one or not. */
static void end_reuse(struct rt_ring *r, uint32_t current)
{
	uint64_t was = rt_load(&r->oldest);

	if (!(was & REUSING))
		return;
	/* Pairs with the acquire in claim(). */
	rt_store_release(&r->oldest,
		r->reused == current ? was - REUSING : pack(number_of(was) - 1, r->reused));
}

void rt_chunks_mend(struct rt_ring *r)
{
	const struct rt_chunks *c = r->chunks;
	uint64_t number = r->head >> c->shift;
	uint32_t id = r->id[number & 1];

	if (id_of(rt_load(&r->oldest)) == NONE) {
		r->chunk = c->data; /* without room: nothing is written there */
		rt_store(&r->limit, r->head);
		return;
	}
	end_reuse(r, id);
	r->chunk = c->data + ((uint64_t)id << c->shift);
	/* Pairs with the acquire in released(): the entries up to it are there. */
	rt_store_release(&r->limit, (number << c->shift) + c->size - RT_CHUNK_GUARD);
}

/* After the reader has caught up. In parts, as the hook waits for it. */
static void shrink(struct rt_ring *r, uint64_t now, uint64_t read)
{
	uint64_t window = rt_load(&r->chunks->window), end = now + 1;
	uint32_t id, n = 0;

	if (end <= window || read < 2)
		return;
	end -= window;
	if (end > read - 1)
		end = read - 1;
	/* Who jumps out here loses a chunk or some, never has one twice. */
	for (; n < RT_CHUNKS_BACK && claim(r, end, 0, &id); n++)
		give_back(r->chunks, id);
	if (n)
		rt_fetch_add(&r->chunks->free_count, n);
}

/* Chunks of a ring before this number can be claimed by other threads than its own. */
static uint64_t released(const struct rt_ring *r, uint64_t *now)
{
	uint32_t shift = r->chunks->shift;
	/* Pairs with the release in ringtap_capture_release(). The reader may lie, and then reads
	 * what others write; it does not make the ring lose the chunk that is being written. */
	uint64_t end = rt_load_acquire(&r->peer->tail) >> shift;

	/* Pairs with the release in rt_chunks_mend(). The thread may be ahead of it. */
	*now = rt_load_acquire(&r->limit) >> shift;
	return end < *now ? end : *now;
}

/* One that another ring has and does not need. Once between two ticks: each ring costs some cache
 * lines. */
static bool steal(struct rt_ring *r, uint32_t *id)
{
	struct rt_chunks *c = r->chunks;
	uint64_t now;

	if (rt_load(&c->parts[r->index].stole))
		return false;
	rt_store(&c->parts[r->index].stole, 1);
	for (uint32_t i = rt_thread_set_next(&c->used, 0); i < RT_MAX_RINGS;
		i = rt_thread_set_next(&c->used, i + 1)) {
		if (i != r->index && claim(&c->rings[i], released(&c->rings[i], &now), 0, id))
			return true;
	}
	return false;
}

static bool is_free(const struct rt_chunks *c, uint32_t beyond)
{
	return rt_load(&c->free_count) > beyond;
}

/* owned: chunks that the ring has. Below its window it leaves some to rings that begin; beyond it
 * some to rings that have less: the reader merges by time, so that these wait for the backlog of
 * this one. A thread that polls alone leaves a few to those that may begin. */
static bool get(struct rt_ring *r, uint64_t owned, uint64_t read, uint32_t *id)
{
	struct rt_chunks *c = r->chunks;
	bool poor = owned < RT_CHUNKS_OF_RING;

	if ((poor || (owned < rt_load(&c->window) && is_free(c, rt_load(&c->fresh)))) &&
		take_any(c, r->index, id))
		return true;
	if (claim(r, read, REUSING, id))
		return true;
	if (is_free(c, rt_load(rt_load(&c->busy) > 1 ? &c->reserve : &c->alone)) &&
		take_any(c, r->index, id))
		return true;
	return poor && steal(r, id);
}

/* A jump out of it may lose a chunk that no ring had. */
static bool begin(struct rt_ring *r)
{
	uint64_t number = r->head >> r->chunks->shift;
	uint32_t id;

	if (!get(r, 0, 0, &id))
		return false;
	put(r, number, id);
	rt_store_release(&r->oldest, pack(number, id)); /* pairs with the acquire in claim() */
	rt_compiler_barrier();
	rt_chunks_mend(r);
	return true;
}

bool rt_chunks_next(struct rt_ring *r)
{
	struct rt_chunks *c = r->chunks;
	uint64_t now = r->head >> c->shift, read = r->tail >> c->shift, first;
	uint32_t id;

	if (!rt_chunks_oldest(r, &first, &id))
		return begin(r);
	shrink(r, now, read);
	rt_chunks_oldest(r, &first, &id);
	if (!get(r, now - first + 1, read, &id))
		return false;
	memset(r->chunk + (r->head & r->mask), RT_CHUNK_END, sizeof(uint32_t));
	put(r, now + 1, id);
	if (rt_load(&c->parts[r->index].ticked) == 2 * now) /* the last tick has not counted it */
		rt_fetch_add(&c->busy, 1);
	rt_compiler_barrier(); /* a signal handler may jump out: rt_epb_mend() mends it */
	r->head = (now + 1) << c->shift;
	rt_compiler_barrier();
	rt_chunks_mend(r);
	rt_own_due(r);
	return true;
}

/* Takes back what a ring has and does not use: it has not gone on since the last tick. Returns
 * whether it is busy. */
static bool take_back(struct rt_chunks *c, struct rt_ring *r, struct rt_chunks_part *part)
{
	uint64_t now, end = released(r, &now);
	bool idle = rt_load(&part->ticked) >> 1 == now;
	/* A ring that has filled its window may have found no more: it would go on. */
	bool busy = !idle || now - end + 1 >= rt_load(&c->window);
	uint32_t id, n = 0;

	rt_store(&part->ticked, 2 * now + busy);
	rt_store(&part->stole, 0);
	part->still = idle && !busy ? part->still + (part->still < STILL_TICKS) : 0;
	for (; idle && claim(r, end, 0, &id); n++)
		give_back(c, id);
	if (n)
		rt_fetch_add(&c->free_count, n);
	return busy;
}

void rt_chunks_tick(struct rt_chunks *c)
{
	uint32_t before = rt_load(&c->busy), busy = 0, writing = 0;

	for (uint32_t i = rt_thread_set_next(&c->used, 0); i < RT_MAX_RINGS;
		i = rt_thread_set_next(&c->used, i + 1)) {
		busy += take_back(c, &c->rings[i], &c->parts[i]);
		writing += c->parts[i].still < STILL_TICKS;
	}
	/* Chunks that rings have added in the meantime stay until the next tick. */
	rt_fetch_add(&c->busy, busy - before);
	if (writing)
		set_shares(c, writing);
}
