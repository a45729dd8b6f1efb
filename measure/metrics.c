/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "metrics.h"
#include "pools.h"

#define NONE RINGTAP_NO_INDEX

uint32_t subject_count(const struct ringtap_snapshot *f, enum rt_metric_object object)
{
	switch (object) {
	case RT_OBJECT_PORT:
	case RT_OBJECT_DRIVER: return f->port_count;
	case RT_OBJECT_QUEUE:
	case RT_OBJECT_CALLS: return f->queue_count;
	case RT_OBJECT_GAP:
	case RT_OBJECT_THREAD: return f->thread_count;
	case RT_OBJECT_POOL: return f->pool_count;
	case RT_OBJECT_RING: return f->ring_count;
	/* While they are not read their values are old ones. */
	case RT_OBJECT_XSTAT: return f->collectors & RINGTAP_XSTATS ? f->xstat_count : 0;
	case RT_OBJECT_DEVICE: return f->collectors & RINGTAP_DEVICES ? f->device_stat_count : 0;
	case RT_OBJECT_LCORE: return f->collectors & RINGTAP_BUSY ? f->lcore_count : 0;
	case RT_OBJECT_PAIR: return f->pair_count;
	default: break;
	}
	return 0;
}

static void make_port(struct subject *x, uint32_t i, bool sums)
{
	x->port = ringtap_snapshot_port(x->span->to, i);
	driver_counts(x->span, i, &x->driver);
	if (!sums)
		return;
	tally_sum(&x->calls[0], x->span, i, NONE, RINGTAP_RX);
	tally_sum(&x->calls[1], x->span, i, NONE, RINGTAP_TX);
}

void subject_make(struct subject *x, const struct span *span, enum rt_metric_object object,
	uint32_t i, bool sums)
{
	const struct ringtap_snapshot *f = span->to;

	*x = (struct subject){.span = span, .object = object, .index = i};
	switch (object) {
	case RT_OBJECT_PORT:
	case RT_OBJECT_DRIVER: make_port(x, i, sums); break;
	case RT_OBJECT_QUEUE:
	case RT_OBJECT_CALLS:
		x->queue = ringtap_snapshot_queue(f, i);
		x->port = ringtap_snapshot_port(f, x->queue->port);
		x->thread = ringtap_snapshot_thread(f, x->queue->thread);
		x->driver.ibytes = x->driver.obytes = NAN; /* the driver counts the whole port */
		tally_add(&x->calls[0], span, i);
		break;
	case RT_OBJECT_GAP: x->thread = ringtap_snapshot_thread(f, i); break;
	case RT_OBJECT_THREAD:
		x->thread = ringtap_snapshot_thread(f, i);
		if (sums)
			rates_thread(span, i, &x->rates);
		break;
	case RT_OBJECT_POOL: x->pool = ringtap_snapshot_pool(f, i); break;
	case RT_OBJECT_RING: x->ring = ringtap_snapshot_ring(f, i); break;
	case RT_OBJECT_XSTAT: x->xstat = ringtap_snapshot_xstat(f, i); break;
	case RT_OBJECT_DEVICE: x->device = ringtap_snapshot_device_stat(f, i); break;
	case RT_OBJECT_LCORE: x->lcore = ringtap_snapshot_lcore(f, i); break;
	case RT_OBJECT_PAIR:
		x->pair = ringtap_snapshot_pair(f, i);
		x->thread = ringtap_snapshot_thread(f, x->pair->thread);
		rates_latency_shown(span, i, &x->latency);
		break;
	default: break;
	}
}

bool subject_gap(struct subject *x, const struct subject *thread, uint32_t i)
{
	const struct ringtap_thread_stats *t = thread->thread;

	*x = (struct subject){.span = thread->span, .object = RT_OBJECT_GAP, .thread = t};
	for (uint32_t k = 0; k < t->gap_count; k++) {
		x->gap = ringtap_thread_gap(t, k);
		if (rates_has_gap(thread->span, x->gap) && !i--)
			return true;
	}
	x->gap = NULL;
	for (uint32_t k = 0; k < t->microburst_count; k++) {
		x->microburst = ringtap_thread_microburst(t, k);
		if (rates_has_microburst(thread->span, x->microburst) && !i--)
			return true;
	}
	return false;
}

