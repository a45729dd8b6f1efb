/* SPDX-License-Identifier: BSD-3-Clause */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/atomics.h"
#include "common/clock.h"
#include "test_stats.h"
#include "test_session.h"

/* Measured once, as fuzzers make thousands of segments. */
static const struct rt_clock *machine_clock(void)
{
	static struct rt_clock c;
	uint64_t tsc, ns, tsc0, ns0;

	if (!c.line.mult) {
		rt_clock_sample(&tsc0, &ns0);
		do {
			rt_clock_sample(&tsc, &ns);
		} while (ns - ns0 < 2000000);
		rt_clock_init(&c, tsc0, ns0, tsc, ns, 0);
	}
	return &c;
}

static uint64_t lay_out(struct rt_stat_header *h)
{
	const struct {
		uint64_t *offset, size;
	} tables[] = {
		{&h->clock_offset, sizeof(struct rt_seg_clock)},
		{&h->port_offset, sizeof(struct rt_stat_port) * RT_STAT_PORTS},
		{&h->thread_offset, sizeof(struct rt_stat_thread) * RT_STAT_THREADS},
		{&h->hook_offset, sizeof(struct rt_stat_hook) * RT_STAT_HOOKS},
		{&h->pair_offset, sizeof(struct rt_stat_pair) * RT_STAT_PAIRS},
		{&h->pool_offset, sizeof(struct rt_stat_pool) * RT_STAT_POOLS},
		{&h->ring_offset, sizeof(struct rt_stat_ring) * RT_STAT_RINGS},
		{&h->xstat_offset, sizeof(struct rt_stat_xstat) * RT_STAT_XSTATS},
		{&h->device_offset, sizeof(struct rt_stat_device) * RT_STAT_DEVICES},
		{&h->lcore_offset, sizeof(struct rt_stat_lcore) * RT_STAT_LCORES},
		{&h->sampler_offset, sizeof(struct rt_stat_sampler) * RT_STAT_SAMPLERS},
		{&h->log_offset, sizeof(struct rt_stat_log) * RT_STAT_LOGS},
	};
	uint64_t at = sizeof(*h);

	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
		*tables[i].offset = at;
		at += tables[i].size;
	}
	return at;
}

static void map_tables(struct test_stats *f, uint8_t *base, const struct rt_stat_header *h)
{
	f->h = (void *)base;
	f->clock = (void *)(base + h->clock_offset);
	f->ports = (void *)(base + h->port_offset);
	f->threads = (void *)(base + h->thread_offset);
	f->hooks = (void *)(base + h->hook_offset);
	f->pairs = (void *)(base + h->pair_offset);
	f->pools = (void *)(base + h->pool_offset);
	f->rings = (void *)(base + h->ring_offset);
	f->xstats = (void *)(base + h->xstat_offset);
	f->devices = (void *)(base + h->device_offset);
	f->lcores = (void *)(base + h->lcore_offset);
	f->samplers = (void *)(base + h->sampler_offset);
	f->logs = (void *)(base + h->log_offset);
}

static void put_honest(struct test_stats *f)
{
	for (uint16_t i = 0; i < 2; i++) {
		memcpy(f->ports[i].name, i ? "port1" : "port0", 6);
		memcpy(f->ports[i].driver, "net_test", 9);
		f->ports[i].port_id = i;
		f->ports[i].state = RT_IF_PRESENT;
	}
	f->h->port_count = 2;
	f->h->thread_count = 8;
	f->threads[3].generation = 7;
	f->threads[3].alive = 1;
	f->threads[3].lcore = 1;
	memcpy(f->threads[3].name, "lcore-worker-1", 15);
}

void test_stats_make(struct test_stats *f)
{
	const struct rt_clock *clock = machine_clock();
	struct rt_stat_header h = {.magic = RT_STAT_MAGIC,
		.version = RT_STAT_VERSION,
		.header_size = sizeof(h),
		.tsc_hz = (uint64_t)(1e9 / clock->rate),
		.collectors = RT_COLLECT_ALL,
		.latency_every = 1,
		.switched = 1};
	void *base;

	h.segment_size = (lay_out(&h) + 4095) / 4096 * 4096;
	f->size = h.segment_size;
	f->fd = test_memfd(f->size, F_SEAL_SHRINK | F_SEAL_GROW);
	base = mmap(NULL, f->size, PROT_READ | PROT_WRITE, MAP_SHARED, f->fd, 0);
	if (base == MAP_FAILED)
		abort();
	map_tables(f, base, &h);
	*f->h = h;
	rt_clock_publish(f->clock, &clock->line);
	put_honest(f);
}

void test_stats_free(struct test_stats *f)
{
	munmap(f->h, f->size);
	close(f->fd);
}

struct rt_stat_hook *test_hook(
	struct test_stats *f, uint32_t slot, uint16_t port, uint16_t queue, uint8_t direction)
{
	struct rt_stat_hook *h = &f->hooks[f->h->hook_count];

	h->thread = slot;
	h->generation = f->threads[slot].generation;
	h->port_index = port;
	h->queue = queue;
	h->direction = direction;
	rt_store_release(&f->h->hook_count, f->h->hook_count + 1);
	return h;
}

struct rt_stat_pair *test_pair(
	struct test_stats *f, uint32_t slot, uint16_t rx_port, uint16_t tx_port)
{
	struct rt_stat_pair *p = &f->pairs[f->h->pair_count];

	p->thread = slot;
	p->generation = f->threads[slot].generation;
	p->rx_index = rx_port;
	p->tx_index = tx_port;
	p->min = UINT64_MAX;
	rt_store_release(&f->h->pair_count, f->h->pair_count + 1);
	return p;
}

void test_interval(struct test_stats *f, uint32_t log, const struct rt_stat_interval *v)
{
	struct rt_stat_log *l = &f->logs[log];

	l->thread = 3;
	l->generation = f->threads[3].generation;
	l->interval[l->head % RT_STAT_INTERVALS] = *v;
	rt_store_release(&l->head, l->head + 1);
	if (f->h->log_count <= log)
		rt_store_release(&f->h->log_count, log + 1);
}

void test_sample_run(struct test_stats *f, uint32_t sampler, uint64_t number, uint64_t count)
{
	struct rt_stat_sampler *s = &f->samplers[sampler];
	struct rt_stat_run *st = &s->run[number % RT_STAT_RUNS];

	rt_store(&st->number, 0);
	s->thread = 3;
	s->generation = f->threads[3].generation;
	st->tsc = rt_tsc();
	st->count = count;
	for (uint64_t i = 0; i < count && i < RT_STAT_RUN; i++)
		st->sample[i] = (struct rt_stat_sample){.buf_addr = 1000 + i,
			.iova = 5000 + i,
			.tsc = (uint32_t)i,
			.port_index = 1};
	rt_store_release(&st->number, number);
	s->done = number;
	if (f->h->sampler_count <= sampler)
		rt_store_release(&f->h->sampler_count, sampler + 1);
}
