/* SPDX-License-Identifier: BSD-3-Clause */
/* The statistics as telemetry data: lists of dictionaries. An answer of rte_telemetry is 16 KiB
 * at most, so histograms come only with a single port. Names are values, as not all characters
 * of a port's name may be part of a key. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>

#include "probe/dpdk/compat.h"
#include "telemetry.h"

#define GAPS_SHOWN 8
#define LIST_BYTES (15u << 10) /* leaves room for what surrounds the list */

/* The entry under construction; control lock held. */
static size_t entry_bytes;
static struct rte_tel_data *entry_nested;

static void count_entry(const char *name, size_t value_bytes)
{
	entry_bytes += strlen(name) + value_bytes + sizeof("\"\": , ") - 1;
}

void rt_telemetry_uint(struct rte_tel_data *d, const char *name, uint64_t v)
{
	rt_compat_tel_uint(d, name, v);
	count_entry(name, (size_t)snprintf(NULL, 0, "%" PRIu64, v));
}

void rt_telemetry_int(struct rte_tel_data *d, const char *name, int v)
{
	rte_tel_data_add_dict_int(d, name, v);
	count_entry(name, (size_t)snprintf(NULL, 0, "%d", v));
}

void rt_telemetry_string(struct rte_tel_data *d, const char *name, const char *v)
{
	rte_tel_data_add_dict_string(d, name, v);
	count_entry(name, 2 * strlen(v) + 2); /* every character may need escaping */
}

struct rte_tel_data *rt_telemetry_dict(void)
{
	struct rte_tel_data *d = rte_tel_data_alloc();

	if (d)
		rte_tel_data_start_dict(d);
	return d;
}

void rt_telemetry_add(struct rt_tel_list *list, struct rte_tel_data *d)
{
	size_t bytes = entry_bytes;
	char name[16];

	snprintf(name, sizeof(name), "%u", list->count);
	bytes += strlen(name) + sizeof("\"\": {}, ") - 1;
	if (list->bytes + bytes > LIST_BYTES ||
		rte_tel_data_add_dict_container(list->dict, name, d, 0)) {
		rte_tel_data_free(entry_nested); /* d does not free it */
		rte_tel_data_free(d);
		list->omitted++;
	} else {
		list->count++;
		list->bytes += bytes;
	}
	entry_bytes = 0;
	entry_nested = NULL;
}

static void add_under(struct rte_tel_data *dict, const char *name, struct rte_tel_data *d)
{
	if (rte_tel_data_add_dict_container(dict, name, d, 0))
		rte_tel_data_free(d);
	else
		entry_nested = d;
	count_entry(name, 2);
}

static bool port_matches(const struct rt_stat_port *p, const char *port)
{
	return !port || (p->state == RT_IF_PRESENT && p->port_id == strtoul(port, NULL, 10));
}

static uint64_t to_ns(const struct rt_stats *f, uint64_t cycles)
{
	return (uint64_t)((unsigned __int128)cycles * 1000000000 / f->header->tsc_hz);
}

static uint32_t within(uint32_t count, uint32_t table)
{
	return RTE_MIN(count, table);
}

void rt_telemetry_ports(struct rt_stats *f, const char *port, struct rt_tel_list *out)
{
	for (uint32_t i = 0; i < within(f->header->port_count, RT_STAT_PORTS); i++) {
		const struct rt_stat_port *p = &f->ports[i];
		struct rte_tel_data *d = port_matches(p, port) && p->state == RT_IF_PRESENT
						 ? rt_telemetry_dict()
						 : NULL;

		if (!d)
			continue;
		rt_telemetry_string(d, KEY(PORT_NAME), p->name);
		rt_telemetry_string(d, KEY(PORT_DRIVER), p->driver);
		rt_telemetry_uint(d, KEY(PORT_ID), p->port_id);
		rt_telemetry_uint(d, KEY(PORT_LINK), p->link_up);
		rt_telemetry_uint(d, KEY(PORT_MBPS), p->link_mbps);
		rt_telemetry_uint(d, KEY(PORT_RXQ), p->nb_rx_queues);
		rt_telemetry_uint(d, KEY(PORT_TXQ), p->nb_tx_queues);
		rt_telemetry_uint(d, KEY(PORT_RXD), p->nb_rxd);
		rt_telemetry_uint(d, KEY(PORT_TXD), p->nb_txd);
		rt_telemetry_uint(d, KEY(PORT_MTU), p->mtu);
		rt_telemetry_uint(d, KEY(IPACKETS), p->ipackets);
		rt_telemetry_uint(d, KEY(OPACKETS), p->opackets);
		rt_telemetry_uint(d, KEY(IBYTES), p->ibytes);
		rt_telemetry_uint(d, KEY(OBYTES), p->obytes);
		rt_telemetry_uint(d, KEY(IMISSED), p->imissed);
		rt_telemetry_uint(d, KEY(IERRORS), p->ierrors);
		rt_telemetry_uint(d, KEY(NOMBUF), p->rx_nombuf);
		rt_telemetry_uint(d, KEY(OERRORS), p->oerrors);
		rt_telemetry_add(out, d);
	}
}

