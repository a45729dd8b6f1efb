/* SPDX-License-Identifier: BSD-3-Clause */
/* Takes a snapshot: bounded copies of all counters. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/atomics.h"
#include "common/clock.h"
#include "common/now.h"
#include "reader/export.h"
#include "monitor_state.h"

#define SETTLED_NS    100000000ull /* minimum time for measuring the counter's frequency */
#define HZ_OFF        0.005        /* DPDK rounds to 10 MHz at most */
#define NAME_TRIES    5
#define COUNTER_TRIES 100

uint64_t rt_measure_hz(const struct ringtap_monitor *mon, uint64_t tsc, uint64_t mono_ns)
{
	uint64_t ns = mono_ns - mon->open_mono_ns;
	double reported = (double)mon->stats.h.tsc_hz, hz;

	if (ns < SETTLED_NS)
		return mon->stats.h.tsc_hz;
	hz = (double)(tsc - mon->open_tsc) * 1e9 / (double)ns;
	/* A larger difference than DPDK's rounding: the measurement was disturbed, or the guest was
	 * migrated. The probe's value is not better, but constant. */
	return hz > reported * (1 - HZ_OFF) && hz < reported * (1 + HZ_OFF) ? (uint64_t)(hz + 0.5)
									    : mon->stats.h.tsc_hz;
}

/* A new port may enter the switch's database later. Its name is then kept, as its number may be
 * reused. */
static void find_name(struct ringtap_monitor *mon, uint32_t i, const char *device)
{
	if (mon->name_tries[i] == NAME_TRIES)
		return;
	mon->name_tries[i]++;
	if (rt_switch_name(mon->conn, mon->stats.ports[i].port_id, device, mon->names[i]))
		mon->name_tries[i] = NAME_TRIES;
}

/* Copies one reading of the driver; read_ns is 0 if the probe finishes none. */
static void read_counters(const struct rt_stat_port *p, struct ringtap_port_stats *o)
{
	for (int i = 0; i < COUNTER_TRIES; i++) {
		o->read_ns = rt_load_acquire(&p->read_ns);
		o->ipackets = rt_load(&p->ipackets);
		o->opackets = rt_load(&p->opackets);
		o->ibytes = rt_load(&p->ibytes);
		o->obytes = rt_load(&p->obytes);
		o->imissed = rt_load(&p->imissed);
		o->ierrors = rt_load(&p->ierrors);
		o->rx_nombuf = rt_load(&p->rx_nombuf);
		o->oerrors = rt_load(&p->oerrors);
		o->tx_before = rt_load(&p->tx_before);
		o->tx_after = rt_load(&p->tx_after);
		o->tx_unknown = rt_load(&p->tx_unknown);
		o->epoch = rt_load(&p->epoch);
		rt_fence_acquire(); /* pairs with the one in show_counters() */
		if (o->read_ns && rt_load(&p->read_ns) == o->read_ns)
			return;
	}
	o->read_ns = 0;
}

static void read_ports(struct ringtap_monitor *mon, struct rt_snapshot *snap)
{
	for (uint32_t i = 0; i < snap->pub.port_count; i++) {
		const struct rt_stat_port *p = &mon->stats.ports[i];
		struct ringtap_port_stats *o = &snap->ports[i];

		rt_copy_text(o->device, p->name, sizeof(o->device));
		find_name(mon, i, o->device);
		memcpy(o->name, mon->names[i], sizeof(o->name));
		rt_copy_text(o->driver, p->driver, sizeof(o->driver));
		o->port_id = p->port_id;
		o->gone = mon->dead || rt_load(&p->state) == RT_IF_GONE;
		o->link_up = !o->gone && rt_load(&p->link_up);
		o->link_mbps = rt_load(&p->link_mbps);
		if (!o->gone && !strcmp(o->driver, RT_VHOST_DRIVER))
			rt_switch_link(
				mon->conn, p->port_id, o->device, &o->link_up, &o->link_mbps);
		o->rx_queues = rt_load(&p->nb_rx_queues);
		o->tx_queues = rt_load(&p->nb_tx_queues);
		o->rx_descriptors = rt_load(&p->nb_rxd);
		o->tx_descriptors = rt_load(&p->nb_txd);
		o->mtu = rt_load(&p->mtu);
		o->stopped_ns = o->gone ? 0 : rt_load(&p->stopped_ns);
		o->used = rt_load(&p->used) != 0;
		read_counters(p, o);
	}
}

