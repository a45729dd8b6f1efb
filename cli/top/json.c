/* SPDX-License-Identifier: BSD-3-Clause */
/* All statistics of an interval as one JSON document; docs/statistics.md says what they mean. */
#include <math.h>

#include "cli/monitor/collectors.h"
#include "base/json.h"
#include "top.h"
#include "base/util.h"

#define ALL RINGTAP_NO_INDEX

static void set(json_t *j, const char *key, json_t *value)
{
	json_object_set_new(j, key, value);
}

/* JSON knows no NAN. */
static void number(json_t *j, const char *key, double v)
{
	set(j, key, isfinite(v) ? json_real(v) : json_null());
}

static void count(json_t *j, const char *key, uint64_t v)
{
	set(j, key, json_count(v));
}

static void text(json_t *j, const char *key, const char *v)
{
	set(j, key, json_text(v));
}

/* Burst sizes that occurred: {"0": 17, "32": 5}. */
static json_t *bursts(const struct tally *t)
{
	json_t *j = json_object();
	char key[16];

	for (unsigned n = 0; n <= RINGTAP_BURSTS; n++) {
		if (!t->burst[n])
			continue;
		snprintf(key, sizeof(key), "%u", n);
		count(j, key, t->burst[n]);
	}
	return j;
}

/* Of RX: polls. Of TX: calls with what they handed over. */
static json_t *tally_json(const struct tally *t, double seconds)
{
	double bytes = t->packets ? tally_bytes(t) : 0;
	json_t *j = json_object();

	count(j, "calls", t->calls);
	count(j, "empty_calls", t->empty);
	count(j, "packets", t->packets);
	set(j, "bytes", isnan(bytes) ? json_null() : json_count((uint64_t)bytes));
	number(j, "calls_per_second", (double)t->calls / seconds);
	number(j, "busy_calls_per_second", (double)(t->calls - t->empty) / seconds);
	number(j, "packets_per_second", (double)t->packets / seconds);
	number(j, "bits_per_second", 8 * bytes / seconds);
	number(j, "packets_per_call", tally_mean(t));
	number(j, "packets_per_busy_call", tally_mean_busy(t));
	count(j, "burst_p50", tally_quantile(t, 0.5));
	count(j, "burst_p99", tally_quantile(t, 0.99));
	count(j, "max_burst", t->max_burst);
	count(j, "calls_beyond_histogram", t->big_calls);
	count(j, "packets_beyond_histogram", t->big_packets);
	set(j, "bursts", bursts(t));
	return j;
}

static json_t *driver_json(const struct watched *a, uint32_t port)
{
	struct driver_rates d;
	json_t *j = json_object();

	rates_driver(a, port, &d);
	number(j, "ipackets", d.ipackets);
	number(j, "opackets", d.opackets);
	number(j, "ibytes", d.ibytes);
	number(j, "obytes", d.obytes);
	number(j, "imissed", d.imissed);
	number(j, "ierrors", d.ierrors);
	number(j, "rx_nombuf", d.rx_nombuf);
	number(j, "oerrors", d.oerrors);
	number(j, "handed", d.handed);
	number(j, "unsent", d.unsent);
	return j;
}

static json_t *port_json(const struct watched *a, const struct span *s, uint32_t i)
{
	const struct ringtap_port_stats *p = ringtap_snapshot_port(s->to, i);
	json_t *j = json_object();
	struct tally t;

	count(j, "port", p->port_id);
	text(j, "name", p->name);
	text(j, "driver", p->driver);
	set(j, "link_up", json_boolean(p->link_up));
	set(j, "gone", json_boolean(p->gone));
	count(j, "link_mbps", p->link_mbps);
	count(j, "rx_queues", p->rx_queues);
	count(j, "tx_queues", p->tx_queues);
	tally_sum(&t, s, i, ALL, RINGTAP_RX);
	set(j, "rx", tally_json(&t, s->seconds));
	tally_sum(&t, s, i, ALL, RINGTAP_TX);
	set(j, "tx", tally_json(&t, s->seconds));
	set(j, "driver_per_second", driver_json(a, i));
	return j;
}

static json_t *queue_json(const struct span *s, uint32_t i)
{
	const struct ringtap_queue_stats *q = ringtap_snapshot_queue(s->to, i);
	char name[THREAD_NAME_LEN];
	struct tally t = {0};
	json_t *j;

	tally_add(&t, s, i);
	j = tally_json(&t, s->seconds);
	text(j, "port", ringtap_snapshot_port(s->to, q->port)->name);
	count(j, "queue", q->queue);
	text(j, "direction", q->direction == RINGTAP_TX ? "tx" : "rx");
	text(j, "thread", thread_name(name, ringtap_snapshot_thread(s->to, q->thread)));
	return j;
}

static json_t *gap_json(const struct span *s, const struct ringtap_gap *g)
{
	json_t *j = json_object();

	count(j, "start_ns", g->start_ns);
	count(j, "ns", g->ns);
	count(j, "packets", g->packets);
	text(j, "port", g->port == ALL ? NULL : ringtap_snapshot_port(s->to, g->port)->name);
	count(j, "queue", g->queue);
	return j;
}

static json_t *microburst_json(const struct ringtap_microburst *m)
{
	json_t *j = json_object();

	count(j, "start_ns", m->start_ns);
	count(j, "ns", m->ns);
	count(j, "packets", m->packets);
	return j;
}

