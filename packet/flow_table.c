/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "flow_table.h"

#ifndef SLOTS_MIN /* fuzzers have fewer */
#define SLOTS_MIN 8192u
#endif
#define CACHE_LINE 64u
#define HUGE_PAGE  ((size_t)2 << 20)

/* Bytes of the items, in whole huge pages: with small ones, each item of a large table would need a
 * walk of the page tables. */
static size_t room(const struct flow_table *t)
{
	return ((size_t)t->max * t->size + HUGE_PAGE) / HUGE_PAGE * HUGE_PAGE;
}

int flow_table_init(struct flow_table *t, size_t size, uint32_t max)
{
	*t = (struct flow_table){.size = (size + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE,
		.max = max,
		.slot_count = SLOTS_MIN};
	secret_make(&t->secret);
	t->slots = calloc(t->slot_count, sizeof(*t->slots));
	t->items = mmap(NULL, room(t), PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (t->items == MAP_FAILED)
		t->items = NULL;
	else
		(void)madvise(t->items, room(t), MADV_HUGEPAGE);
	return t->items && t->slots ? 0 : -ENOMEM;
}

void flow_table_free(struct flow_table *t)
{
	if (t->items)
		munmap(t->items, room(t));
	free(t->slots);
	t->items = NULL;
	t->slots = NULL;
}

void flow_table_clear(struct flow_table *t)
{
	memset(t->slots, 0, t->slot_count * sizeof(*t->slots));
	t->count = 0;
}

static void put_slot(struct flow_table *t, struct flow_slot slot)
{
	uint32_t i = slot.hash & (t->slot_count - 1);

	while (t->slots[i].hash)
		i = (i + 1) & (t->slot_count - 1);
	t->slots[i] = slot;
}

static int grow_slots(struct flow_table *t)
{
	struct flow_slot *slots = calloc(2 * (size_t)t->slot_count, sizeof(*slots)),
			 *old = t->slots;
	uint32_t count = t->slot_count;

	if (!slots)
		return -ENOMEM;
	t->slots = slots;
	t->slot_count *= 2;
	for (uint32_t i = 0; i < count; i++)
		if (old[i].hash)
			put_slot(t, old[i]);
	free(old);
	return 0;
}

static uint32_t add(struct flow_table *t, const struct flow_key *k, uint32_t hash)
{
	void *item = flow_table_at(t, t->count);

	if (t->count == t->max || (t->count >= t->slot_count / 2 && grow_slots(t)))
		return FLOW_NONE;
	memset(item, 0, t->size);
	memcpy(item, k, sizeof(*k));
	put_slot(t, (struct flow_slot){hash, t->count});
	return t->count++;
}

uint32_t flow_table_hash(const struct flow_table *t, const struct flow_key *k)
{
	return hash_short(hash_words(&t->secret, k, sizeof(*k) / 8));
}

void flow_table_filter(
	struct flow_table *t, bool (*keep)(const void *ctx, const void *item), const void *ctx)
{
	uint32_t count = t->count;

	flow_table_clear(t);
	for (uint32_t i = 0; i < count; i++) {
		const struct flow_key *item = flow_table_at(t, i);

		if (!keep(ctx, item))
			continue;
		if (i != t->count)
			memcpy(flow_table_at(t, t->count), item, t->size);
		put_slot(t, (struct flow_slot){flow_table_hash(t, item), t->count++});
	}
}

static uint32_t find(const struct flow_table *t, const struct flow_key *k, uint32_t hash)
{
	for (uint32_t i = hash; t->slots[i & (t->slot_count - 1)].hash; i++) {
		const struct flow_slot *s = &t->slots[i & (t->slot_count - 1)];

		if (s->hash == hash && !memcmp(flow_table_at(t, s->index), k, sizeof(*k)))
			return s->index;
	}
	return FLOW_NONE;
}

uint32_t flow_table_find(const struct flow_table *t, const struct flow_key *k)
{
	return find(t, k, flow_table_hash(t, k));
}

uint32_t flow_table_get_hashed(struct flow_table *t, const struct flow_key *k, uint32_t hash)
{
	uint32_t index = find(t, k, hash);

	if (index != FLOW_NONE)
		return index;
	index = add(t, k, hash);
	t->no_room += index == FLOW_NONE;
	return index;
}

uint32_t flow_table_get(struct flow_table *t, const struct flow_key *k)
{
	return flow_table_get_hashed(t, k, flow_table_hash(t, k));
}