static_assert(RT_STAT_BURSTS == RINGTAP_BURSTS, "same histogram");

static void read_queues(const struct ringtap_monitor *mon, struct rt_snapshot *snap)
{
	for (uint32_t i = 0; i < snap->pub.queue_count; i++) {
		const struct rt_owner *of = &mon->queues[i];
		const struct rt_stat_hook *h = &mon->stats.hooks[of->block];
		struct ringtap_queue_stats *o = &snap->queues[i];

		o->thread = of->thread;
		o->port = of->port;
		o->queue = of->queue;
		o->direction = of->direction == RT_DIR_RX ? RINGTAP_RX : RINGTAP_TX;
		o->max_burst = rt_load(&h->max_burst);
		o->bytes = rt_load(&h->bytes);
		o->byte_packets = rt_load(&h->byte_packets);
		o->big_polls = rt_load(&h->big_polls);
		o->big_packets = rt_load(&h->big_packets);
		rt_copy_words(o->burst, h->burst, sizeof(o->burst));
		o->empty_polls = o->burst[0];
		o->polls = o->big_polls;
		o->packets = o->big_packets;
		for (uint64_t n = 0; n <= RINGTAP_BURSTS; n++) {
			o->polls += o->burst[n];
			o->packets += n * o->burst[n];
		}
	}
}

static void read_pairs(const struct ringtap_monitor *mon, struct rt_snapshot *snap)
{
	for (uint32_t i = 0; i < snap->pub.pair_count; i++) {
		const struct rt_owner *of = &mon->pairs[i];
		const struct rt_stat_pair *p = &mon->stats.pairs[of->block];
		struct ringtap_pair_stats *o = &snap->pairs[i];
		uint64_t *bucket = snap->buckets + (size_t)i * RT_STAT_BUCKETS;

		o->thread = of->thread;
		o->rx_port = of->rx_port;
		o->tx_port = of->port;
		o->inferred = rt_load(&p->inferred) != 0;
		o->tx_queue = of->size ? of->queue : RINGTAP_NO_INDEX;
		o->bytes_from = of->size > 1 ? rt_stat_size_limit(of->size - 2u) : 0;
		o->bytes_to = of->size && of->size < RT_STAT_SIZES
				      ? rt_stat_size_limit(of->size - 1u) - 1
				      : UINT32_MAX;
		o->sum = rt_load(&p->sum);
		o->min = rt_load(&p->min);
		o->max = rt_load(&p->max);
		o->unstamped = rt_load(&p->unstamped);
		o->shared = rt_load(&p->shared);
		rt_copy_words(bucket, p->bucket, sizeof(p->bucket));
		/* The sum of the buckets instead of the probe's counter, so that both agree while
		 * packets flow. */
		o->count = 0;
		for (uint32_t b = 0; b < RT_STAT_BUCKETS; b++)
			o->count += bucket[b];
		o->bucket = bucket;
	}
}

static void read_pools(const struct ringtap_monitor *mon, struct rt_snapshot *snap)
{
	for (uint32_t i = 0; i < snap->pub.pool_count; i++) {
		const struct rt_stat_pool *p = &mon->stats.pools[i];
		struct ringtap_pool_stats *o = &snap->pools[i].pub;
		uint32_t memory = rt_load(&p->memory);

		rt_copy_text(o->name, p->name, sizeof(o->name));
		rt_copy_text(o->ops, p->ops, sizeof(o->ops));
		o->address = p->address;
		o->gone = mon->dead || rt_load(&p->state) == RT_IF_GONE;
		o->pinned_external = rt_load(&p->pinned_external);
		o->memory = memory == RT_MEM_DPDK       ? RINGTAP_MEMORY_DPDK
			    : memory == RT_MEM_EXTERNAL ? RINGTAP_MEMORY_EXTERNAL
							: RINGTAP_MEMORY_UNKNOWN;
		o->size = rt_load(&p->size);
		o->object_bytes = rt_load(&p->object_bytes);
		o->buffer_bytes = rt_load(&p->buffer_bytes);
		o->chunks = rt_load(&p->chunks);
		o->cache_size = rt_load(&p->cache_size);
		o->socket = rt_load(&p->socket);
		o->page_bytes = rt_load(&p->page_bytes);
		o->base = rt_load(&p->base);
		o->span = rt_load(&p->span);
		o->available = rt_load(&p->available);
		o->in_caches = rt_load(&p->in_caches);
		o->lowest = rt_load(&p->lowest);
		for (uint32_t c = 0; c < RT_STAT_LCORES; c++)
			snap->pools[i].cache[c] = rt_load(&p->cache[c]);
		o->cache_count = RT_STAT_LCORES;
		o->cache = snap->pools[i].cache;
	}
}

