/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RINGTAP_TARGET_COUNTS_H
#define RINGTAP_TARGET_COUNTS_H

#include "ringtap/reader.h"

/* Lost packets, for all reasons. */
static inline uint64_t counts_lost(const struct ringtap_counts *c)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < RINGTAP_LOST_MAX; i++)
		sum += c->lost[i];
	return sum;
}

#endif
