/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Loss, duplication and reordering out of sequence numbers that begin at 0.
 *
 * A packet is reordered if its number is below one that came before it (RFC 4737,
 * Type-P-Reordered). It is a duplicate if its number has come before. A bitmap remembers the last
 * SEQUENCE_WINDOW numbers up to the greatest: within it, all counts are exact. A packet that comes
 * later than that is counted as stale: it may be a late one, which then stands as lost, or a
 * duplicate.
 */
#ifndef RINGTAP_FWD_SEQUENCE_H
#define RINGTAP_FWD_SEQUENCE_H

#include <stdint.h>

#define SEQUENCE_WINDOW 65536 /* numbers; a power of two */

struct sequence {
	uint64_t next; /* greatest number so far + 1; 0: none came */
	uint64_t received, unique, duplicated, reordered, stale;
	uint64_t extent; /* greatest distance of a reordered one to the greatest before it */
	uint64_t first;  /* the number that came first */
	uint64_t seen[SEQUENCE_WINDOW / 64];
};

/* Numbers ahead of the next one or behind it. */
void sequence_odd(struct sequence *s, uint64_t number);

static inline void sequence_add(struct sequence *s, uint64_t number)
{
	s->received++;
	if (__builtin_expect(number != s->next || !number, 0)) {
		sequence_odd(s, number);
		return;
	}
	s->next = number + 1;
	s->unique++;
	s->seen[number % SEQUENCE_WINDOW / 64] |= UINT64_C(1) << number % 64;
}

/* Numbers below the greatest that did not come. */
static inline uint64_t sequence_lost(const struct sequence *s)
{
	return s->next - s->unique;
}

#endif