bool subject_gone(const struct subject *x)
{
	const struct ringtap_snapshot *f = x->span->to;

	if (x->pair)
		return x->pair->rx_port == NONE ||
		       ringtap_snapshot_port(f, x->pair->rx_port)->gone ||
		       ringtap_snapshot_port(f, x->pair->tx_port)->gone;
	if (x->ring)
		return x->ring->gone;
	if (x->xstat)
		return x->xstat->gone || x->xstat->port == NONE;
	if (x->device)
		return x->device->gone;
	return x->port ? x->port->gone : x->pool ? x->pool->gone : x->thread && !x->thread->alive;
}

bool subject_wanted(const struct span *s, enum rt_metric_object object, uint32_t i)
{
	const struct ringtap_pair_stats *p;

	switch (object) {
	case RT_OBJECT_PORT:
	case RT_OBJECT_DRIVER: return span_has_port(s, i);
	case RT_OBJECT_QUEUE:
	case RT_OBJECT_CALLS: return span_has_port(s, ringtap_snapshot_queue(s->to, i)->port);
	case RT_OBJECT_GAP:
	case RT_OBJECT_THREAD: return span_has_thread(s, i);
	case RT_OBJECT_XSTAT: return span_has_port(s, ringtap_snapshot_xstat(s->to, i)->port);
	case RT_OBJECT_LCORE: return ringtap_snapshot_lcore(s->to, i)->read_ns != 0;
	case RT_OBJECT_PAIR:
		p = ringtap_snapshot_pair(s->to, i);
		return span_has_port(s, p->rx_port) || span_has_port(s, p->tx_port);
	default: return true;
	}
}

static double share(double part, double all)
{
	return all > 0 ? part / all : NAN;
}

static double known(double v)
{
	return v > 0 ? v : NAN;
}

/* Exact, by the hooks; else by the driver, if it counts them. */
static double bits(const struct tally *t, double seconds, double driver)
{
	double bytes = tally_bytes(t) / seconds;

	return 8 * (isnan(bytes) && driver > 0 ? driver : bytes);
}

static double calls_number(const struct subject *x, enum rt_metric_id id, bool tx)
{
	const struct tally *t = &x->calls[tx];
	double seconds = x->span->seconds;

	switch (id) {
	case RT_M_CALLS: return (double)t->calls;
	case RT_M_EMPTY: return (double)t->empty;
	case RT_M_PACKETS: return (double)t->packets;
	case RT_M_BYTES: return t->packets ? tally_bytes(t) : 0;
	case RT_M_CALL_RATE: return (double)t->calls / seconds;
	case RT_M_BUSY_RATE: return (double)(t->calls - t->empty) / seconds;
	case RT_M_BUSY_CALLS: return share((double)(t->calls - t->empty), (double)t->calls);
	case RT_M_PACKET_RATE: return (double)t->packets / seconds;
	case RT_M_BIT_RATE:
		return bits(
			t, seconds, (tx ? x->driver.obytes : x->driver.ibytes) / x->driver.seconds);
	case RT_M_PER_CALL: return tally_mean(t);
	case RT_M_PER_BUSY_CALL: return tally_mean_busy(t);
	case RT_M_BURST_P50: return known(tally_quantile(t, 0.5));
	case RT_M_BURST_P99: return known(tally_quantile(t, 0.99));
	case RT_M_MAX_BURST: return known(x->queue ? x->queue->max_burst : t->max_burst);
	case RT_M_BIG_CALLS: return (double)t->big_calls;
	case RT_M_BIG_PACKETS: return (double)t->big_packets;
	default: return NAN;
	}
}