static void read_rings(const struct ringtap_monitor *mon, struct rt_snapshot *snap)
{
	for (uint32_t i = 0; i < snap->pub.ring_count; i++) {
		const struct rt_stat_ring *r = &mon->stats.rings[i];
		struct ringtap_ring_stats *o = &snap->rings[i];
		/* Pairs with the release in sample(), after the sample is complete. */
		uint64_t samples = rt_load_acquire(&r->samples);

		rt_copy_text(o->name, r->name, sizeof(o->name));
		o->gone = mon->dead || rt_load(&r->state) == RT_IF_GONE;
		o->capacity = rt_load(&r->capacity);
		o->used = rt_load(&r->used);
		o->highest = rt_load(&r->highest);
		o->samples = samples;
		for (uint32_t n = 0; n < RINGTAP_RING_RECENT && n < samples; n++)
			o->recent[n] = rt_load(&r->recent[(samples - 1 - n) % RT_STAT_RECENT]);
	}
}

/* One reading of up to two values; the time of it, or 0 if the probe finishes none. */
static uint64_t read_values(const uint64_t *read_ns, const uint64_t *a, const uint64_t *b,
	uint64_t *first, uint64_t *second)
{
	for (int i = 0; i < COUNTER_TRIES; i++) {
		uint64_t ns = rt_load_acquire(read_ns);

		*first = rt_load(a);
		*second = rt_load(b);
		rt_fence_acquire(); /* pairs with the one in rt_stat_show() */
		if (ns && rt_load(read_ns) == ns)
			return ns;
	}
	return 0;
}

static void read_xstats(const struct ringtap_monitor *mon, struct rt_snapshot *snap)
{
	for (uint32_t i = 0; i < snap->pub.xstat_count; i++) {
		const struct rt_stat_xstat *x = &mon->stats.xstats[i];
		struct ringtap_xstat_stats *o = &snap->xstats[i];
		uint16_t port = rt_load(&x->port_index);

		rt_copy_text(o->name, x->name, sizeof(o->name));
		o->port = port < mon->port_count ? port : RINGTAP_NO_INDEX;
		o->gone = mon->dead || rt_load(&x->state) == RT_IF_GONE;
		o->read_ns = read_values(&x->read_ns, &x->value, &x->value, &o->value, &o->value);
	}
}

static void read_devices(const struct ringtap_monitor *mon, struct rt_snapshot *snap)
{
	for (uint32_t i = 0; i < snap->pub.device_stat_count; i++) {
		const struct rt_stat_device *d = &mon->stats.devices[i];
		struct ringtap_device_stat *o = &snap->devices[i];
		uint8_t kind = rt_load(&d->kind), part = rt_load(&d->part);
		bool known = kind < RT_DEVICE_KINDS && part < RT_PARTS;

		rt_copy_text(o->device, d->device, sizeof(o->device));
		rt_copy_text(o->name, d->name, sizeof(o->name));
		o->kind = known ? kind : 0;
		o->part = known ? part : 0;
		o->id = rt_load(&d->id);
		o->number = rt_load(&d->number);
		o->gone = mon->dead || !known || rt_load(&d->state) == RT_IF_GONE;
		o->read_ns = read_values(&d->read_ns, &d->value, &d->value, &o->value, &o->value);
	}
}

