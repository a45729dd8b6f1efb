/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include <rte_dev.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_malloc.h>
#include <rte_mbuf.h>

#include "common/pages.h"
#include "gpu.h"
#include "memory.h"
#include "memory_map.h"
#include "rate.h"
#include "samples.h"
#include "base/util.h"

#define MIB          (UINT64_C(1) << 20)
#define POOL_NAME    "packets"
#define EAL_SPARE_MB 64

static uint64_t ordinary_page(void)
{
	return (uint64_t)sysconf(_SC_PAGESIZE);
}

uint64_t memory_eal_mb(const struct fwd_config *c)
{
	uint64_t page = ordinary_page();
	/* Object header, mbuf, and entry of the ring or stack. */
	uint64_t each = 64 + sizeof(struct rte_mbuf) + 32;

	if (c->memory == MEMORY_DPDK)
		each += c->buffer_size + 64;
	/* Ordinary pages may not be contiguous: objects do not cross them. */
	if (c->no_huge && each < page)
		each = page / (page / each);
	else if (c->no_huge)
		each = (each + page - 1) / page * page;
	return EAL_SPARE_MB + (c->pool_size * each + MIB - 1) / MIB;
}

/* Ordinary pages of the pool and of EAL. Huge pages are reserved at mmap(), which fails in time. */
static uint64_t pool_bytes(const struct fwd_config *c)
{
	uint64_t bytes = 0;

	if (c->plane != PLANE_DPDK)
		return 0;
	if (c->memory == MEMORY_4K || c->memory == MEMORY_THP || c->memory == MEMORY_GPU_MANAGED ||
		c->memory == MEMORY_GPU_PINNED)
		bytes += (uint64_t)c->pool_size * c->buffer_size;
	if (c->no_huge)
		bytes += memory_eal_mb(c) * MIB;
	return bytes;
}

static uint64_t sample_bytes(const struct fwd_config *c)
{
	uint64_t roles = 0;

	for (unsigned i = 0; i < c->role_count; i++)
		if (c->roles[i].kind != ROLE_GENERATE)
			roles += c->roles[i].kind == ROLE_FORWARD ? 2 : 1;
	return c->samples ? roles * c->samples_max * sizeof(struct sample) : 0;
}

int memory_check(const struct fwd_config *c)
{
	uint64_t pool = pool_bytes(c), samples = sample_bytes(c), available = rt_pages_available();

	if (pool + samples <= available)
		return 0;
	return message_fail(-ENOMEM,
		"%" PRIu64 " MiB of memory are needed, %" PRIu64
		" MiB are available; give a smaller %s",
		(pool + samples) / MIB, available / MIB,
		samples > pool ? "--samples-max" : "--pool-size");
}

static uint64_t page_size(const struct fwd_config *c)
{
	switch (c->memory) {
	case MEMORY_HUGE: return c->page_size;
	case MEMORY_THP: return 2 * MIB;
	case MEMORY_GPU: return GPU_PAGE_SIZE;
	default: return ordinary_page();
	}
}

/* Splits the memory for rte_pktmbuf_pool_create_extbuf(). With virtual addresses (IOVA) it is one
 * piece. With physical addresses (paged), no buffer may cross a page: each page is a piece. */
static struct rte_pktmbuf_extmem *pieces(const struct memory *m, bool paged, unsigned *count)
{
	uint64_t size = paged ? m->page_size : m->bytes;
	struct rte_pktmbuf_extmem *list;

	*count = (unsigned)(m->bytes / size);
	list = calloc(*count, sizeof(*list));
	for (unsigned i = 0; list && i < *count; i++) {
		char *p = (char *)m->base + i * size;

		list[i] = (struct rte_pktmbuf_extmem){.buf_ptr = p,
			.buf_iova = paged ? rte_mem_virt2iova(p) : (rte_iova_t)(uintptr_t)p,
			.buf_len = size,
			.elt_size = (uint16_t)m->stride};
	}
	return list;
}

static int register_with_dpdk(const struct memory *m, const struct rte_pktmbuf_extmem *list,
	bool paged, const uint16_t *ports, unsigned count)
{
	unsigned pages = (unsigned)(m->bytes / m->page_size);
	rte_iova_t *iovas = paged ? calloc(pages, sizeof(*iovas)) : NULL;
	struct rte_eth_dev_info info;
	int ret;

	for (unsigned i = 0; iovas && i < pages; i++)
		iovas[i] = list[i].buf_iova;
	ret = rte_extmem_register(m->base, m->bytes, iovas, iovas ? pages : 0, m->page_size);
	free(iovas);
	if (ret)
		return message_fail(-rte_errno,
			"--pool-memory %s: cannot register it with DPDK: %s", memory_names[m->kind],
			rte_strerror(rte_errno));
	for (unsigned i = 0; i < count; i++) {
		char name[RTE_ETH_NAME_MAX_LEN] = "?";

		/* Virtual devices return 0 and do nothing. Buses without the function return
		 * ENOTSUP; their devices use virtual addresses. */
		if (rte_eth_dev_info_get(ports[i], &info) ||
			!rte_dev_dma_map(info.device, m->base, (uintptr_t)m->base, m->bytes) ||
			rte_errno == ENOTSUP)
			continue;
		ret = -rte_errno;
		(void)!rte_eth_dev_get_name_by_port(ports[i], name);
		return message_fail(ret, "--pool-memory %s: cannot map it for %s: %s",
			memory_names[m->kind], name, rte_strerror(-ret));
	}
	return 0;
}

