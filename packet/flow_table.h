/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds what is counted of a flow by its key: an open-addressed table that is at most half full. */
#ifndef RINGTAP_PACKET_FLOW_TABLE_H
#define RINGTAP_PACKET_FLOW_TABLE_H

#include "common/hash.h"
#include "flow_key.h"

#define FLOW_NONE  UINT32_MAX
#define FLOW_CHUNK 1024u /* items that are allocated at a time */

struct flow_table {
	size_t size; /* bytes of an item, which begins with its struct flow_key */
	uint8_t **chunks;
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

/* The same without adding. */
uint32_t flow_table_find(const struct flow_table *t, const struct flow_key *k);
/* Removes the items of which keep() is false. Those that stay get other indices. */
void flow_table_filter(
	struct flow_table *t, bool (*keep)(const void *ctx, const void *item), const void *ctx);

static inline void *flow_table_at(const struct flow_table *t, uint32_t index)
{
	return t->chunks[index / FLOW_CHUNK] + index % FLOW_CHUNK * t->size;
}

#endif