static double app_number(const struct span *s, enum rt_metric_id id)
{
	switch (id) {
	case RT_M_APP_POLLS: return (double)(s->to->no_thread_polls + s->to->no_block_polls);
	case RT_M_APP_PORTS: return s->to->ports_beyond;
	case RT_M_APP_POOLS: return s->to->pools_beyond;
	case RT_M_APP_RINGS: return s->to->rings_beyond;
	case RT_M_APP_XSTATS: return s->to->collectors & RINGTAP_XSTATS ? s->to->xstats_beyond : 0;
	case RT_M_APP_DEVICES:
		return s->to->collectors & RINGTAP_DEVICES ? s->to->device_stats_beyond : 0;
	default: return RT_M_APP_INFO == id ? 1 : NAN;
	}
}

static double port_number(const struct subject *x, enum rt_metric_id id)
{
	const struct ringtap_port_stats *p = x->port;
	const struct driver_counts *d = &x->driver;

	switch (id) {
	case RT_M_PORT_ID: return p->port_id;
	case RT_M_PORT_LINK: return p->link_up;
	case RT_M_PORT_REMOVED: return p->gone;
	case RT_M_PORT_MBPS: return known(p->link_mbps);
	case RT_M_PORT_RXQ: return p->rx_queues;
	case RT_M_PORT_TXQ: return p->tx_queues;
	case RT_M_PORT_RXD: return known(p->rx_descriptors);
	case RT_M_PORT_TXD: return known(p->tx_descriptors);
	case RT_M_PORT_MTU: return p->mtu;
	case RT_M_IPACKETS: return d->ipackets / d->seconds;
	case RT_M_OPACKETS: return d->opackets / d->seconds;
	case RT_M_IBYTES: return d->ibytes / d->seconds;
	case RT_M_OBYTES: return d->obytes / d->seconds;
	case RT_M_IMISSED: return d->imissed / d->seconds;
	case RT_M_IERRORS: return d->ierrors / d->seconds;
	case RT_M_NOMBUF: return d->rx_nombuf / d->seconds;
	case RT_M_OERRORS: return d->oerrors / d->seconds;
	case RT_M_OFFERED: return d->offered / d->seconds;
	case RT_M_UNSENT: return d->unsent / d->seconds;
	case RT_M_ERRORS: return d->errors / d->seconds;
	default: return NAN;
	}
}

static double thread_number(const struct subject *x, enum rt_metric_id id)
{
	static const struct ringtap_thread_stats zero;
	const struct ringtap_thread_stats *b = x->thread, *e = &zero;
	const struct thread_rates *r = &x->rates;
	double kernel = b->read_ns ? 1 : NAN; /* unknown before the first reading */

	if (x->index < x->span->from->thread_count)
		e = ringtap_snapshot_thread(x->span->from, x->index);
	switch (id) {
	case RT_M_LCORE: return b->lcore == UINT32_MAX ? NAN : b->lcore;
	case RT_M_TID: return known(b->tid);
	case RT_M_CPU: return b->tid ? b->cpu : NAN;
	case RT_M_ALIVE: return b->alive;
	case RT_M_BUSY_CYCLES: return (double)grown(b->busy_cycles, e->busy_cycles);
	case RT_M_IDLE_CYCLES: return (double)grown(b->idle_cycles, e->idle_cycles);
	case RT_M_CPU_NS: return kernel * (double)grown(b->cpu_ns, e->cpu_ns);
	case RT_M_WAIT_NS: return kernel * (double)grown(b->wait_ns, e->wait_ns);
	case RT_M_PREEMPTIONS: return kernel * (double)grown(b->preempted, e->preempted);
	case RT_M_BUSY_PERIODS: return (double)grown(b->busy_periods, e->busy_periods);
	case RT_M_BUSY_SHARE: return r->busy;
	case RT_M_OBSERVED: return r->seen;
	case RT_M_CYCLES: return r->cycles_per_packet;
	case RT_M_THREAD_PPS: return r->packets;
	case RT_M_THREAD_POLLS: return r->polls;
	case RT_M_CPU_SHARE: return r->cpu;
	case RT_M_WAIT_SHARE: return r->wait;
	case RT_M_PREEMPTION_RATE: return r->preempted;
	case RT_M_LCORE_USAGE: return rates_lcore(x->span, b->lcore);
	case RT_M_MAX_GAP: return known(r->worst_gap_ns);
	case RT_M_MAX_IDLE_GAP: return known(r->worst_idle_gap_ns);
	case RT_M_MAX_MICROBURST: return known((double)r->largest_microburst);
	default: return NAN;
	}
}