static void read_lcores(const struct ringtap_monitor *mon, struct rt_snapshot *snap)
{
	for (uint32_t i = 0; i < snap->pub.lcore_count; i++) {
		const struct rt_stat_lcore *l = &mon->stats.lcores[i];
		struct ringtap_lcore_stats *o = &snap->lcores[i];

		o->lcore = i;
		o->read_ns = read_values(&l->read_ns, &l->total_cycles, &l->busy_cycles,
			&o->total_cycles, &o->busy_cycles);
	}
}

/* ---- runs of samples ---- */

static void copy_samples(const struct ringtap_monitor *mon, struct ringtap_sample *to,
	const struct rt_stat_sample *from, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++) {
		struct rt_stat_sample s;

		rt_copy_words(&s, &from[i], sizeof(s));
		to[i] = (struct ringtap_sample){.address = s.buf_addr,
			.iova = s.iova,
			.tsc = s.tsc,
			.port = s.port_index < mon->port_count ? s.port_index : RINGTAP_NO_INDEX,
			.queue = s.queue};
	}
}

/* False: no run, or it is being written. */
static bool read_run(const struct ringtap_monitor *mon, const struct rt_stat_run *from,
	struct ringtap_sample *room, struct ringtap_sample_run *to)
{
	/* Pairs with the release in rt_stat_sample(), after the run is complete. */
	uint64_t number = rt_load_acquire(&from->number), count = rt_load_acquire(&from->count);

	if (!number || !count || count > RT_STAT_RUN)
		return false;
	to->number = number;
	to->count = count;
	to->start_ns = rt_clock_ns(&mon->line, rt_load_acquire(&from->tsc));
	to->samples = (struct ringtap_array){room, sizeof(*room)};
	copy_samples(mon, room, from->sample, count);
	return rt_load(&from->number) == number;
}

static int older_first(const void *a, const void *b)
{
	const struct ringtap_sample_run *x = a, *y = b;

	if (x->thread != y->thread)
		return x->thread < y->thread ? -1 : 1;
	return (x->number > y->number) - (x->number < y->number);
}

static int read_runes(const struct ringtap_monitor *mon, struct rt_snapshot *snap)
{
	size_t max = (size_t)mon->sampler_count * RT_STAT_RUNS;
	struct ringtap_snapshot *f = &snap->pub;

	if (!max || !(mon->collectors & RINGTAP_ADDRESSES))
		return 0;
	snap->sample_runs = calloc(max, sizeof(*snap->sample_runs));
	/* malloc(), not calloc(): unused pages are not allocated. */
	snap->samples = malloc(max * RT_STAT_RUN * sizeof(*snap->samples));
	if (!snap->sample_runs || !snap->samples)
		return -ENOMEM;
	for (size_t i = 0; i < max; i++) {
		const struct rt_owner *of = &mon->samplers[i / RT_STAT_RUNS];
		const struct rt_stat_sampler *s = &mon->stats.samplers[of->block];
		struct ringtap_sample_run *to = &snap->sample_runs[f->sample_run_count];

		to->thread = of->thread;
		f->sample_run_count += read_run(
			mon, &s->run[i % RT_STAT_RUNS], snap->samples + i * RT_STAT_RUN, to);
	}
	qsort(snap->sample_runs, f->sample_run_count, sizeof(*snap->sample_runs), older_first);
	f->sample_runs = (struct ringtap_array){snap->sample_runs, sizeof(*snap->sample_runs)};
	return 0;
}

/* ---- all of it ---- */

static void *room(uint32_t count, size_t each, struct ringtap_array *array)
{
	*array = (struct ringtap_array){calloc(count ? count : 1, each), each};
	return array->first;
}

