/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ids.h"

/* Packets that an application holds at a time: more than its mempools have. */
#ifndef IDS_BITS
#define IDS_BITS 20
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
	t->forgotten = t->used = 0;
}

static struct id_entry *set_of(const struct ids *t, uint64_t id)
{
	uint64_t h = hash_number(&t->secret, id, id >> 32);

	return &t->entry[(h >> (64 - IDS_BITS)) & ~(uint64_t)(WAYS - 1)];
}

int ids_put(struct ids *t, uint64_t id, int64_t ns, uint32_t flow)
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
		if (e[i].ns < place->ns)
			place = &e[i];
	}
	t->forgotten += place->id && place->id != id;
	t->used += !place->id;
	*place = (struct id_entry){id, ns, flow};
	return 0;
}

bool ids_take(struct ids *t, uint64_t id, struct id_entry *out)
{
	struct id_entry *e = t->entry && id ? set_of(t, id) : NULL;

	for (unsigned i = 0; e && i < WAYS; i++)
		if (e[i].id == id) {
			*out = e[i];
			e[i].id = 0;
			t->used--;
			return true;
		}
	return false;
}