/* The longest of all windows that are still kept, longest first. */
static void show_gaps(struct rt_stats *f, const struct rt_stat_thread *t, struct rte_tel_data *d)
{
	struct rte_tel_data *list = rte_tel_data_alloc();
	uint64_t below = UINT64_MAX;

	if (!list)
		return;
	rte_tel_data_start_array(list, RT_COMPAT_TEL_UINT);
	for (int n = 0; n < GAPS_SHOWN; n++) {
		uint64_t longest = 0;

		for (int i = 0; i < RT_STAT_WINDOWS * RT_STAT_WORST; i++) {
			const struct rt_stat_window *w = &t->window[i / RT_STAT_WORST];
			uint64_t cycles = rt_load(&w->gap[i % RT_STAT_WORST].cycles);

			if (cycles < below && cycles > longest)
				longest = cycles;
		}
		if (!longest)
			break;
		rt_compat_tel_array_uint(list, to_ns(f, longest));
		count_entry("", (size_t)snprintf(NULL, 0, "%" PRIu64, to_ns(f, longest)));
		below = longest;
	}
	add_under(d, "longest_polling_gaps_ns", list);
}

static void show_work(struct rt_stats *f, const struct rt_stat_thread *t, struct rte_tel_data *d)
{
	uint64_t busy, idle, since, now = rt_tsc();

	/* See rt_stat_thread in stats.h; give up on a thread that changes state all the time. */
	for (int i = 0; i < 100; i++) {
		since = rt_load_acquire(&t->since_tsc);
		busy = rt_load_acquire(&t->busy_cycles);
		idle = rt_load_acquire(&t->idle_cycles);
		if (since && now > since)
			*(rt_load_acquire(&t->is_busy) ? &busy : &idle) += now - since;
		if (since == rt_load(&t->since_tsc))
			break;
	}
	rt_telemetry_uint(d, KEY(BUSY_CYCLES), busy);
	rt_telemetry_uint(d, KEY(IDLE_CYCLES), idle);
	rt_telemetry_uint(d, "busy_percent", busy + idle ? busy * 100 / (busy + idle) : 0);
	rt_telemetry_uint(d, KEY(BUSY_PERIODS), rt_load(&t->busy_periods));
}

void rt_telemetry_threads(struct rt_stats *f, const char *port, struct rt_tel_list *out)
{
	for (unsigned i = 0; i < f->threads_ready; i++) {
		const struct rt_stat_thread *t = &f->threads[i];
		struct rte_tel_data *d =
			rt_load_acquire(&t->generation) ? rt_telemetry_dict() : NULL;

		if (!d)
			continue;
		rt_telemetry_uint(d, "thread_index", i);
		rt_telemetry_string(d, KEY(THREAD_NAME), t->name);
		rt_telemetry_int(d, KEY(LCORE), (int)t->lcore);
		rt_telemetry_uint(d, KEY(TID), t->tid);
		rt_telemetry_uint(d, KEY(CPU), t->cpu);
		rt_telemetry_uint(d, KEY(ALIVE), t->alive);
		rt_telemetry_uint(d, KEY(CPU_NS), t->cpu_ns);
		rt_telemetry_uint(d, KEY(WAIT_NS), t->wait_ns);
		rt_telemetry_uint(d, KEY(PREEMPTIONS), t->preempted);
		show_work(f, t, d);
		show_gaps(f, t, d);
		rt_telemetry_add(out, d);
	}
}

static void show_bursts(const struct rt_stat_hook *b, struct rte_tel_data *d)
{
	struct rte_tel_data *sizes = rt_telemetry_dict();
	char name[16];

	if (!sizes)
		return;
	/* A dictionary holds 256 entries; further ones are refused. */
	for (unsigned n = 0; n <= RT_STAT_BURSTS; n++) {
		snprintf(name, sizeof(name), "%u", n);
		if (rt_load(&b->burst[n]))
			rt_telemetry_uint(sizes, name, rt_load(&b->burst[n]));
	}
	add_under(d, KEY(BURSTS), sizes);
}

static void show_queue(
	struct rt_stats *f, const struct rt_stat_hook *b, bool whole, struct rt_tel_list *out)
{
	uint64_t polls = rt_load(&b->big_polls), packets = rt_load(&b->big_packets), empty;
	struct rte_tel_data *d = rt_telemetry_dict();

	if (!d)
		return;
	empty = rt_load(&b->burst[0]);
	polls += empty;
	for (unsigned n = 1; n <= RT_STAT_BURSTS; n++) {
		uint64_t calls = rt_load(&b->burst[n]);

		polls += calls;
		packets += n * calls;
	}
	rt_telemetry_string(d, KEY(QUEUE_PORT), f->ports[b->port_index].name);
	rt_telemetry_uint(d, KEY(QUEUE_NUMBER), b->queue);
	rt_telemetry_string(d, KEY(QUEUE_DIRECTION), b->direction == RT_DIR_RX ? "rx" : "tx");
	rt_telemetry_uint(d, "thread_index", b->thread);
	rt_telemetry_uint(d, KEY(CALLS), polls);
	rt_telemetry_uint(d, KEY(EMPTY), empty);
	rt_telemetry_uint(d, KEY(PACKETS), packets);
	rt_telemetry_uint(d, KEY(MAX_BURST), rt_load(&b->max_burst));
	if (whole)
		show_bursts(b, d);
	rt_telemetry_add(out, d);
}

