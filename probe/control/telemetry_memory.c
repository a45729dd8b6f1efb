/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory as telemetry data: mempools, and buffer addresses of received packets. */
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>

#include "telemetry.h"

#define SOME 1000 /* packets in which distinct pages are counted */

void rt_telemetry_mempools(struct rt_stats *f, const char *port, struct rt_tel_list *out)
{
	static const char *const kinds[] = {"unknown", "dpdk", "external"};

	for (uint32_t i = 0; i < RTE_MIN(f->header->pool_count, (uint32_t)RT_STAT_POOLS); i++) {
		const struct rt_stat_pool *p = &f->pools[i];
		struct rte_tel_data *d = p->state == RT_IF_PRESENT ? rt_telemetry_dict() : NULL;

		if (!d)
			continue;
		rt_telemetry_string(d, KEY(POOL_NAME), p->name);
		rt_telemetry_string(d, KEY(POOL_OPS), p->ops);
		rt_telemetry_string(d, KEY(POOL_MEMORY), kinds[p->memory]);
		rt_telemetry_uint(d, KEY(POOL_PAGE), p->page_bytes);
		rt_telemetry_uint(d, KEY(POOL_SIZE), p->size);
		rt_telemetry_uint(d, KEY(POOL_USED), p->size - p->available);
		rt_telemetry_uint(d, KEY(POOL_FREE), p->available);
		rt_telemetry_uint(d, KEY(POOL_MIN), p->lowest);
		rt_telemetry_uint(d, KEY(POOL_CACHED), p->in_caches);
		rt_telemetry_uint(d, KEY(POOL_CACHE), p->cache_size);
		rt_telemetry_uint(d, KEY(POOL_OBJECT), p->object_bytes);
		rt_telemetry_uint(d, KEY(POOL_BUFFER), p->buffer_bytes);
		rt_telemetry_uint(d, KEY(POOL_CHUNKS), p->chunks);
		rt_telemetry_int(d, KEY(POOL_SOCKET), p->socket);
		rt_telemetry_add(out, d);
	}
}

static int in_order(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* By IOVA, as devices address it; by virtual address in a pool without IOVAs (all ones). */
static uint64_t page_of(const struct rt_stat_sample *s, unsigned shift)
{
	return (s->iova && s->iova != UINT64_MAX ? s->iova : s->buf_addr) >> shift;
}

/* Distinct pages in SOME packets, on average. */
static uint64_t distinct_pages(const struct rt_stat_run *st, unsigned shift)
{
	uint64_t windows = st->count / SOME, distinct = 0, page[SOME];

	for (uint64_t w = 0; w < windows; w++) {
		for (unsigned i = 0; i < SOME; i++)
			page[i] = page_of(&st->sample[w * SOME + i], shift);
		qsort(page, SOME, sizeof(page[0]), in_order);
		for (unsigned i = 0; i < SOME; i++)
			distinct += i == 0 || page[i] != page[i - 1];
	}
	return windows ? distinct / windows : 0;
}

/* From the lowest address of a buffer to the next one; 0: unknown. */
static uint64_t stride_at(const struct rt_stats *f, uint64_t address)
{
	for (uint32_t i = 0; i < RTE_MIN(f->header->pool_count, (uint32_t)RT_STAT_POOLS); i++) {
		const struct rt_stat_pool *p = &f->pools[i];

		if (p->state == RT_IF_PRESENT && address - p->base < p->span)
			return p->object_bytes;
	}
	return 0;
}

/* Steps from a buffer to an adjacent one. Objects that would cross a page begin in the next one, so
 * adjacent ones are up to two objects apart. stride 0: unknown. */
static uint64_t sequential_steps(const struct rt_stat_run *st, uint64_t stride)
{
	uint64_t steps = 0;

	for (uint64_t i = 1; stride && i < st->count; i++) {
		uint64_t from = st->sample[i - 1].buf_addr, to = st->sample[i].buf_addr;
		uint64_t bytes = to > from ? to - from : from - to;

		steps += bytes >= stride && bytes < 2 * stride;
	}
	return steps;
}

/* The last finished run of a thread. False: there is none, or it has just been overwritten. */
static bool copy_run(const struct rt_stat_sampler *s, struct rt_stat_run *out)
{
	uint64_t number = rt_load_acquire(&s->done);
	const struct rt_stat_run *st = &s->run[number % RT_STAT_RUNS];

	if (!number || rt_load_acquire(&st->number) != number)
		return false;
	memcpy(out, st, sizeof(*out));
	rt_fence_acquire(); /* pairs with the fence in next_run() */
	return rt_load(&st->number) == number && out->count <= RT_STAT_RUN;
}

void rt_telemetry_addresses(struct rt_stats *f, const char *port, struct rt_tel_list *out)
{
	static struct rt_stat_run st; /* control lock held */

	for (uint32_t i = 0; i < RTE_MIN(f->header->sampler_count, (uint32_t)RT_STAT_SAMPLERS);
		i++) {
		const struct rt_stat_sampler *s = &f->samplers[i];
		struct rte_tel_data *d;

		if (!rt_load_acquire(&s->generation) || !copy_run(s, &st))
			continue;
		d = rt_telemetry_dict();
		if (!d)
			return;
		rt_telemetry_uint(d, "thread_index", s->thread);
		rt_telemetry_uint(d, "packets", st.count);
		rt_telemetry_uint(d, "pages_4k_per_1000_packets", distinct_pages(&st, 12));
		rt_telemetry_uint(d, "pages_2m_per_1000_packets", distinct_pages(&st, 21));
		rt_telemetry_uint(d, "pages_1g_per_1000_packets", distinct_pages(&st, 30));
		rt_telemetry_uint(d, "steps", st.count ? st.count - 1 : 0);
		rt_telemetry_uint(d, "sequential_steps",
			sequential_steps(&st, stride_at(f, st.sample[0].buf_addr)));
		rt_telemetry_add(out, d);
	}
}
