/* SPDX-License-Identifier: BSD-3-Clause */
/* A few hundred things that a number finds: pairs of ports, of queues, kinds of packets. */
#ifndef RINGTAP_PACKET_KEYED_H
#define RINGTAP_PACKET_KEYED_H

#include <stddef.h>
#include <stdint.h>

#define KEYED_MAX   1024u
#define KEYED_SLOTS (4 * KEYED_MAX)

struct keyed {
	size_t size; /* bytes of a thing */
	uint32_t count;
	uint64_t keys[KEYED_MAX];
	void *things[KEYED_MAX];
	uint16_t slots[KEYED_SLOTS]; /* index + 1; 0: empty */
	uint32_t last;               /* index of the one that was found last */
};

/* Zero it first, and set size. The thing of this key, zeroed if it is new; NULL: there is no
 * room. */
void *keyed_get(struct keyed *k, uint64_t key);
void keyed_free(struct keyed *k);
/* All things in the order of a function for qsort(), which compares pointers to them. The caller
 * frees the array; NULL: no memory. */
void **keyed_sorted(const struct keyed *k, int (*compare)(const void *a, const void *b));

#endif
