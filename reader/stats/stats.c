/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "common/fail.h"
#include "stats.h"
#include "reader/memory/segment.h"

/* Time stamp counters have 10 MHz (some Arm) to 6 GHz. */
#define HZ_MIN 1000000ull
#define HZ_MAX 100000000000ull

static_assert(sizeof(struct rt_stat_header) == RT_SEG_HEADER, "offsets are checked against it");

static int bad(char *err, size_t errlen, const char *what)
{
	return rt_fail(-EBADMSG, err, errlen, "the probe's statistics are not usable: %s", what);
}

static int cannot_map(char *err, size_t errlen)
{
	int error = errno;

	return rt_fail(
		-error, err, errlen, "cannot map the probe's statistics: %s", strerror(error));
}

static bool tables_fit(const struct rt_stat_header *h)
{
	const struct {
		uint64_t offset, count, each;
	} tables[] =
		{
			{h->clock_offset, 1, sizeof(struct rt_seg_clock)},
			{h->port_offset, RT_STAT_PORTS, sizeof(struct rt_stat_port)},
			{h->thread_offset, RT_STAT_THREADS, sizeof(struct rt_stat_thread)},
			{h->hook_offset, RT_STAT_HOOKS, sizeof(struct rt_stat_hook)},
			{h->pair_offset, RT_STAT_PAIRS, sizeof(struct rt_stat_pair)},
			{h->pool_offset, RT_STAT_POOLS, sizeof(struct rt_stat_pool)},
			{h->sampler_offset, RT_STAT_SAMPLERS, sizeof(struct rt_stat_sampler)},
		},
	  later[] = {
		  {h->ring_offset, RT_STAT_RINGS, sizeof(struct rt_stat_ring)},
		  {h->xstat_offset, RT_STAT_XSTATS, sizeof(struct rt_stat_xstat)},
		  {h->device_offset, RT_STAT_DEVICES, sizeof(struct rt_stat_device)},
		  {h->lcore_offset, RT_STAT_LCORES, sizeof(struct rt_stat_lcore)},
		  {h->log_offset, RT_STAT_LOGS, sizeof(struct rt_stat_log)},
	  };

	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
		if (!rt_table_fits(
			    h->segment_size, tables[i].offset, tables[i].count, tables[i].each, 64))
			return false;
	}
	for (size_t i = 0; i < sizeof(later) / sizeof(later[0]); i++) {
		/* 0: an earlier probe. */
		if (later[i].offset && !rt_table_fits(h->segment_size, later[i].offset,
					       later[i].count, later[i].each, 64))
			return false;
	}
	return true;
}

static int check_header(const struct rt_stat_header *h, int64_t size, char *err, size_t errlen)
{
	if (memcmp(h->magic, RT_STAT_MAGIC, sizeof(h->magic)))
		return bad(err, errlen, "they do not begin with the magic number");
	if (h->version != RT_STAT_VERSION || h->header_size != sizeof(*h))
		return rt_fail(-EPROTOTYPE, err, errlen,
			"the probe's statistics are version %u, this reader's %d", h->version,
			RT_STAT_VERSION);
	if (h->segment_size > (uint64_t)size)
		return bad(err, errlen, "the memory is shorter than it says");
	if (h->tsc_hz < HZ_MIN || h->tsc_hz > HZ_MAX)
		return bad(err, errlen, "impossible frequency of the time stamp counter");
	if (!tables_fit(h))
		return bad(err, errlen, "a table lies outside of the memory");
	return 0;
}

/* NULL: an earlier probe has none. */
static const void *table(const uint8_t *base, uint64_t offset)
{
	return offset ? base + offset : NULL;
}

int rt_stats_map(struct rt_stats *f, int fd, char *err, size_t errlen)
{
	int64_t size = rt_sealed_size(fd);
	const uint8_t *base;
	void *p;
	int ret;

	memset(f, 0, sizeof(*f));
	if (size < 0)
		return bad(err, errlen, "they are not sealed memory of ordinary pages");
	if (size < (int64_t)sizeof(f->h))
		return bad(err, errlen, "the memory is too short");
	/* Map the header first: its description of the rest is checked on a private copy. */
	p = mmap(NULL, sizeof(f->h), PROT_READ, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		return cannot_map(err, errlen);
	memcpy(&f->h, p, sizeof(f->h));
	munmap(p, sizeof(f->h));
	ret = check_header(&f->h, size, err, errlen);
	if (ret)
		return ret;
	p = mmap(NULL, f->h.segment_size, PROT_READ, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		return cannot_map(err, errlen);
	f->live = p;
	base = p;
	f->clock = (const void *)(base + f->h.clock_offset);
	f->ports = (const void *)(base + f->h.port_offset);
	f->threads = (const void *)(base + f->h.thread_offset);
	f->hooks = (const void *)(base + f->h.hook_offset);
	f->pairs = (const void *)(base + f->h.pair_offset);
	f->pools = (const void *)(base + f->h.pool_offset);
	f->rings = table(base, f->h.ring_offset);
	f->xstats = table(base, f->h.xstat_offset);
	f->devices = table(base, f->h.device_offset);
	f->lcores = table(base, f->h.lcore_offset);
	f->samplers = (const void *)(base + f->h.sampler_offset);
	f->logs = table(base, f->h.log_offset);
	return 0;
}

void rt_stats_unmap(struct rt_stats *f)
{
	if (f->live)
		munmap((void *)(uintptr_t)f->live, f->h.segment_size);
	memset(f, 0, sizeof(*f));
}