static double pool_number(const struct ringtap_pool_stats *p, enum rt_metric_id id)
{
	double available = p->available == UINT32_MAX ? NAN : p->available,
	       used = isnan(available) ? NAN : pool_in_use(p);

	switch (id) {
	case RT_M_POOL_REMOVED: return p->gone;
	case RT_M_POOL_SIZE: return p->size;
	case RT_M_POOL_USED: return used;
	case RT_M_POOL_SHARE: return share(used, p->size);
	case RT_M_POOL_FREE: return available;
	case RT_M_POOL_CACHED: return p->in_caches;
	case RT_M_POOL_MIN: return p->lowest > p->size ? NAN : p->lowest;
	case RT_M_POOL_CACHE: return p->cache_size;
	case RT_M_POOL_OBJECT: return p->object_bytes;
	case RT_M_POOL_BUFFER: return p->buffer_bytes;
	case RT_M_POOL_PAGE: return known((double)p->page_bytes);
	case RT_M_POOL_CHUNKS: return p->chunks;
	case RT_M_POOL_SOCKET: return p->socket;
	default: return NAN;
	}
}

static double ring_number(const struct subject *x, enum rt_metric_id id)
{
	const struct ringtap_ring_stats *r = x->ring;

	switch (id) {
	case RT_M_RING_REMOVED: return r->gone;
	case RT_M_RING_CAPACITY: return r->capacity;
	case RT_M_RING_USED: return r->used;
	case RT_M_RING_SHARE: return share(r->used, r->capacity);
	case RT_M_RING_PEAK: return rates_ring_peak(x->span, x->index);
	case RT_M_RING_PEAK_SHARE: return share(rates_ring_peak(x->span, x->index), r->capacity);
	case RT_M_RING_HIGHEST: return r->highest;
	default: return NAN;
	}
}

static double xstat_number(const struct subject *x, enum rt_metric_id id)
{
	const struct ringtap_xstat_stats *s = x->xstat;
	double seconds, n = rates_xstat(x->span, x->index, &seconds);

	switch (id) {
	case RT_M_XSTAT_REMOVED: return s->gone;
	case RT_M_XSTAT_VALUE: return s->read_ns ? (double)s->value : NAN;
	case RT_M_XSTAT_RATE: return n / seconds;
	default: return NAN;
	}
}

static double pair_number(const struct subject *x, enum rt_metric_id id)
{
	const struct latency_rates *l = &x->latency;

	switch (id) {
	case RT_M_INFERRED: return x->pair->inferred;
	case RT_M_TIMED: return (double)l->count;
	case RT_M_TIMED_RATE: return (double)l->count / x->span->seconds;
	case RT_M_MEAN: return l->mean_ns;
	case RT_M_P50: return l->p50_ns;
	case RT_M_P90: return l->p90_ns;
	case RT_M_P99: return l->p99_ns;
	case RT_M_P999: return l->p999_ns;
	case RT_M_MAX: return l->max_ns;
	default: return NAN;
	}
}

static uint64_t began_ns(const struct subject *x)
{
	return x->gap ? x->gap->start_ns : x->microburst->start_ns;
}

static double gap_number(const struct subject *x, enum rt_metric_id id)
{
	const struct ringtap_gap *g = x->gap;

	switch (id) {
	case RT_M_GAP_START: return (double)began_ns(x);
	case RT_M_GAP_NS: return (double)(g ? g->ns : x->microburst->ns);
	case RT_M_GAP_PACKETS: return (double)(g ? g->packets : x->microburst->packets);
	case RT_M_GAP_OPEN: return g && g->open;
	case RT_M_GAP_QUEUE: return g && g->port != NONE ? g->queue : NAN;
	default: return NAN;
	}
}

