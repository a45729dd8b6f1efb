/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "keyed.h"

static uint32_t slot_of(const struct keyed *k, uint64_t key)
{
	uint32_t i = (uint32_t)((key * UINT64_C(0x9e3779b97f4a7c15)) >> 40) % KEYED_SLOTS;

	while (k->slots[i] && k->keys[k->slots[i] - 1] != key)
		i = (i + 1) % KEYED_SLOTS;
	return i;
}

void *keyed_get(struct keyed *k, uint64_t key)
{
	uint32_t i;

	if (k->last < k->count && k->keys[k->last] == key)
		return k->things[k->last];
	i = slot_of(k, key);
	if (!k->slots[i]) {
		void *thing = k->count < KEYED_MAX ? calloc(1, k->size) : NULL;

		if (!thing)
			return NULL;
		k->keys[k->count] = key;
		k->things[k->count++] = thing;
		k->slots[i] = (uint16_t)k->count;
	}
	k->last = k->slots[i] - 1u;
	return k->things[k->last];
}

void keyed_free(struct keyed *k)
{
	for (uint32_t i = 0; i < k->count; i++)
		free(k->things[i]);
	k->count = 0;
}

void **keyed_sorted(const struct keyed *k, int (*compare)(const void *a, const void *b))
{
	void **all = calloc(k->count + 1, sizeof(*all));

	if (!all)
		return NULL;
	memcpy(all, k->things, k->count * sizeof(*all));
	qsort(all, k->count, sizeof(*all), compare);
	return all;
}
