/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory of the statistics. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rte_cycles.h>

#include "supply.h"
#include "probe/hook/hook.h"
#include "probe/memory/shm.h"
#include "probe/memory/sparse.h"

static uint64_t place(uint64_t *at, uint64_t size)
{
	uint64_t offset = (*at + 127) / 128 * 128;

	*at = offset + size;
	return offset;
}

static struct rt_stat_header lay_out(void)
{
	uint64_t at = sizeof(struct rt_stat_header), page = (uint64_t)sysconf(_SC_PAGESIZE);
	struct rt_stat_header h = {
		.magic = RT_STAT_MAGIC,
		.version = RT_STAT_VERSION,
		.header_size = sizeof(h),
		.tsc_hz = rte_get_tsc_hz(),
		.pid = (uint32_t)getpid(),
		.latency_every = 1,
		.interval_cycles = rte_get_tsc_hz() / (1000000000 / RT_STAT_INTERVAL_NS),
	};

	h.clock_offset = place(&at, sizeof(struct rt_seg_clock));
	h.port_offset = place(&at, sizeof(struct rt_stat_port) * RT_STAT_PORTS);
	h.thread_offset = place(&at, sizeof(struct rt_stat_thread) * RT_STAT_THREADS);
	h.hook_offset = place(&at, sizeof(struct rt_stat_hook) * RT_STAT_HOOKS);
	h.pair_offset = place(&at, sizeof(struct rt_stat_pair) * RT_STAT_PAIRS);
	h.pool_offset = place(&at, sizeof(struct rt_stat_pool) * RT_STAT_POOLS);
	h.ring_offset = place(&at, sizeof(struct rt_stat_ring) * RT_STAT_RINGS);
	h.xstat_offset = place(&at, sizeof(struct rt_stat_xstat) * RT_STAT_XSTATS);
	h.device_offset = place(&at, sizeof(struct rt_stat_device) * RT_STAT_DEVICES);
	h.lcore_offset = place(&at, sizeof(struct rt_stat_lcore) * RT_STAT_LCORES);
	h.sampler_offset = place(&at, sizeof(struct rt_stat_sampler) * RT_STAT_SAMPLERS);
	h.log_offset = place(&at, sizeof(struct rt_stat_log) * RT_STAT_LOGS);
	h.segment_size = (at + page - 1) / page * page;
	return h;
}

static void find_tables(struct rt_stats *f)
{
	uint8_t *base = (uint8_t *)f->header;

	f->clock = (void *)(base + f->header->clock_offset);
	f->ports = (void *)(base + f->header->port_offset);
	f->threads = (void *)(base + f->header->thread_offset);
	f->hooks = (void *)(base + f->header->hook_offset);
	f->pairs = (void *)(base + f->header->pair_offset);
	f->pools = (void *)(base + f->header->pool_offset);
	f->rings = (void *)(base + f->header->ring_offset);
	f->xstats = (void *)(base + f->header->xstat_offset);
	f->devices = (void *)(base + f->header->device_offset);
	f->lcores = (void *)(base + f->header->lcore_offset);
	f->samplers = (void *)(base + f->header->sampler_offset);
	f->logs = (void *)(base + f->header->log_offset);
}

/* Sparse: only populated pages cost memory. 0 or -errno. */
static int make_segment(struct rt_stats *f, uint64_t size)
{
	f->fd = memfd_create("ringtap-statistics", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (f->fd < 0 || ftruncate(f->fd, (off_t)size))
		return -errno;
	f->header = rt_sparse_map(f->fd, size);
	return f->header ? rt_shm_seal(f->fd) : -ENOMEM;
}

struct rt_stats *rt_stats_create(const struct rt_clock_line *clock)
{
	struct rt_stat_header h = lay_out();
	struct rt_stats *f = aligned_alloc(128, (sizeof(*f) + 127) / 128 * 128);

	if (!f)
		return NULL;
	memset(f, 0, sizeof(*f));
	f->fd = -1;
	f->size = h.segment_size;
	f->rows = rt_sparse_map(-1, (uint64_t)RT_STAT_ROW * RT_MAX_THREADS);
	if (!f->rows || make_segment(f, h.segment_size)) {
		rt_stats_free(f);
		return NULL;
	}
	*f->header = h;
	find_tables(f);
	rt_clock_publish(f->clock, clock);
	f->no_thread_base = rt_load(&rt_stat_no_thread);
	return f;
}

void rt_stats_free(struct rt_stats *f)
{
	while (f->sites) {
		struct rt_stat_site *s = f->sites;

		f->sites = s->next;
		free(s);
	}
	if (f->rows)
		munmap(f->rows, (uint64_t)RT_STAT_ROW * RT_MAX_THREADS);
	if (f->header)
		munmap(f->header, f->size);
	if (f->fd >= 0)
		close(f->fd);
	free(f);
}