static const char *memory_name(const struct ringtap_pool_stats *p)
{
	if (p->pinned_external || p->memory == RINGTAP_MEMORY_EXTERNAL)
		return "external";
	return p->memory == RINGTAP_MEMORY_DPDK ? "dpdk" : "unknown";
}

static const char *port_name(const struct subject *x, uint32_t port)
{
	return port == NONE ? "" : ringtap_snapshot_port(x->span->to, port)->name;
}

static const char *text_of(const struct subject *x, enum rt_metric_id id, char buf[THREAD_NAME_LEN])
{
	switch (id) {
	case RT_M_PORT_NAME:
	case RT_M_QUEUE_PORT: return x->port->name;
	case RT_M_PORT_DRIVER: return x->port->driver;
	case RT_M_QUEUE_DIRECTION: return x->queue->direction == RINGTAP_TX ? "tx" : "rx";
	case RT_M_QUEUE_THREAD:
	case RT_M_TX_THREAD:
	case RT_M_GAP_THREAD:
	case RT_M_THREAD_NAME: return thread_name(buf, x->thread);
	case RT_M_POOL_NAME: return x->pool->name;
	case RT_M_POOL_OPS: return x->pool->ops;
	case RT_M_RING_NAME: return x->ring->name;
	case RT_M_XSTAT_NAME: return x->xstat->name;
	case RT_M_XSTAT_PORT: return port_name(x, x->xstat->port);
	case RT_M_DEVICE_KIND: return device_kind(x->device);
	case RT_M_DEVICE_NAME: return x->device->device;
	case RT_M_DEVICE_PART: return device_part(buf, x->device);
	case RT_M_DEVICE_STAT: return x->device->name;
	case RT_M_POOL_MEMORY: return memory_name(x->pool);
	case RT_M_RX_PORT: return port_name(x, x->pair->rx_port);
	case RT_M_TX_PORT: return port_name(x, x->pair->tx_port);
	case RT_M_GAP_KIND:
		return !x->gap ? "microburst" : x->gap->packets ? "busy gap" : "idle gap";
	case RT_M_GAP_PORT: return x->gap ? port_name(x, x->gap->port) : "";
	default: return "";
	}
}

static void get_bars(const struct tally *t, struct metric_value *v)
{
	uint64_t classes[BURST_CLASSES], most = 0;

	tally_classes(t, classes);
	for (unsigned i = 0; i < BURST_CLASSES; i++)
		most = classes[i] > most ? classes[i] : most;
	for (unsigned i = 0; most && i < BURST_CLASSES; i++)
		v->bar[i] = (float)classes[i] / (float)most;
	v->number = tally_mean_busy(t);
}

void metric_get(const struct subject *x, enum rt_metric_id id, bool tx, struct metric_value *v)
{
	char name[THREAD_NAME_LEN];

	memset(v, 0, sizeof(*v));
	v->number = NAN;
	switch (rt_metrics[id].object) {
	case RT_OBJECT_CALLS: v->number = calls_number(x, id, tx); break;
	case RT_OBJECT_PORT:
	case RT_OBJECT_DRIVER: v->number = port_number(x, id); break;
	case RT_OBJECT_QUEUE: v->number = id == RT_M_QUEUE_NUMBER ? x->queue->queue : NAN; break;
	case RT_OBJECT_THREAD: v->number = thread_number(x, id); break;
	case RT_OBJECT_POOL: v->number = pool_number(x->pool, id); break;
	case RT_OBJECT_RING: v->number = ring_number(x, id); break;
	case RT_OBJECT_XSTAT: v->number = xstat_number(x, id); break;
	case RT_OBJECT_DEVICE: v->number = device_number(x, id); break;
	case RT_OBJECT_LCORE: v->number = lcore_number(x, id); break;
	case RT_OBJECT_PAIR: v->number = pair_number(x, id); break;
	case RT_OBJECT_GAP: v->number = gap_number(x, id); break;
	case RT_OBJECT_APP: v->number = app_number(x->span, id); break;
	default: break;
	}
	if (rt_metrics[id].unit == RT_UNIT_TEXT)
		printable(v->text, sizeof(v->text), text_of(x, id, name));
	else if (id == RT_M_BURSTS)
		get_bars(&x->calls[tx], v);
}