/* Those that began within the interval. */
static void worst_json(json_t *j, const struct span *s, const struct ringtap_thread_stats *t)
{
	json_t *gaps = json_array(), *microbursts = json_array();

	for (uint32_t i = 0; i < t->gap_count; i++)
		if (ringtap_thread_gap(t, i)->start_ns >= s->from->taken_ns)
			json_array_append_new(gaps, gap_json(s, ringtap_thread_gap(t, i)));
	for (uint32_t i = 0; i < t->microburst_count; i++)
		if (ringtap_thread_microburst(t, i)->start_ns >= s->from->taken_ns)
			json_array_append_new(
				microbursts, microburst_json(ringtap_thread_microburst(t, i)));
	set(j, "gaps", gaps);
	set(j, "microbursts", microbursts);
}

static json_t *thread_json(const struct watched *a, const struct span *s, uint32_t i)
{
	const struct ringtap_thread_stats *t = ringtap_snapshot_thread(s->to, i);
	char name[THREAD_NAME_LEN];
	struct thread_rates r;
	json_t *j = json_object();

	rates_thread(a, s, i, &r);
	text(j, "name", thread_name(name, t));
	set(j, "lcore", t->lcore == UINT32_MAX ? json_null() : json_count(t->lcore));
	count(j, "tid", t->tid);
	count(j, "cpu", t->cpu);
	set(j, "alive", json_boolean(t->alive));
	number(j, "busy_share", r.busy);
	number(j, "seen_share", r.seen);
	number(j, "cycles_per_packet", r.cycles_per_packet);
	number(j, "packets_per_second", r.packets);
	number(j, "polls_per_second", r.polls);
	number(j, "cpu_share", r.cpu);
	number(j, "wait_share", r.wait);
	number(j, "preempted_per_second", r.preempted);
	worst_json(j, s, t);
	return j;
}

static json_t *pool_json(const struct ringtap_pool_stats *p)
{
	json_t *j = json_object();

	text(j, "name", p->name);
	text(j, "ops", p->ops);
	set(j, "gone", json_boolean(p->gone));
	count(j, "size", p->size);
	count(j, "in_use", p->available < p->size ? p->size - p->available : 0);
	count(j, "available", p->available);
	count(j, "in_caches", p->in_caches);
	count(j, "lowest", p->lowest);
	count(j, "cache_size", p->cache_size);
	count(j, "object_bytes", p->object_bytes);
	count(j, "page_bytes", p->page_bytes);
	return j;
}

static json_t *latency_json(const struct watched *a, const struct span *s, uint32_t i)
{
	const struct ringtap_pair_stats *p = ringtap_snapshot_pair(s->to, i);
	char name[THREAD_NAME_LEN];
	struct latency_rates l;
	json_t *j = json_object();

	rates_latency(a, s, i, &l);
	text(j, "rx_port",
		p->rx_port == ALL ? NULL : ringtap_snapshot_port(s->to, p->rx_port)->name);
	text(j, "tx_port", ringtap_snapshot_port(s->to, p->tx_port)->name);
	text(j, "thread", thread_name(name, ringtap_snapshot_thread(s->to, p->thread)));
	json_object_set_new(j, "inferred", json_boolean(p->inferred));
	count(j, "count", l.count);
	number(j, "mean_ns", l.mean_ns);
	number(j, "p50_ns", l.p50_ns);
	number(j, "p90_ns", l.p90_ns);
	number(j, "p99_ns", l.p99_ns);
	number(j, "p999_ns", l.p999_ns);
	number(j, "max_ns", l.max_ns);
	return j;
}

#define FILL(key, total, make)                              \
	do {                                                \
		json_t *array = json_array();               \
		for (uint32_t i = 0; i < (total); i++)      \
			json_array_append_new(array, make); \
		set(j, key, array);                         \
	} while (0)

static void stats_json(json_t *j, const struct watched *a, const struct span *s)
{
	number(j, "interval_s", s->seconds);
	set(j, "instruments", collectors_json(s->to->collectors));
	count(j, "uncounted_polls", s->to->no_thread_polls + s->to->no_block_polls);
	count(j, "uncounted_ports", s->to->ports_beyond);
	count(j, "uncounted_pools", s->to->pools_beyond);
	FILL("ports", s->to->port_count, port_json(a, s, i));
	FILL("queues", s->to->queue_count, queue_json(s, i));
	FILL("threads", s->to->thread_count, thread_json(a, s, i));
	FILL("pools", s->to->pool_count, pool_json(ringtap_snapshot_pool(s->to, i)));
	FILL("latency", s->to->pair_count, latency_json(a, s, i));
}

static json_t *app_json(const struct watched *a)
{
	json_t *j = json_object();
	struct span s;

	text(j, "name", a->name);
	text(j, "dir", a->dir);
	set(j, "error", a->error ? json_text(a->why) : json_null());
	set(j, "ended", json_boolean(a->ended));
	if (!a->now)
		return j;
	count(j, "pid", a->info.pid);
	text(j, "program", a->info.program);
	text(j, "dpdk", a->info.dpdk);
	text(j, "probe", a->info.probe);
	/* One that has just come has no interval yet. */
	if (span_of(a, &s))
		stats_json(j, a, &s);
	return j;
}

json_t *top_json(const struct watch *w)
{
	json_t *j = json_object(), *apps = json_array();

	count(j, "time_ns", now_ns(CLOCK_REALTIME));
	for (size_t i = 0; i < w->count; i++)
		json_array_append_new(apps, app_json(w->list[i]));
	set(j, "applications", apps);
	return j;
}