static int allocate(const struct ringtap_monitor *mon, struct rt_snapshot *snap)
{
	struct ringtap_snapshot *f = &snap->pub;

	f->port_count = mon->port_count;
	f->thread_count = mon->thread_count;
	f->queue_count = mon->queue_count;
	f->pair_count = mon->pair_count;
	f->pool_count = mon->pool_count;
	f->ring_count = mon->ring_count;
	f->xstat_count = mon->xstat_count;
	f->device_stat_count = mon->device_count;
	f->lcore_count = mon->lcore_count;
	snap->ports = room(f->port_count, sizeof(*snap->ports), &f->ports);
	snap->threads = room(f->thread_count, sizeof(*snap->threads), &f->threads);
	snap->queues = room(f->queue_count, sizeof(*snap->queues), &f->queues);
	snap->pairs = room(f->pair_count, sizeof(*snap->pairs), &f->pairs);
	snap->pools = room(f->pool_count, sizeof(*snap->pools), &f->pools);
	snap->rings = room(f->ring_count, sizeof(*snap->rings), &f->rings);
	snap->xstats = room(f->xstat_count, sizeof(*snap->xstats), &f->xstats);
	snap->devices = room(f->device_stat_count, sizeof(*snap->devices), &f->device_stats);
	snap->lcores = room(f->lcore_count, sizeof(*snap->lcores), &f->lcores);
	snap->buckets = calloc((size_t)f->pair_count + 1, RT_STAT_BUCKETS * sizeof(*snap->buckets));
	if (!snap->ports || !snap->threads || !snap->queues || !snap->pairs || !snap->pools ||
		!snap->rings || !snap->xstats || !snap->devices || !snap->lcores || !snap->buckets)
		return -ENOMEM;
	return 0;
}

static int fill(struct ringtap_monitor *mon, struct rt_snapshot *snap)
{
	const struct rt_stat_header *live = mon->stats.live;
	struct ringtap_snapshot *f = &snap->pub;
	int ret;

	f->taken_ns = rt_now_ns(CLOCK_REALTIME);
	rt_clock_sample_mono(&f->taken_tsc, &snap->mono_ns);
	f->taken_mono_ns = snap->mono_ns;
	f->tsc_hz = rt_measure_hz(mon, f->taken_tsc, snap->mono_ns);
	f->switched = rt_load_acquire(&live->switched);
	f->collectors = rt_load(&live->collectors) & RT_COLLECT_ALL;
	f->latency_every = rt_load(&live->latency_every);
	f->no_thread_polls = rt_load(&live->no_thread_polls);
	f->no_block_polls = rt_load(&live->no_block_polls);
	f->no_pair_packets = rt_load(&live->no_pair_packets);
	f->ports_beyond = rt_load(&live->ports_beyond);
	f->pools_beyond = rt_load(&live->pools_beyond);
	f->rings_beyond = mon->stats.rings ? rt_load(&live->rings_beyond) : 0;
	f->xstats_beyond = mon->stats.xstats ? rt_load(&live->xstats_beyond) : 0;
	f->device_stats_beyond = mon->stats.devices ? rt_load(&live->devices_beyond) : 0;
	/* If it is being written for long, the writer is preempted or dead: keep the old line. */
	(void)rt_clock_read(mon->stats.clock, &mon->line);
	ret = rt_owners_update(mon, f->tsc_hz);
	if (!ret)
		ret = allocate(mon, snap);
	if (ret)
		return ret;
	for (uint32_t i = 0; i < f->thread_count; i++) {
		snap->threads[i] = mon->threads[i];
		rt_thread_link(&snap->threads[i]);
	}
	read_ports(mon, snap);
	read_queues(mon, snap);
	read_pairs(mon, snap);
	read_pools(mon, snap);
	read_rings(mon, snap);
	read_xstats(mon, snap);
	read_devices(mon, snap);
	read_lcores(mon, snap);
	return read_runes(mon, snap);
}

int rt_snapshot_take(struct ringtap_monitor *mon, struct rt_snapshot **out)
{
	struct rt_snapshot *snap = calloc(1, sizeof(*snap));
	int ret = snap ? fill(mon, snap) : -ENOMEM;

	*out = snap;
	if (ret) {
		ringtap_snapshot_free(snap ? &snap->pub : NULL);
		*out = NULL;
	}
	return ret;
}

EXPORT void ringtap_snapshot_free(struct ringtap_snapshot *f)
{
	struct rt_snapshot *snap = (struct rt_snapshot *)f; /* its first member */

	if (!f)
		return;
	free(snap->ports);
	free(snap->threads);
	free(snap->queues);
	free(snap->pairs);
	free(snap->pools);
	free(snap->rings);
	free(snap->xstats);
	free(snap->devices);
	free(snap->lcores);
	free(snap->sample_runs);
	free(snap->buckets);
	free(snap->samples);
	free(snap);
}
