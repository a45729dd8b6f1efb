/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Counts of lost, duplicated and reordered packets, from sequence numbers that begin at 0.
 *
 * A packet is reordered if its number is below one that came before it (RFC 4737,
 * Type-P-Reordered). It is a duplicate if its number has come before. A bitmap holds the last
 * SEQUENCE_WINDOW numbers up to the greatest: within it, all counts are exact. A packet below the
 * window is counted as stale: it is either a duplicate, or a late packet, which is counted as lost.
 */
#ifndef RINGTAP_FWD_SEQUENCE_H
#define RINGTAP_FWD_SEQUENCE_H

#include <stdint.h>

#define SEQUENCE_WINDOW 65536 /* numbers; a power of two */

struct sequence {
	uint64_t next; /* greatest number so far + 1; 0: none */
	uint64_t received, unique, duplicated, reordered, stale;
	uint64_t extent; /* greatest distance of a reordered number to the greatest before it */
	uint64_t first;  /* the number received first */
	uint64_t seen[SEQUENCE_WINDOW / 64];
};

/* The slow path of sequence_add(): numbers other than the next one, and 0. */
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

/* Numbers below the greatest that were not received. */
static inline uint64_t sequence_lost(const struct sequence *s)
{
	return s->next - s->unique;
}

#endif
