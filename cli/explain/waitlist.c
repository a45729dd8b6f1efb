/* SPDX-License-Identifier: BSD-3-Clause */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "waitlist.h"

#ifndef WAITLIST_CHUNK /* packets; fuzzers have fewer */
#define WAITLIST_CHUNK 4096u
#endif
#define CHUNK_BYTES (WAITLIST_CHUNK * sizeof(struct waiting))
#define CHUNKS_MIN  2u /* whatever memory there may be */
#define SLOTS_MIN   (4u * WAITLIST_CHUNK)
#define OTHERS_MIN  64u
#define AHEAD       8 /* packets; their slots are loaded before they leave */

static_assert(sizeof(struct waiting) == 80, "10 million of them and their index fit into 1 GB");

int waitlist_init(struct waitlist *t)
{
	*t = (struct waitlist){
		.chunks = CHUNKS_MIN, .held = 1, .slot_count = SLOTS_MIN, .other_room = OTHERS_MIN};
	secret_make(&t->secret);
	t->chunk = calloc(t->chunks, sizeof(struct waiting *));
	t->spare = malloc(CHUNK_BYTES);
	t->slots = calloc(t->slot_count, sizeof(*t->slots));
	t->others = malloc(t->other_room * sizeof(*t->others));
	return t->chunk && t->spare && t->slots && t->others ? 0 : -ENOMEM;
}

void waitlist_free(struct waitlist *t)
{
	for (uint64_t i = 0; t->chunk && i < t->chunks; i++)
		free(t->chunk[i]);
	free(t->spare);
	free(t->chunk);
	free(t->slots);
	free(t->others);
}

uint64_t waitlist_bytes(const struct waitlist *t)
{
	return t->held * CHUNK_BYTES + t->slot_count * sizeof(*t->slots) +
	       t->other_room * sizeof(*t->others);
}

/* ---- packets ---- */

static struct waiting **chunk_of(const struct waitlist *t, uint64_t place)
{
	return &t->chunk[place / WAITLIST_CHUNK & (t->chunks - 1)];
}

static struct waiting *at(const struct waitlist *t, uint64_t place)
{
	return &(*chunk_of(t, place))[place % WAITLIST_CHUNK];
}

/* Twice as many chunks: they stay, their pointers move. */
static int more_chunks(struct waitlist *t)
{
	struct waiting **old = t->chunk, **chunk = calloc(2 * t->chunks, sizeof(struct waiting *));
	uint64_t count = t->chunks;

	if (!chunk)
		return -ENOMEM;
	t->chunk = chunk;
	t->chunks *= 2;
	for (uint64_t i = 0, n = t->first / WAITLIST_CHUNK; i < count; i++, n++)
		chunk[n & (t->chunks - 1)] = old[n & (count - 1)];
	free(old);
	return 0;
}

/* For the place end, which is the first of a chunk. */
static int add_chunk(struct waitlist *t, uint64_t memory)
{
	uint64_t used = t->end / WAITLIST_CHUNK - t->first / WAITLIST_CHUNK;
	struct waiting *chunk = t->spare;

	if (t->held - !!chunk > used)
		return 0;
	if (!chunk && t->held >= CHUNKS_MIN && waitlist_bytes(t) + CHUNK_BYTES > memory)
		return -ENOMEM;
	if (*chunk_of(t, t->end) && more_chunks(t))
		return -ENOMEM;
	if (!chunk) {
		chunk = malloc(CHUNK_BYTES);
		t->held += !!chunk;
	}
	t->spare = NULL;
	*chunk_of(t, t->end) = chunk;
	return chunk ? 0 : -ENOMEM;
}

/* The one of the place before first is empty. */
static void remove_chunk(struct waitlist *t)
{
	struct waiting **chunk = chunk_of(t, t->first - 1);

	if (t->spare) {
		free(*chunk);
		t->held--;
	} else {
		t->spare = *chunk;
	}
	*chunk = NULL;
}

struct waiting *waitlist_oldest(const struct waitlist *t)
{
	return t->first < t->end ? at(t, t->first) : NULL;
}