/* Burst sizes that occurred: {"0": 17, "32": 5}. */
static json_t *bursts_json(const struct tally *t)
{
	json_t *j = json_object();
	char key[16];

	for (unsigned n = 0; n <= RINGTAP_BURSTS; n++) {
		if (!t->burst[n])
			continue;
		snprintf(key, sizeof(key), "%u", n);
		json_object_set_new(j, key, json_count(t->burst[n]));
	}
	return j;
}

json_t *stats_port_json(const struct ringtap_snapshot *f, uint32_t port)
{
	const struct ringtap_port_stats *p;

	if (port >= f->port_count)
		return json_null();
	p = ringtap_snapshot_port(f, port);
	return json_port(p->port_id, p->name);
}

/* Ports and threads are objects. NULL: the metric is neither. */
static json_t *object_json(const struct subject *x, enum rt_metric_id id)
{
	const struct ringtap_thread_stats *t = x->thread;
	const struct ringtap_snapshot *f = x->span->to;

	switch (id) {
	case RT_M_QUEUE_PORT: return stats_port_json(f, x->queue->port);
	case RT_M_XSTAT_PORT: return stats_port_json(f, x->xstat->port);
	case RT_M_RX_PORT: return stats_port_json(f, x->pair->rx_port);
	case RT_M_TX_PORT: return stats_port_json(f, x->pair->tx_port);
	case RT_M_GAP_PORT: return x->gap ? stats_port_json(f, x->gap->port) : json_null();
	case RT_M_QUEUE_THREAD:
	case RT_M_TX_THREAD: return json_thread(t->lcore, t->name, t->tid);
	case RT_M_THREAD_NAME: return json_text(t->name[0] ? t->name : NULL);
	default: return NULL;
	}
}

static json_t *value_json(const struct subject *x, enum rt_metric_id id, bool tx)
{
	enum rt_unit unit = rt_metrics[id].unit;
	json_t *object = object_json(x, id);
	char name[THREAD_NAME_LEN];
	struct metric_value v;

	if (object)
		return object;
	metric_get(x, id, tx, &v);
	if (unit == RT_UNIT_TEXT) /* not v.text: JSON holds any character */
		return v.text[0] ? json_text(text_of(x, id, name)) : json_null();
	if (unit == RT_UNIT_BARS)
		return bursts_json(&x->calls[tx]);
	/* These need more digits than a double has. */
	if (unit == RT_UNIT_CLOCK)
		return json_time(began_ns(x));
	if (id == RT_M_XSTAT_VALUE)
		return x->xstat->read_ns ? json_count(x->xstat->value) : json_null();
	if (id == RT_M_DEVICE_VALUE)
		return x->device->read_ns ? json_count(x->device->value) : json_null();
	if (!isfinite(v.number)) /* JSON has no NAN */
		return json_null();
	if (unit == RT_UNIT_NS)
		return json_ns(v.number);
	if (unit == RT_UNIT_BOOL)
		return json_boolean(v.number > 0);
	if (unit == RT_UNIT_RATE || unit == RT_UNIT_SHARE || unit == RT_UNIT_MEAN || v.number < 0 ||
		floor(v.number) < v.number)
		return json_real(v.number);
	return json_count((uint64_t)v.number);
}

void metrics_json(json_t *j, const struct subject *x, enum rt_metric_object object, bool tx)
{
	for (enum rt_metric_id id = 0; id < RT_M_COUNT; id++)
		if (rt_metrics[id].object == object && rt_metrics[id].key)
			json_object_set_new(j, rt_metrics[id].key, value_json(x, id, tx));
}
