/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds what is counted of a flow by its key: an open-addressed table that is at most half full. */
#ifndef RINGTAP_PACKET_FLOW_TABLE_H
#define RINGTAP_PACKET_FLOW_TABLE_H

#include "common/hash.h"
#include "flow_key.h"

#define FLOW_NONE     UINT32_MAX
#define FLOW_PREFETCH 128u /* bytes of an item: what each packet changes */

struct flow_table {
	size_t size; /* bytes of an item, which begins with its struct flow_key: whole lines of the
		      * cache */
	uint8_t *items; /* room for max, of which pages are there once they are used */
	uint32_t count, max;
	struct flow_slot {
		uint32_t hash, index; /* hash 0: empty */
	} * slots;
	uint32_t slot_count; /* a power of two */
	struct secret secret;
	uint64_t no_room; /* calls of flow_table_get() without success */
};

/* max: items. 0 or -ENOMEM. Free with flow_table_free() in any case. */
int flow_table_init(struct flow_table *t, size_t size, uint32_t max);
void flow_table_free(struct flow_table *t);
/* Removes all items. */
void flow_table_clear(struct flow_table *t);
/* The item of this key, zeroed but for the key if it is new. FLOW_NONE: there is no room. */
uint32_t flow_table_get(struct flow_table *t, const struct flow_key *k);

/* For many keys in turn: their hashes first, then where they lie, so that the waits for memory
 * overlap. */
static inline uint32_t flow_table_hash(const struct flow_table *t, const struct flow_key *k)
{
	return flow_words_hash(&t->secret, flow_words_of(k));
}
/* hint: index of the item, if it is right. */
uint32_t flow_table_get_hashed(
	struct flow_table *t, const struct flow_key *k, uint32_t hash, uint32_t hint);
static inline void flow_table_prefetch_slot(const struct flow_table *t, uint32_t hash)
{
	__builtin_prefetch(&t->slots[hash & (t->slot_count - 1)]);
}
/* Returns the index of the first item with this hash, for flow_table_get_hashed(); FLOW_NONE: there
 * is none. In a table that is half full, a third of the items are not in the first slot. */
static inline uint32_t flow_table_prefetch_item(const struct flow_table *t, uint32_t hash)
{
	const struct flow_slot *s = &t->slots[hash & (t->slot_count - 1)];
	const uint8_t *item;

	for (uint32_t i = hash + 1; s->hash != hash; i++) {
		if (!s->hash)
			return FLOW_NONE;
		s = &t->slots[i & (t->slot_count - 1)];
	}
	item = t->items + s->index * t->size;
	for (size_t at = 0; at < t->size && at < FLOW_PREFETCH; at += 64)
		__builtin_prefetch(item + at, 1);
	return s->index;
}

/* The same without adding. */
uint32_t flow_table_find(const struct flow_table *t, const struct flow_key *k);
/* Removes the items of which keep() is false. Those that stay get other indices. */
void flow_table_filter(
	struct flow_table *t, bool (*keep)(const void *ctx, const void *item), const void *ctx);

static inline void *flow_table_at(const struct flow_table *t, uint32_t index)
{
	return t->items + index * t->size;
}

#endif