struct waiting *waitlist_newest(const struct waitlist *t)
{
	return t->first < t->end ? at(t, t->end - 1) : NULL;
}

/* ---- index ---- */

static uint32_t hash_of(const struct waitlist *t, uint16_t application, uint64_t id)
{
	return hash_short(hash_number(&t->secret, id, application));
}

static uint32_t hash_at(const struct waitlist *t, uint64_t place)
{
	return hash_of(t, at(t, place)->application, at(t, place)->id);
}

static uint64_t mask(const struct waitlist *t)
{
	return t->slot_count - 1;
}

/* The slot of a packet in the index. */
static struct slot *slot_of(struct waitlist *t, uint64_t place)
{
	uint64_t i = hash_at(t, place) & mask(t);

	while (t->slots[i].at != (uint32_t)place || !t->slots[i].hash)
		i = (i + 1) & mask(t);
	return &t->slots[i];
}

static void put_slot(struct waitlist *t, uint32_t hash, uint64_t place)
{
	uint64_t i = hash & mask(t);

	while (t->slots[i].hash)
		i = (i + 1) & mask(t);
	t->slots[i] = (struct slot){hash, (uint32_t)place};
}

/* Moves entries behind the hole into it if a search would not find them across it. */
static void remove_slot(struct waitlist *t, const struct slot *s)
{
	uint64_t hole = (uint64_t)(s - t->slots), i = hole;

	for (;;) {
		i = (i + 1) & mask(t);
		if (!t->slots[i].hash)
			break;
		if (((i - t->slots[i].hash) & mask(t)) < ((i - hole) & mask(t)))
			continue;
		t->slots[hole] = t->slots[i];
		hole = i;
	}
	t->slots[hole].hash = 0;
}