void rt_telemetry_polling(struct rt_stats *f, const char *port, struct rt_tel_list *out)
{
	for (uint32_t i = 0; i < within(f->header->hook_count, RT_STAT_HOOKS); i++) {
		const struct rt_stat_hook *b = &f->hooks[i];

		if (rt_load_acquire(&b->generation) && port_matches(&f->ports[b->port_index], port))
			show_queue(f, b, port != NULL, out);
	}
}

uint64_t rt_telemetry_quantile(const uint64_t *bucket, uint64_t count, unsigned share)
{
	uint64_t rank = (uint64_t)(((unsigned __int128)count * share + 9999) / 10000);
	uint64_t seen = 0, width;

	for (uint32_t i = 0; i < RT_STAT_BUCKETS; i++) {
		seen += bucket[i];
		if (seen && seen >= rank)
			return rt_stat_bucket_low(i, &width) + width / 2;
	}
	return 0;
}

struct pair_sum {
	uint64_t count, sum, min, max, unstamped, shared;
	uint64_t bucket[RT_STAT_BUCKETS];
};

static bool same_pair(const struct rt_stat_pair *a, const struct rt_stat_pair *b)
{
	return a->rx_index == b->rx_index && a->tx_index == b->tx_index &&
	       a->inferred == b->inferred;
}

/* The sum over all threads. */
static void sum_pairs(struct rt_stats *f, uint32_t n, uint32_t first, struct pair_sum *s)
{
	memset(s, 0, sizeof(*s));
	s->min = UINT64_MAX;
	for (uint32_t i = first; i < n; i++) {
		const struct rt_stat_pair *p = &f->pairs[i];

		if (!rt_load_acquire(&p->generation) || !same_pair(p, &f->pairs[first]))
			continue;
		s->sum += rt_load(&p->sum);
		s->min = RTE_MIN(s->min, rt_load(&p->min));
		s->max = RTE_MAX(s->max, rt_load(&p->max));
		s->unstamped += rt_load(&p->unstamped);
		s->shared += rt_load(&p->shared);
		for (uint32_t b = 0; b < RT_STAT_BUCKETS; b++) {
			uint64_t c = rt_load(&p->bucket[b]);

			s->bucket[b] += c;
			s->count += c;
		}
	}
}

static void show_pair(struct rt_stats *f, const struct rt_stat_pair *p, const struct pair_sum *s,
	struct rt_tel_list *out)
{
	const struct {
		const char *name;
		unsigned share;
	} quantiles[] = {{KEY(P50), 5000}, {KEY(P90), 9000}, {KEY(P99), 9900}, {KEY(P999), 9990}};
	bool timed = p->rx_index < RT_STAT_PORTS;
	struct rte_tel_data *d = rt_telemetry_dict();

	if (!d)
		return;
	rt_telemetry_string(d, KEY(RX_PORT), timed ? f->ports[p->rx_index].name : "");
	rt_telemetry_string(d, KEY(TX_PORT), f->ports[p->tx_index].name);
	if (timed && s->count) {
		rt_telemetry_uint(d, KEY(INFERRED), p->inferred);
		rt_telemetry_uint(d, KEY(TIMED), s->count);
		rt_telemetry_uint(d, "min_ns", to_ns(f, s->min));
		rt_telemetry_uint(d, KEY(MEAN), to_ns(f, s->sum / s->count));
		for (size_t i = 0; i < RTE_DIM(quantiles); i++)
			rt_telemetry_uint(d, quantiles[i].name,
				to_ns(f, rt_telemetry_quantile(
						 s->bucket, s->count, quantiles[i].share)));
		rt_telemetry_uint(d, KEY(MAX), to_ns(f, s->max));
	} else {
		rt_telemetry_uint(d, "unstamped", s->unstamped);
		rt_telemetry_uint(d, "shared", s->shared);
	}
	rt_telemetry_add(out, d);
}

void rt_telemetry_latency(struct rt_stats *f, const char *port, struct rt_tel_list *out)
{
	static struct pair_sum sum; /* control lock held */
	uint32_t n = within(f->header->pair_count, RT_STAT_PAIRS);

	for (uint32_t i = 0; i < n; i++) {
		const struct rt_stat_pair *p = &f->pairs[i];
		bool first = rt_load_acquire(&p->generation) != 0;

		for (uint32_t k = 0; k < i && first; k++)
			first = !(f->pairs[k].generation && same_pair(&f->pairs[k], p));
		if (!first || (port && (p->rx_index >= RT_STAT_PORTS ||
					       !port_matches(&f->ports[p->rx_index], port))))
			continue;
		sum_pairs(f, n, i, &sum);
		show_pair(f, p, &sum, out);
	}
}
