/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "sequence.h"

static uint64_t *word(struct sequence *s, uint64_t number)
{
	return &s->seen[number % SEQUENCE_WINDOW / 64];
}

static uint64_t bit(uint64_t number)
{
	return UINT64_C(1) << number % 64;
}

/* Clears the bits of numbers that did not come: they belong to numbers that left the window. */
static void skip(struct sequence *s, uint64_t to)
{
	if (to - s->next >= SEQUENCE_WINDOW) {
		memset(s->seen, 0, sizeof(s->seen));
		return;
	}
	for (uint64_t n = s->next; n < to; n++)
		*word(s, n) &= ~bit(n);
}

void sequence_odd(struct sequence *s, uint64_t number)
{
	if (s->received == 1)
		s->first = number;
	if (number >= s->next) {
		skip(s, number);
		s->next = number + 1;
	} else if (s->next - number > SEQUENCE_WINDOW) {
		s->stale++;
		return;
	} else if (*word(s, number) & bit(number)) {
		s->duplicated++;
		return;
	} else {
		s->reordered++;
		if (s->next - 1 - number > s->extent)
			s->extent = s->next - 1 - number;
	}
	s->unique++;
	*word(s, number) |= bit(number);
}
