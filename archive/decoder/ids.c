/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ids.h"

/* Packets that an application holds at a time, and those of which the fate is noticed later:
 * several times as many as its mempools have. */
#ifndef IDS_BITS
#define IDS_BITS 22
#endif
#define WAYS 4u
#define SIZE (sizeof(struct id_entry) << IDS_BITS)

void ids_close(struct ids *t)
{
	free(t->entry);
}

void ids_clear(struct ids *t)
{
	if (t->used)
		memset(t->entry, 0, SIZE);
	t->used = 0;
}

static struct id_entry *set_of(const struct ids *t, uint64_t id)
{
	uint64_t h = hash_number(&t->secret, id, id >> 32);

	return &t->entry[(h >> (64 - IDS_BITS)) & ~(uint64_t)(WAYS - 1)];
}

/* Whether a goes before b. */
static bool goes_first(const struct id_entry *a, const struct id_entry *b)
{
	return id_waits(a) != id_waits(b) ? id_waits(b) : a->ns < b->ns;
}

int ids_put(struct ids *t, uint64_t id, int64_t ns, uint32_t flow, struct id_entry *gone)
{
	struct id_entry *e, *place;

	if (!t->entry) {
		secret_make(&t->secret);
		t->entry = calloc(1, SIZE);
		if (!t->entry)
			return -ENOMEM;
	}
	place = e = set_of(t, id);
	for (unsigned i = 0; i < WAYS; i++) {
		if (!e[i].id || e[i].id == id) {
			place = &e[i];
			break;
		}
		if (goes_first(&e[i], place))
			place = &e[i];
	}
	t->used += !place->id;
	*gone = place->id == id ? (struct id_entry){0} : *place;
	*place = (struct id_entry){.id = id, .ns = ns, .flow = flow};
	return 0;
}

struct id_entry *ids_find(const struct ids *t, uint64_t id)
{
	struct id_entry *e = t->entry && id ? set_of(t, id) : NULL;

	for (unsigned i = 0; e && i < WAYS; i++)
		if (e[i].id == id)
			return &e[i];
	return NULL;
}

const struct id_entry *ids_at(const struct ids *t, uint64_t i)
{
	return t->entry && i < UINT64_C(1) << IDS_BITS ? &t->entry[i] : NULL;
}
