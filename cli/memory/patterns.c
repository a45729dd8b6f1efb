/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>

#include "common/array.h"
#include "patterns.h"

const unsigned page_shifts[PAGE_KINDS] = {12, 21, 30};
const char *const page_names[PAGE_KINDS] = {"4 KiB", "2 MiB", "1 GiB"};

#define LINE 64 /* bytes: alignment of buffers outside of their pool */

/* Bytes that a buffer of the pool takes with all around it; 0: no such pool. */
static uint64_t memory_stride(const struct ringtap_snapshot *f, uint32_t pool)
{
	const struct ringtap_pool_stats *p;

	if (pool >= f->pool_count)
		return 0;
	p = ringtap_snapshot_pool(f, pool);
	return p->pinned_external ? ((uint64_t)p->buffer_bytes + LINE - 1) / LINE * LINE
				  : p->object_bytes;
}

/* Devices use IOVAs; a pool without them (RTE_BAD_IOVA is all ones) has only the other. */
uint64_t memory_device_address(const struct memory_sample *s)
{
	return s->iova && s->iova != UINT64_MAX ? s->iova : s->address;
}

static bool belongs(const struct memory_pattern *p, const struct memory_sample *s)
{
	return p->queue < 0 ||
	       (s->port == p->port && s->pool == p->pool && s->queue == (uint16_t)p->queue);
}

/* Objects that would cross a page begin in the next one, so neighbours are between one and two
 * objects apart; two objects with a third between them are at least two apart. */
static void count_step(struct memory_pattern *p, uint64_t from, uint64_t to, uint64_t stride)
{
	uint64_t bytes = to > from ? to - from : from - to;

	p->steps++;
	p->sequential += stride && bytes >= stride && bytes < 2 * stride;
	if (bytes)
		p->distance[63 - __builtin_clzll(bytes)]++;
	else
		p->same++;
}

/* Distinct pages while a pattern is analysed. */
struct pages {
	double sum[PAGE_KINDS]; /* over all windows */
	size_t windows;
};

/* A run is over: what came before it is not known, so each is modelled for itself. */
static int analyse_run(
	struct memory_pattern *p, struct pages *pages, const uint64_t *device, size_t count)
{
	size_t windows = count / MEMORY_SOME;
	struct iotlb t;
	int ret = 0;

	for (int k = 0; k < PAGE_KINDS && !ret; k++) {
		if (windows)
			pages->sum[k] += (double)windows *
					 iotlb_distinct(device, count, page_shifts[k], MEMORY_SOME);
		ret = iotlb_model(device, count, page_shifts[k], &t);
		iotlb_add(&p->iotlb[k], &t);
	}
	pages->windows += windows;
	return ret;
}

/* device: room for all samples. */
static int analyse(struct memory_pattern *p, const struct memory_samples *s,
	const struct ringtap_snapshot *f, uint64_t *device)
{
	const struct memory_sample *last = NULL;
	struct pages pages = {0};
	size_t begin = 0;
	int ret = 0;

	for (size_t i = 0; i < s->count && !ret; i++) {
		const struct memory_sample *a = &s->list[i];

		if (!belongs(p, a))
			continue;
		if (last && last->run == a->run) {
			count_step(p, last->address, a->address,
				last->pool == a->pool ? memory_stride(f, a->pool) : 0);
		} else if (last) {
			ret = analyse_run(p, &pages, device + begin, p->count - begin);
			begin = p->count;
		}
		device[p->count++] = memory_device_address(a);
		last = a;
	}
	if (!ret)
		ret = analyse_run(p, &pages, device + begin, p->count - begin);
	for (int k = 0; k < PAGE_KINDS; k++) {
		/* Runs are too short: taken together, one after the other. */
		p->pages[k] = pages.windows ? pages.sum[k] / (double)pages.windows
					    : iotlb_distinct(device, p->count, page_shifts[k],
						      MEMORY_SOME);
	}
	return ret;
}

static int meet(struct memory_patterns *p, const struct memory_sample *a)
{
	struct memory_pattern *new;

	for (size_t i = 0; i < p->count; i++)
		if (belongs(&p->list[i], a))
			return 0;
	new = rt_array_add(p->list, p->count);
	if (!new)
		return -ENOMEM;
	*new = (struct memory_pattern){.port = a->port, .pool = a->pool, .queue = a->queue};
	return 0;
}

static int in_order(const void *a, const void *b)
{
	const struct memory_pattern *x = a, *y = b;

	if (x->port != y->port)
		return x->port < y->port ? -1 : 1;
	if (x->queue != y->queue)
		return x->queue < y->queue ? -1 : 1;
	return (x->pool > y->pool) - (x->pool < y->pool);
}

int memory_patterns_find(
	struct memory_patterns *p, const struct memory_samples *s, const struct ringtap_snapshot *f)
{
	uint64_t *device = calloc(s->count + 1, sizeof(*device));
	int ret = device ? 0 : -ENOMEM;

	*p = (struct memory_patterns){
		.all = {.port = RINGTAP_NO_INDEX, .pool = RINGTAP_NO_INDEX, .queue = -1}};
	for (size_t i = 0; i < s->count && !ret; i++)
		ret = meet(p, &s->list[i]);
	if (p->count)
		qsort(p->list, p->count, sizeof(*p->list), in_order);
	for (size_t i = 0; i < p->count && !ret; i++)
		ret = analyse(&p->list[i], s, f, device);
	if (!ret)
		ret = analyse(&p->all, s, f, device);
	free(device);
	return ret;
}

void memory_patterns_free(struct memory_patterns *p)
{
	free(p->list);
}
