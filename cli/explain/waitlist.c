/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>

#include "waitlist.h"

#ifndef ROOM_MIN /* fuzzers have fewer */
#define ROOM_MIN 4096u
#endif
#define AHEAD 8 /* packets; their slots are loaded before they leave */

/* A packet, and its two slots in the index. */
#define BYTES_EACH (sizeof(struct waiting) + 2 * sizeof(struct slot))

int waitlist_init(struct waitlist *t, uint64_t memory)
{
	*t = (struct waitlist){.room = ROOM_MIN, .room_max = ROOM_MIN};
	while (t->room_max < UINT32_MAX / 4 && 2 * t->room_max * BYTES_EACH <= memory)
		t->room_max *= 2;
	secret_make(&t->secret);
	t->queue = malloc(t->room * sizeof(*t->queue));
	t->slots = calloc(2 * t->room, sizeof(*t->slots));
	return t->queue && t->slots ? 0 : -ENOMEM;
}

void waitlist_free(struct waitlist *t)
{
	free(t->queue);
	free(t->slots);
}

static struct waiting *at(struct waitlist *t, uint64_t place)
{
	return &t->queue[place & (t->room - 1)];
}

static uint64_t mask(const struct waitlist *t)
{
	return 2 * t->room - 1;
}

/* The slot of a packet in the index. */
static struct slot *slot_of(struct waitlist *t, const struct waiting *w, uint64_t place)
{
	uint64_t i = w->hash & mask(t);

	while (t->slots[i].hash != w->hash || t->slots[i].at != (uint32_t)place)
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

struct waiting *waitlist_oldest(struct waitlist *t)
{
	return t->first < t->end ? at(t, t->first) : NULL;
}

struct waiting *waitlist_newest(struct waitlist *t)
{
	return t->first < t->end ? at(t, t->end - 1) : NULL;
}

void waitlist_leave(struct waitlist *t)
{
	struct waiting *w = at(t, t->first);

	if (t->first + AHEAD < t->end)
		__builtin_prefetch(&t->slots[at(t, t->first + AHEAD)->hash & mask(t)], 1);
	if (!w->replaced)
		remove_slot(t, slot_of(t, w, t->first));
	t->first++;
}

/* Twice the room. Places stay; where they are in the queue changes for some. */
static int grow(struct waitlist *t)
{
	uint64_t old = t->room;
	struct slot *slots = calloc(4 * old, sizeof(*slots));
	struct waiting *queue = slots ? realloc(t->queue, 2 * old * sizeof(*queue)) : NULL;

	if (!queue) {
		free(slots);
		return -ENOMEM;
	}
	free(t->slots);
	t->queue = queue;
	t->slots = slots;
	t->room = 2 * old;
	for (uint64_t p = t->first; p < t->end; p++) {
		if ((p & (t->room - 1)) >= old)
			queue[p & (t->room - 1)] = queue[p & (old - 1)];
		if (!at(t, p)->replaced)
			put_slot(t, at(t, p)->hash, p);
	}
	return 0;
}

bool waitlist_full(struct waitlist *t)
{
	if (t->end - t->first < t->room)
		return false;
	if (t->room < t->room_max && !grow(t))
		return false;
	t->room_max = t->room;
	return true;
}

static uint32_t hash_of(const struct waitlist *t, uint16_t application, uint64_t id)
{
	return hash_short(hash_number(&t->secret, id, application));
}

static struct slot *find(struct waitlist *t, uint32_t hash, uint16_t application, uint64_t id)
{
	for (uint64_t i = hash & mask(t); t->slots[i].hash; i = (i + 1) & mask(t)) {
		const struct waiting *w = at(t, t->slots[i].at);

		if (t->slots[i].hash == hash && w->id == id && w->application == application)
			return &t->slots[i];
	}
	return NULL;
}

void waitlist_prefetch(const struct waitlist *t, uint16_t application, uint64_t id)
{
	__builtin_prefetch(&t->slots[hash_of(t, application, id) & mask(t)], 1);
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
	*w = (struct waiting){.id = id, .application = application, .hash = hash};
	return w;
}

void waitlist_move(struct waitlist *to, struct waitlist *from)
{
	struct waiting w = *at(from, from->first), *moved;

	waitlist_leave(from);
	moved = waitlist_add(to, w.application, w.id);
	w.hash = moved->hash;
	w.replaced = false;
	*moved = w;
}

void waitlist_share(struct waitlist *t, struct waitlist *with)
{
	if (t->room > t->room_max / 2)
		return;
	t->room_max /= 2;
	with->room_max = t->room_max;
}

struct waiting *waitlist_find(struct waitlist *t, uint16_t application, uint64_t id)
{
	struct slot *s = find(t, hash_of(t, application, id), application, id);

	return s ? at(t, s->at) : NULL;
}
