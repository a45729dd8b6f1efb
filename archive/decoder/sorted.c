/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "identity.h"
#include "sorted.h"

#define LINE       64u
#define HUGE_PAGE  ((size_t)2 << 20)
#define ROWS_BYTES ((SORTED_MAX * sizeof(struct placed) + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE)
#define DIGIT      11u /* bits of the key that one pass sorts by */
#define DIGITS     (1u << DIGIT)
#define AHEAD      12u /* rows that are on their way into the caches */

/* Begins with a cache line. */
struct placed {
	_Alignas(LINE) struct row row;
};

int sorted_open(struct sorted *s)
{
	s->rows = aligned_alloc(HUGE_PAGE, ROWS_BYTES);
	if (s->rows)
		(void)madvise(s->rows, ROWS_BYTES, MADV_HUGEPAGE);
	s->key = malloc(SORTED_MAX * sizeof(*s->key));
	s->other = malloc(SORTED_MAX * sizeof(*s->other));
	return s->rows && s->key && s->other ? 0 : -ENOMEM;
}

void sorted_close(struct sorted *s)
{
	free(s->rows);
	free(s->key);
	free(s->other);
}

struct row *sorted_next(struct sorted *s)
{
	return &s->rows[s->count].row;
}

/* Upper bits of the flow_id, in its order, and the direction. Flows that have these bits in common
 * are mixed with each other, which does no harm. */
static uint32_t order_of(const struct row *r)
{
	uint64_t id = (uint64_t)r->flow_id ^ UINT64_C(1) << 63;

	return r->has & HAS(COL_FLOW_ID) ? (uint32_t)(id >> 33) << 1 | ends_turned(&r->outer) : 0;
}

void sorted_add(struct sorted *s)
{
	const struct row *r = &s->rows[s->count].row;

	s->key[s->count] = (uint64_t)order_of(r) << 32 | s->count;
	s->count++;
}

int sorted_settle(struct sorted *s)
{
	struct flows *t = s->flows;
	int ret = 0;

	s->flows = NULL;
	for (uint32_t i = 0; t && i < s->count && !ret; i++)
		if (s->rows[i].row.has & HAS(COL_FLOW_ID))
			ret = flows_offer(t, &s->rows[i].row);
	return ret;
}

/* Radix sort, from the low bits on; rows with equal keys stay in their order. */
static void sort(struct sorted *s)
{
	for (unsigned shift = 32; shift < 64; shift += DIGIT) {
		uint32_t at[DIGITS] = {0}, sum = 0;
		uint64_t *to = s->other;

		for (uint32_t i = 0; i < s->count; i++)
			at[s->key[i] >> shift & (DIGITS - 1)]++;
		for (uint32_t i = 0; i < DIGITS; i++) {
			uint32_t n = at[i];

			at[i] = sum;
			sum += n;
		}
		for (uint32_t i = 0; i < s->count; i++)
			to[at[s->key[i] >> shift & (DIGITS - 1)]++] = s->key[i];
		s->other = s->key;
		s->key = to;
	}
}

static struct row *row_at(const struct sorted *s, uint32_t i)
{
	return &s->rows[(uint32_t)s->key[i]].row;
}

static bool begins_flow(const struct sorted *s, uint32_t i)
{
	return !i || s->key[i] >> 33 != s->key[i - 1] >> 33;
}

static void prefetch_row(const struct sorted *s, uint32_t i)
{
	const char *p;

	if (i >= s->count)
		return;
	p = (const char *)row_at(s, i);
	__builtin_prefetch(p);
	__builtin_prefetch(p + LINE);
}

/* A row that begins a flow; NULL: it goes on with the one before. */
static const struct row *first_row(const struct sorted *s, uint32_t i)
{
	return i < s->count && begins_flow(s, i) ? row_at(s, i) : NULL;
}

/* The row at i is taken: what the following rows need is far from here, and from each other. */
static void prefetch(const struct sorted *s, uint32_t i)
{
	prefetch_row(s, i + 3 * AHEAD);
	flows_ahead(s->flows, first_row(s, i + 2 * AHEAD), first_row(s, i + AHEAD));
}

/* Gives flows the rows from begin to end, which is one flow as a rule, in the order of the file:
 * both directions are merged again. */
static int take_flow(const struct sorted *s, uint32_t begin, uint32_t end)
{
	uint32_t a = begin, middle = begin, b;
	uint32_t flow = NO_FLOW;
	int ret = 0;

	while (middle < end && !(s->key[middle] >> 32 & 1))
		middle++;
	b = middle;
	while (!ret && (a < middle || b < end)) {
		bool first = b == end || (a < middle && (uint32_t)s->key[a] < (uint32_t)s->key[b]);
		uint32_t i = first ? a++ : b++;

		prefetch(s, i);
		if (row_at(s, i)->has & HAS(COL_FLOW_ID))
			ret = flows_follow(s->flows, row_at(s, i), &flow);
	}
	return ret;
}

int sorted_put(struct sorted *s, struct batch *b, bool lean)
{
	const uint32_t lacks = lean ? HAS(COL_TCP_SEQ) | HAS(COL_IP_ID) : 0;
	uint32_t begin = 0, end;
	int ret = 0;

	sort(s);
	for (; begin < s->count && !ret; begin = end) {
		for (end = begin + 1; end < s->count && !begins_flow(s, end); end++)
			;
		ret = s->flows ? take_flow(s, begin, end) : 0;
		for (uint32_t i = begin; i < end; i++) {
			struct row *r = row_at(s, i);

			prefetch_row(s, i + AHEAD);
			r->has &= ~lacks;
			rows_put(b, r);
		}
	}
	s->count = 0;
	return ret;
}
