/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "flow_table.h"
#include "flows.h"

struct flows {
	struct flow_table table; /* struct flow */
	uint64_t error;
	const struct flow **sorted; /* max entries */
};

struct flows *flows_new(uint32_t max)
{
	struct flows *f = calloc(1, sizeof(*f));
	int ret;

	if (!f)
		return NULL;
	ret = flow_table_init(&f->table, sizeof(struct flow), max);
	f->sorted = calloc(max, sizeof(*f->sorted));
	if (!ret && f->sorted)
		return f;
	flows_free(f);
	return NULL;
}

void flows_free(struct flows *f)
{
	if (!f)
		return;
	flow_table_free(&f->table);
	free(f->sorted);
	free(f);
}

static uint64_t total(const struct flow *w)
{
	return w->packets[0] + w->packets[1];
}

static int by_packets(const void *a, const void *b)
{
	uint64_t x = total(*(const struct flow *const *)a),
		 y = total(*(const struct flow *const *)b);

	return (x < y) - (x > y);
}

static int by_bytes(const void *a, const void *b)
{
	uint64_t x = (*(const struct flow *const *)a)->bytes,
		 y = (*(const struct flow *const *)b)->bytes;

	return (x < y) - (x > y);
}

static size_t sort(struct flows *f, enum flow_order order)
{
	for (uint32_t i = 0; i < f->table.count; i++)
		f->sorted[i] = flow_table_at(&f->table, i);
	qsort(f->sorted, f->table.count, sizeof(*f->sorted),
		order == FLOWS_BY_BYTES ? by_bytes : by_packets);
	return f->table.count;
}

static bool is_larger(const void *packets, const void *flow)
{
	return total(flow) > *(const uint64_t *)packets;
}

/* Keeps the larger half, or less of equal ones. An evicted flow that reappears starts from zero. */
static void forget_half(struct flows *f)
{
	size_t keep = sort(f, FLOWS_BY_PACKETS) / 2;

	uint64_t most = f->table.count ? total(f->sorted[keep]) : 0;

	f->error += most;
	flow_table_filter(&f->table, is_larger, &most);
}

void flows_add(struct flows *f, const struct headers *h, uint32_t length, int sent)
{
	struct flow_key k;
	struct flow *w;
	uint32_t at;

	flow_key_of(&k, 0, h);
	at = flow_table_get(&f->table, &k);
	if (at == FLOW_NONE) {
		forget_half(f);
		at = flow_table_get(&f->table, &k);
	}
	if (at == FLOW_NONE) { /* no memory for the first ones */
		f->error++;
		return;
	}
	w = flow_table_at(&f->table, at);
	w->packets[sent != 0]++;
	w->bytes += length;
}

size_t flows_top(struct flows *f, enum flow_order order, const struct flow **out, size_t max)
{
	size_t n = sort(f, order);

	n = n < max ? n : max;
	memcpy(out, f->sorted, n * sizeof(*out));
	return n;
}

size_t flows_count(const struct flows *f)
{
	return f->table.count;
}

uint64_t flows_error(const struct flows *f)
{
	return f->error;
}
