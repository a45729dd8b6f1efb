/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "base/json.h"
#include "report.h"

#define SET(j, key, value) json_object_set_new((j), (key), (value))

static json_t *json_counters(const struct counters *c)
{
	json_t *j = json_object();

	SET(j, "rx_calls", json_count(rx_bursts(c)));
	SET(j, "rx_busy_calls", json_count(c->rx_nonzero));
	SET(j, "rx_packets", json_count(c->rx_packets));
	SET(j, "rx_packets_per_call", json_real(ratio(c->rx_packets, rx_bursts(c))));
	SET(j, "rx_packets_per_busy_call", json_real(ratio(c->rx_packets, c->rx_nonzero)));
	if (c->rx_ticks)
		SET(j, "rx_ns_per_packet", json_real(ns_of(ratio(c->rx_ticks, c->rx_packets))));
	SET(j, "tx_packets", json_count(c->tx_packets));
	SET(j, "tx_dropped", json_count(c->tx_dropped));
	SET(j, "tx_retried", json_count(c->tx_retried));
	SET(j, "tx_errors", json_count(c->tx_errors));
	SET(j, "tx_unsent", json_count(c->tx_unsent));
	SET(j, "tx_refused", json_count(c->tx_refused));
	SET(j, "tx_nombuf", json_count(c->tx_nombuf));
	SET(j, "tx_expired", json_count(c->tx_expired));
	return j;
}

static json_t *json_values(const struct histogram *h, double (*convert)(double))
{
	static const struct {
		const char *name;
		double percent;
	} points[] = {{"p50", 50}, {"p90", 90}, {"p99", 99}, {"p999", 99.9}};
	json_t *j = json_object();

	SET(j, "min", json_real(convert((double)h->min)));
	SET(j, "mean", json_real(convert(histogram_mean(h))));
	for (size_t i = 0; i < sizeof(points) / sizeof(points[0]); i++)
		SET(j, points[i].name,
			json_real(convert(histogram_percentile(h, points[i].percent))));
	SET(j, "max", json_real(convert((double)h->max)));
	return j;
}

static double same(double ticks)
{
	return ticks;
}

static json_t *json_histogram(const struct histogram *h)
{
	json_t *j = json_object();

	SET(j, "packets", json_count(h->count));
	SET(j, "cycles", json_values(h, same));
	SET(j, "ns", json_values(h, ns_of));
	return j;
}

static json_t *json_sequence(const struct sequence *q)
{
	json_t *j = json_object();

	SET(j, "first", json_count(q->first));
	SET(j, "next", json_count(q->next));
	SET(j, "received", json_count(q->received));
	SET(j, "unique", json_count(q->unique));
	SET(j, "lost", json_count(sequence_lost(q)));
	SET(j, "duplicated", json_count(q->duplicated));
	SET(j, "reordered", json_count(q->reordered));
	SET(j, "reorder_extent", json_count(q->extent));
	SET(j, "stale", json_count(q->stale));
	return j;
}

static json_t *json_streams(const struct sink *s)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < STAMP_STREAMS; i++) {
		json_t *j;

		if (!s->streams[i] || !s->streams[i]->received)
			continue;
		j = json_sequence(s->streams[i]);
		SET(j, "stream", json_count(i));
		json_array_append_new(list, j);
	}
	return list;
}

static void set_kind(json_t *j, const struct role *r)
{
	struct sequence sum;

	if (r->generator) {
		SET(j, "stream", json_count(r->generator->stream));
		SET(j, "max_backlog", json_count(r->generator->max_backlog));
		if (r->config->timing)
			SET(j, "late", json_histogram(&r->generator->late));
	}
	if (r->generator && r->from) {
		SET(j, "replies", json_sequence(&r->generator->replies));
		SET(j, "timeouts", json_count(r->generator->timeouts));
		SET(j, "round_trip", json_histogram(&r->generator->rtt));
	}
	if (r->latency) {
		SET(j, "latency", json_histogram(&r->latency->rx_to_tx));
		SET(j, "time_per_packet", json_histogram(&r->latency->per_packet));
		SET(j, "overhead_cycles", json_count(r->latency->overhead));
	}
	if (r->sink) {
		sink_total(r->sink, &sum);
		SET(j, "sequence", json_sequence(&sum));
		SET(j, "streams", json_streams(r->sink));
		SET(j, "unstamped", json_count(r->sink->unstamped));
	}
	if (r->samples) {
		SET(j, "samples", json_count(r->samples->count));
		SET(j, "samples_lost", json_count(r->samples->lost));
	}
}

static json_t *json_role(struct app *a, struct role *r)
{
	json_t *j = json_object(), *stages = json_array();
	char text[ROLE_TEXT];
	struct counters sum;

	role_total(r, &sum);
	SET(j, "role", json_text(role_names[r->kind]));
	SET(j, "description", json_text(role_text(r, text)));
	SET(j, "from", json_text(r->from ? r->from->name : NULL));
	SET(j, "to", json_text(r->to ? r->to->name : NULL));
	SET(j, "cpu", json_integer(r->cpu));
	SET(j, "total", json_counters(&sum));
	if (r->to && r->to->error)
		SET(j, "tx_error", json_text(strerror(r->to->error)));
	for (unsigned i = 0; i < a->config->stage_count; i++) {
		json_t *s;

		role_read(r, i, &sum);
		s = json_counters(&sum);
		if (r->generator)
			SET(s, "achieved_rate_pps", json_real(stage_rate(r, i)));
		json_array_append_new(stages, s);
	}
	SET(j, "stages", stages);
	set_kind(j, r);
	return j;
}

