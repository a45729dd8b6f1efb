/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "slices.h"

#define FIRST_SHIFT 10 /* 1 us */

int slices_init(struct slices *s)
{
	*s = (struct slices){.shift = FIRST_SHIFT};
	s->at = calloc(SLICES, sizeof(*s->at));
	return s->at ? 0 : -ENOMEM;
}

void slices_free(struct slices *s)
{
	free(s->at);
}

static void merge(struct slice *to, const struct slice *from)
{
	to->received += from->received;
	to->not_sent += from->not_sent;
	to->copies += from->copies;
	to->reordered += from->reordered;
	to->max_ns = to->max_ns > from->max_ns ? to->max_ns : from->max_ns;
	for (uint32_t b = 0; b < SLICE_BUCKETS; b++)
		to->bucket[b] += from->bucket[b];
}

static void halve(struct slices *s)
{
	uint32_t left = (s->count + 1) / 2;

	for (uint32_t i = 0; i < left; i++) {
		if (i)
			s->at[i] = s->at[2 * i];
		merge(&s->at[i], &s->at[2 * i + 1]);
	}
	/* Slices beyond count are empty already. */
	memset(s->at + left, 0, (s->count - left) * sizeof(*s->at));
	s->count = left;
	s->shift++;
}

struct slice *slices_get(struct slices *s, uint64_t ns)
{
	uint64_t past;

	if (!s->start_ns)
		s->start_ns = ns;
	past = ns > s->start_ns ? ns - s->start_ns : 0;
	while (past >> s->shift >= SLICES)
		halve(s);
	if (past >> s->shift >= s->count)
		s->count = (uint32_t)(past >> s->shift) + 1;
	return &s->at[past >> s->shift];
}

void slice_latency(struct slice *s, uint64_t ns)
{
	if (ns > s->max_ns)
		s->max_ns = ns;
	s->bucket[rt_log_bucket(ns < LATENCY_MAX ? ns : LATENCY_MAX, SLICE_BITS)]++;
}