static int external_pool(
	struct memory *m, const struct fwd_config *c, const uint16_t *ports, unsigned port_count)
{
	bool paged = rte_eal_iova_mode() == RTE_IOVA_PA && !gpu_kind(m->kind);
	struct rte_pktmbuf_extmem *list;
	unsigned count;
	int ret;

	if (paged && m->stride > m->page_size)
		return message_fail(-EINVAL,
			"--pool-memory %s: devices use physical addresses, and buffers of %u bytes do not "
			"fit into a page; give a smaller --mbuf-size",
			memory_names[m->kind], c->buffer_size);
	m->bytes = paged ? (c->pool_size + m->page_size / m->stride - 1) /
				   (m->page_size / m->stride) * m->page_size
			 : c->pool_size * m->stride;
	ret = gpu_kind(m->kind) ? gpu_map(m, GPU_LIBRARY) : memory_map(m);
	if (ret)
		return ret;
	list = pieces(m, paged, &count);
	ret = list ? register_with_dpdk(m, list, paged, ports, port_count) : -ENOMEM;
	if (!ret) {
		m->pool = rte_pktmbuf_pool_create_extbuf(POOL_NAME, c->pool_size, c->pool_cache, 0,
			(uint16_t)m->stride, SOCKET_ID_ANY, list, count);
		if (!m->pool)
			message_print(
				"--pool-memory %s: cannot create the pool: %s; give a larger --dpdk-memory",
				memory_names[m->kind], rte_strerror(rte_errno));
		ret = m->pool ? 0 : -rte_errno;
	}
	free(list);
	return ret;
}

static void widen(struct rte_mempool *pool, void *opaque, struct rte_mempool_memhdr *h, unsigned i)
{
	struct memory *m = opaque;
	char *from = h->addr, *to = from + h->len;
	char *end = (char *)m->base + m->bytes;

	if (!m->base)
		end = m->base = from;
	if (from < (char *)m->base)
		m->base = from;
	m->bytes = (uint64_t)((to > end ? to : end) - (char *)m->base);
}

static int dpdk_pool(struct memory *m, const struct fwd_config *c)
{
	struct rte_memseg_list *segments;

	m->pool = rte_pktmbuf_pool_create(POOL_NAME, c->pool_size, (uint16_t)c->pool_cache, 0,
		(uint16_t)c->buffer_size, SOCKET_ID_ANY);
	if (!m->pool)
		return message_fail(-rte_errno,
			"cannot create a pool of %u buffers: %s; give a larger --dpdk-memory",
			c->pool_size, rte_strerror(rte_errno));
	rte_mempool_mem_iter(m->pool, widen, m);
	segments = rte_mem_virt2memseg_list(m->base);
	m->page_size = segments ? segments->page_sz : 0;
	m->stride = m->pool->header_size + m->pool->elt_size + m->pool->trailer_size;
	return smaps_self(m->base, m->bytes, &m->smaps);
}

/* Takes all buffers out of the pool and returns them in random order. No other thread uses the pool
 * yet. */
static int shuffle(struct memory *m, uint64_t seed)
{
	unsigned n = m->pool->populated_size;
	void **all = calloc(n, sizeof(*all));
	uint64_t random = seed;

	if (!all || rte_mempool_ops_dequeue_bulk(m->pool, all, n)) {
		free(all);
		return message_fail(-ENOMEM,
			"--pool-order shuffled: not enough memory; give a smaller --pool-size");
	}
	for (unsigned i = n - 1; i; i--) { /* Fisher and Yates */
		unsigned j = (unsigned)(random_next(&random) % (i + 1));
		void *other = all[j];

		all[j] = all[i];
		all[i] = other;
	}
	rte_mempool_ops_enqueue_bulk(m->pool, all, n);
	free(all);
	return 0;
}

int memory_make(struct memory *m, const struct fwd_config *c, const uint16_t *ports, unsigned count)
{
	int ret;

	*m = (struct memory){.kind = c->memory, .order = c->order, .page_size = page_size(c)};
	m->stride = RTE_ALIGN_CEIL(c->buffer_size, RTE_CACHE_LINE_SIZE);
	if (c->pool_cache > c->pool_size * 2 / 3)
		return message_fail(-EINVAL,
			"--pool-cache %u: too large for a pool of %u buffers; give at most two "
			"thirds of --pool-size",
			c->pool_cache, c->pool_size);
	if (m->kind == MEMORY_DPDK)
		ret = dpdk_pool(m, c);
	else
		ret = external_pool(m, c, ports, count);
	if (!ret && gpu_kind(m->kind)) /* whose mappings the driver decides on */
		(void)smaps_self(m->base, m->bytes, &m->smaps);
	else if (!ret && m->kind != MEMORY_DPDK)
		ret = memory_verify(m);
	if (!ret && m->order == ORDER_SHUFFLED)
		ret = shuffle(m, c->seed);
	return ret;
}

void memory_detach(struct memory *m, const uint16_t *ports, unsigned count)
{
	struct rte_eth_dev_info info;

	for (unsigned i = 0; i < count && m->base && m->kind != MEMORY_DPDK; i++)
		if (!rte_eth_dev_info_get(ports[i], &info))
			(void)rte_dev_dma_unmap(info.device, m->base, (uintptr_t)m->base, m->bytes);
}

void memory_free(struct memory *m)
{
	rte_mempool_free(m->pool);
	m->pool = NULL;
	if (m->kind == MEMORY_DPDK || !m->base)
		return;
	(void)rte_extmem_unregister(m->base, m->bytes);
	if (gpu_kind(m->kind))
		gpu_unmap(m);
	else
		memory_unmap(m);
	m->base = NULL;
}