static int more_slots(struct waitlist *t, uint64_t memory)
{
	struct slot *slots;

	if (waitlist_bytes(t) + t->slot_count * sizeof(*slots) > memory ||
		t->slot_count > UINT32_MAX / 2)
		return -ENOMEM;
	slots = calloc(2 * t->slot_count, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	free(t->slots);
	t->slots = slots;
	t->slot_count *= 2;
	for (uint64_t p = t->first; p < t->end; p++)
		if (!at(t, p)->replaced)
			put_slot(t, hash_at(t, p), p);
	return 0;
}

static struct slot *find(const struct waitlist *t, uint32_t hash, uint16_t application, uint64_t id)
{
	for (uint64_t i = hash & mask(t); t->slots[i].hash; i = (i + 1) & mask(t)) {
		const struct waiting *w;

		if (t->slots[i].hash != hash)
			continue;
		w = at(t, t->slots[i].at);
		if (w->id == id && w->application == application)
			return &t->slots[i];
	}
	return NULL;
}

void waitlist_prefetch(const struct waitlist *t, uint16_t application, uint64_t id)
{
	__builtin_prefetch(&t->slots[hash_of(t, application, id) & mask(t)], 1);
}

const struct waiting *waitlist_prefetch_packet(
	const struct waitlist *t, uint16_t application, uint64_t id)
{
	uint32_t hash = hash_of(t, application, id);
	const char *p;

	for (uint64_t i = hash & mask(t); t->slots[i].hash; i = (i + 1) & mask(t)) {
		if (t->slots[i].hash != hash)
			continue;
		p = (const char *)at(t, t->slots[i].at);
		__builtin_prefetch(p, 1);
		__builtin_prefetch(p + sizeof(struct waiting) - 1, 1);
		return (const struct waiting *)p;
	}
	return NULL;
}

/* ---- headers ---- */

static struct headers *other_at(const struct waitlist *t, uint64_t number)
{
	return &t->others[number & (t->other_room - 1)];
}

/* Twice the room. What lies behind the end of the old one comes behind it. */
static int more_others(struct waitlist *t, uint64_t memory)
{
	uint64_t old = t->other_room, room = 2 * old;
	struct headers *others;

	if (waitlist_bytes(t) + old * sizeof(*others) > memory)
		return -ENOMEM;
	others = realloc(t->others, room * sizeof(*others));
	if (!others)
		return -ENOMEM;
	t->others = others;
	t->other_room = room;
	for (uint64_t n = t->other_first; n < t->other_end; n++)
		if ((n & (room - 1)) >= old)
			others[n & (room - 1)] = others[n & (old - 1)];
	return 0;
}

/* ---- all ---- */

bool waitlist_full(struct waitlist *t, uint64_t memory)
{
	if (t->end - t->first >= t->slot_count / 4 * 3 && more_slots(t, memory))
		return true;
	if (t->other_end - t->other_first == t->other_room && more_others(t, memory))
		return true;
	return !(t->end % WAITLIST_CHUNK) && add_chunk(t, memory);
}

struct waiting *waitlist_add(struct waitlist *t, uint16_t application, uint64_t id)
{
	uint32_t hash = hash_of(t, application, id);
	struct slot *s = find(t, hash, application, id);
	struct waiting *w = at(t, t->end);

	if (s) {
		at(t, s->at)->replaced = true;
		s->at = (uint32_t)t->end;
		t->repeated++;
	} else {
		put_slot(t, hash, t->end);
	}
	t->end++;
	*w = (struct waiting){.id = id, .application = application};
	return w;
}

void waitlist_leave(struct waitlist *t)
{
	if (t->first + AHEAD < t->end)
		__builtin_prefetch(&t->slots[hash_at(t, t->first + AHEAD) & mask(t)], 1);
	if (!at(t, t->first)->replaced)
		remove_slot(t, slot_of(t, t->first));
	t->other_first += at(t, t->first)->whole;
	t->first++;
	if (!(t->first % WAITLIST_CHUNK))
		remove_chunk(t);
}

struct waiting *waitlist_find(const struct waitlist *t, uint16_t application, uint64_t id)
{
	struct slot *s = find(t, hash_of(t, application, id), application, id);

	return s ? at(t, s->at) : NULL;
}

/* ---- what a packet keeps ---- */

static void keep_other(struct waitlist *t, const struct headers *h)
{
	struct waiting *w = waitlist_newest(t);

	w->whole = true;
	w->other = (uint32_t)t->other_end;
	*other_at(t, t->other_end++) = *h;
}

void waitlist_keep(struct waitlist *t, const struct headers *h, const struct flow_key *flow)
{
	struct kept *k = &waitlist_newest(t)->kept;

	if (!flow || !(h->flags & HAS_IP)) {
		keep_other(t, h);
		return;
	}
	*k = (struct kept){.flags = h->flags, .vlans = h->vlans, .tos = h->tos, .ttl = h->ttl};
	memcpy(k->tci, h->tci, sizeof(k->tci));
	memcpy(k->dst_mac, h->dst_mac, sizeof(k->dst_mac));
	memcpy(k->src_mac, h->src_mac, sizeof(k->src_mac));
}

void waitlist_headers(const struct waitlist *t, const struct waiting *w,
	const struct flow_key *flow, struct headers *h)
{
	const struct kept *k = &w->kept;

	if (w->whole) {
		*h = *other_at(t, w->other);
		return;
	}
	*h = (struct headers){.flags = k->flags, .vlans = k->vlans, .tos = k->tos, .ttl = k->ttl};
	memcpy(h->tci, k->tci, sizeof(h->tci));
	memcpy(h->dst_mac, k->dst_mac, sizeof(h->dst_mac));
	memcpy(h->src_mac, k->src_mac, sizeof(h->src_mac));
	if (!flow)
		return;
	h->type = flow->type;
	h->version = flow->version;
	h->protocol = flow->protocol;
	h->src_port = flow->src_port;
	h->dst_port = flow->dst_port;
	memcpy(h->src, flow->src, sizeof(h->src));
	memcpy(h->dst, flow->dst, sizeof(h->dst));
}

void waitlist_move(struct waitlist *to, struct waitlist *from)
{
	struct waiting w = *at(from, from->first), *moved;
	struct headers h;

	if (w.whole)
		h = *other_at(from, w.other);
	waitlist_leave(from);
	moved = waitlist_add(to, w.application, w.id);
	*moved = w;
	moved->replaced = moved->whole = false;
	if (w.whole)
		keep_other(to, &h);
}
