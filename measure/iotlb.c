/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An access hits in a cache of n entries if fewer than n other pages were used since the last
 * access to its page: LRU's stack distance (Mattson and others: Evaluation techniques
 * for storage hierarchies, IBM Systems Journal 9(2), 1970). To count them, each page has a mark at
 * the time of its last access; a binary indexed tree sums marks between two times (Bennett,
 * Kruskal: LRU stack processing, IBM Journal of Research and Development 19(4), 1975; Fenwick: A
 * new data structure for cumulative frequency tables, Software: Practice and Experience 24(3),
 * 1994).
 */
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "iotlb.h"

const unsigned iotlb_entries[IOTLB_SIZES] = {16, 32, 64, 128, 256, 512, 1024, 2048, 4096};

struct use {
	uint64_t page;
	size_t when; /* 1 … count */
};

static int by_page(const void *a, const void *b)
{
	const struct use *x = a, *y = b;

	if (x->page != y->page)
		return x->page < y->page ? -1 : 1;
	return (x->when > y->when) - (x->when < y->when);
}

static struct use *sorted(const uint64_t *address, size_t count, unsigned page_shift)
{
	struct use *u = calloc(count + 1, sizeof(*u));

	for (size_t i = 0; u && i < count; i++)
		u[i] = (struct use){.page = address[i] >> page_shift, .when = i + 1};
	if (u)
		qsort(u, count, sizeof(*u), by_page);
	return u;
}

/* For each time, when its page was last used before; 0: never. */
static size_t *previous_uses(const uint64_t *address, size_t count, unsigned page_shift)
{
	struct use *u = sorted(address, count, page_shift);
	size_t *previous = calloc(count + 1, sizeof(*previous));

	for (size_t i = 1; u && previous && i < count; i++) {
		if (u[i].page == u[i - 1].page)
			previous[u[i].when] = u[i - 1].when;
	}
	if (!u) {
		free(previous);
		previous = NULL;
	}
	free(u);
	return previous;
}

static void mark(uint32_t *tree, size_t count, size_t at, uint32_t by)
{
	for (; at <= count; at += at & -at)
		tree[at] += by;
}

static uint64_t marks_up_to(const uint32_t *tree, size_t at)
{
	uint64_t n = 0;

	for (; at; at -= at & -at)
		n += tree[at];
	return n;
}

/* others: pages used since the last access to this one; UINT64_MAX: it was not used before. Before
 * the cache is full, a page that was not used yet may be in it, from before. */
static void count_access(struct iotlb *out, uint64_t others)
{
	for (int i = 0; i < IOTLB_SIZES; i++) {
		bool miss = others >= iotlb_entries[i], full = out->pages >= iotlb_entries[i];

		out->misses[i] += miss;
		out->known[i] += full || others != UINT64_MAX;
		out->known_misses[i] += full && miss;
	}
	if (others != UINT64_MAX)
		return;
	out->pages++;
	/* Full: the hits while it filled would be all that is known of that time. */
	for (int i = 0; i < IOTLB_SIZES; i++) {
		if (out->pages == iotlb_entries[i])
			out->known[i] = 0;
	}
}

int iotlb_model(const uint64_t *address, size_t count, unsigned page_shift, struct iotlb *out)
{
	size_t *previous = previous_uses(address, count, page_shift);
	uint32_t *tree = calloc(count + 1, sizeof(*tree));

	*out = (struct iotlb){.accesses = count};
	for (size_t t = 1; previous && tree && t <= count; t++) {
		uint64_t others = UINT64_MAX;

		if (previous[t]) {
			others = marks_up_to(tree, t - 1) - marks_up_to(tree, previous[t]);
			mark(tree, count, previous[t], (uint32_t)-1);
		}
		mark(tree, count, t, 1);
		count_access(out, others);
	}
	free(previous);
	free(tree);
	return previous && tree ? 0 : -ENOMEM;
}

void iotlb_add(struct iotlb *sum, const struct iotlb *t)
{
	sum->accesses += t->accesses;
	sum->pages += t->pages;
	for (int i = 0; i < IOTLB_SIZES; i++) {
		sum->misses[i] += t->misses[i];
		sum->known[i] += t->known[i];
		sum->known_misses[i] += t->known_misses[i];
	}
}

double iotlb_distinct(const uint64_t *address, size_t count, unsigned page_shift, size_t each)
{
	size_t runs = count / each, distinct = 0;

	for (size_t s = 0; s < runs; s++) {
		struct use *u = sorted(address + s * each, each, page_shift);

		if (!u)
			return NAN;
		for (size_t i = 0; i < each; i++)
			distinct += i == 0 || u[i].page != u[i - 1].page;
		free(u);
	}
	return runs ? (double)distinct / (double)runs : NAN;
}