static json_t *port_json(uint16_t id)
{
	json_t *j = json_object();
	char name[RTE_ETH_NAME_MAX_LEN] = "";
	struct rte_eth_dev_info info = {0};
	struct rte_eth_stats s = {0};

	rte_eth_dev_get_name_by_port(id, name);
	rte_eth_dev_info_get(id, &info);
	rte_eth_stats_get(id, &s);
	SET(j, "port", json_count(id));
	SET(j, "name", json_text(name));
	SET(j, "driver", json_text(info.driver_name));
	SET(j, "ipackets", json_count(s.ipackets));
	SET(j, "opackets", json_count(s.opackets));
	SET(j, "imissed", json_count(s.imissed));
	SET(j, "rx_nombuf", json_count(s.rx_nombuf));
	SET(j, "ierrors", json_count(s.ierrors));
	SET(j, "oerrors", json_count(s.oerrors));
	return j;
}

/* imissed: packets that the kernel dropped because the socket was full. */
static json_t *json_socket(const struct app *a, struct link *l)
{
	json_t *j = json_object();

	SET(j, "name", json_text(l->name));
	SET(j, "driver", json_text(plane_names[a->config->plane]));
	SET(j, "imissed", json_count(plane_ops(a->config->plane)->missed(l)));
	return j;
}

static json_t *json_ports(const struct app *a)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < a->ports.count; i++)
		json_array_append_new(list, port_json(a->ports.ids[i]));
	for (unsigned i = 0; a->config->plane != PLANE_DPDK && i < a->role_count; i++)
		if (a->roles[i]->from)
			json_array_append_new(list, json_socket(a, a->roles[i]->from));
	return list;
}

static json_t *json_memory(const struct app *a)
{
	const struct memory *m = &a->ports.memory;
	json_t *j;

	if (a->config->plane != PLANE_DPDK)
		return json_null();
	j = json_object();
	SET(j, "kind", json_text(memory_names[m->kind]));
	SET(j, "order", json_text(order_names[m->order]));
	SET(j, "pool_ops", json_text(rte_mempool_get_ops(m->pool->ops_index)->name));
	SET(j, "buffers", json_count(m->pool->populated_size));
	SET(j, "available", json_count(rte_mempool_avail_count(m->pool)));
	SET(j, "cache_size", json_count(m->pool->cache_size));
	SET(j, "buffer_bytes", json_count(a->config->buffer_size));
	SET(j, "stride_bytes", json_count(m->stride));
	SET(j, "base", json_count((uintptr_t)m->base));
	SET(j, "bytes", json_count(m->bytes));
	SET(j, "page_bytes", json_count(m->page_size));
	SET(j, "iova", json_text(rte_eal_iova_mode() == RTE_IOVA_PA ? "pa" : "va"));
	SET(j, "smaps",
		json_pack("{s:I,s:I,s:I,s:I,s:I}", "page_kb", (json_int_t)m->smaps.page_kb,
			"size_kb", (json_int_t)m->smaps.size_kb, "rss_kb",
			(json_int_t)m->smaps.rss_kb, "anon_huge_kb",
			(json_int_t)m->smaps.anon_huge_kb, "hugetlb_kb",
			(json_int_t)m->smaps.hugetlb_kb));
	return j;
}

static json_t *json_seconds(const struct app *a)
{
	json_t *list = json_array();

	for (size_t i = 0; i < a->second_count; i++) {
		json_t *j = json_counters(&a->seconds[i].counters);

		SET(j, "time_s", json_real(a->seconds[i].at));
		SET(j, "interval_s", json_real(a->seconds[i].seconds));
		SET(j, "role", json_count(a->seconds[i].role));
		json_array_append_new(list, j);
	}
	return list;
}

/* The CPU time shows whether other tasks ran on the CPUs of the threads. */
static json_t *json_threads(const struct app *a)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < a->worker_count; i++)
		json_array_append_new(list,
			json_pack("{s:i,s:i,s:f}", "cpu", a->workers[i].cpu, "roles",
				(int)a->workers[i].count, "cpu_s", a->workers[i].cpu_seconds));
	return list;
}

static json_t *json_stages(const struct fwd_config *c)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < c->stage_count; i++) {
		uint64_t rate = c->stages[i].rate;

		json_array_append_new(
			list, json_pack("{s:o,s:f}", "rate_pps",
				      rate == RATE_UNLIMITED || c->timing ? json_null()
									  : json_count(rate),
				      "duration_s", (double)c->stages[i].ns / 1e9));
	}
	return list;
}

int report_json(struct app *a, int argc, char **argv)
{
	json_t *j = json_object(), *command = json_array(), *roles = json_array();

	for (int i = 0; i < argc; i++)
		json_array_append_new(command, json_text(argv[i]));
	for (unsigned i = 0; i < a->role_count; i++)
		json_array_append_new(roles, json_role(a, a->roles[i]));
	SET(j, "version", json_text(RINGTAP_VERSION));
	SET(j, "command", command);
	SET(j, "plane", json_text(plane_names[a->config->plane]));
	SET(j, "tsc_hz", json_count(run.hz));
	SET(j, "start_ns", json_count(a->start_ns));
	SET(j, "start_tsc", json_count(run.start_tsc));
	SET(j, "duration_s", json_real(a->elapsed));
	SET(j, "ended_by", json_text(end_names[a->end]));
	SET(j, "probe", json_boolean(a->probe));
	SET(j, "stages", json_stages(a->config));
	SET(j, "threads", json_threads(a));
	SET(j, "roles", roles);
	SET(j, "ports", json_ports(a));
	SET(j, "memory", json_memory(a));
	SET(j, "intervals", json_seconds(a));
	return json_print(j, stdout);
}
