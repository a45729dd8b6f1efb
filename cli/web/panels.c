/* SPDX-License-Identifier: BSD-3-Clause */
/* Tables and lanes of an application. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "making.h"

/* ---- cells */

void put_text(json_t *row, const char *text)
{
	json_array_append_new(row, json_text(text));
}

/* A text that leads to another view. */
void put_link(json_t *row, const char *text, const char *app, const char *key, const char *name)
{
	json_t *view = json_pack("{s:o}", "app", json_text(app));

	if (key)
		json_put(view, key, json_text(name));
	json_array_append_new(row, json_pack("{s:o, s:o}", "text", json_text(text), "view", view));
}

void put_values(const struct making *m, json_t *to, const struct series *s)
{
	for (uint64_t i = m->first; i < m->all->history.steps; i++)
		view_append(to, s ? series_at(s, &m->all->history, i) : NAN);
}

const struct series *series_of(const struct app *a, enum series_group group, const char *name)
{
	for (size_t i = 0; i < a->series.count; i++)
		if (a->series.list[i]->group == group && !strcmp(a->series.list[i]->name, name))
			return a->series.list[i];
	return NULL;
}

void put_spark(const struct making *m, json_t *row, const struct app *a, enum series_group group,
	const char *name)
{
	json_t *values = json_array();

	put_values(m, values, series_of(a, group, name));
	json_array_append_new(row, values);
}

void spark_column(json_t *table, const char *name, enum view_colour colour)
{
	const json_t *columns;

	view_column(table, name, "spark");
	columns = json_object_get(table, "columns");
	json_put(json_array_get(columns, json_array_size(columns) - 1), "colour",
		json_integer((json_int_t)colour));
}

const char *text_of(const json_t *j, const char *key)
{
	return json_string_value(json_object_get(j, key));
}

bool of_place(const struct making *m, const char *port, const char *thread)
{
	return (!port || !*m->place->port || !strcmp(port, m->place->port)) &&
	       (!thread || !*m->place->thread || !strcmp(thread, m->place->thread));
}

/* ---- polling gaps */

static json_t *state(const char *name, enum view_colour colour, const char *meaning)
{
	return json_pack(
		"{s:s, s:i, s:s}", "name", name, "colour", (int)colour, "meaning", meaning);
}

static json_t *intervals_of(const struct making *m, const struct app *a, const char *thread)
{
	json_t *all = json_array();

	for (uint64_t i = gaps_first(&a->gaps); i < a->gaps.count; i++) {
		const struct polling_gap *g = gaps_at(&a->gaps, i);
		json_t *one;

		if (g->step < m->first || strcmp(g->thread, thread))
			continue;
		one = json_pack(
			"[o, I, i]", view_at(&m->v, g->start_ns), (json_int_t)g->ns, (int)!g->idle);
		if (*g->text)
			json_array_append_new(one, json_text(g->text));
		json_array_append_new(all, one);
	}
	return all;
}

/* A lane for each thread. */
void gap_lanes(struct making *m, const struct app *a)
{
	json_t *panel, *lanes, *states;
	const json_t *thread;
	size_t i;

	if (!(a->collectors & RINGTAP_GAPS))
		return;
	panel = view_panel(&m->v, "lanes", "gaps", "Polling gaps");
	lanes = json_array();
	states = json_array();
	json_array_append_new(
		states, state("idle gap", VIEW_RED, "after an empty poll: something else ran"));
	json_array_append_new(states, state("busy gap", VIEW_ORANGE, "after a poll with packets"));
	json_put(panel, "states", states);
	json_array_foreach(json_object_get(a->metrics, "threads"), i, thread)
	{
		char name[SERIES_NAME];

		thread_of(thread, name);
		if (json_is_true(json_object_get(thread, "alive")) && of_place(m, NULL, name))
			json_array_append_new(
				lanes, json_pack("{s:o, s:o}", "name", json_text(name), "intervals",
					       intervals_of(m, a, name)));
	}
	json_put(panel, "lanes", lanes);
}

/* ---- latencies */

/* All packets of each second. A column of an unknown one is empty. */
void latency_heat(struct making *m, const struct app *a)
{
	const struct history *h = &m->all->history;
	json_t *panel, *y, *counts, *p50, *p99;

	if (a->heat.last <= history_first(h))
		return;
	panel = view_panel(&m->v, "heat", "latency-heat", "Latency of all packets");
	json_put(panel, "name", json_string("packets"));
	json_put(panel, "unit", json_string("ns"));
	json_put(panel, "log", json_true());
	json_put(panel, "edges_ns", step_edges(m));
	y = json_array();
	for (unsigned r = 0; r <= HEAT_ROWS; r++)
		view_append(y, HEAT_LOW_NS * exp2((double)r / HEAT_OCTAVE));
	json_put(panel, "y_edges", y);
	counts = json_array();
	p50 = view_series(panel, "p50", VIEW_ORANGE);
	p99 = view_series(panel, "p99", VIEW_RED);
	for (uint64_t i = m->first; i < h->steps; i++) {
		const struct heat_step *s = heat_at(&a->heat, i);
		json_t *column = json_array();

		if (s)
			view_append_counts(column, s->packets, HEAT_ROWS);
		json_array_append_new(counts, column);
		view_append(p50, s ? s->p50_ns : NAN);
		view_append(p99, s ? s->p99_ns : NAN);
	}
	json_put(panel, "counts", counts);
}

/* ---- tables */

void ports_table(struct making *m, const struct app *a)
{
	static const char *const rates[] = {
		"missed", "no_mbuf", "rx_errors", "tx_errors", "refused"};
	static const char *const names[] = {
		"missed", "no mbuf", "RX errors", "TX errors", "refused"};
	json_t *t = view_panel(&m->v, "table", "ports", "Ports");
	const json_t *port;
	size_t i;

	view_column(t, "port", "text");
	view_column(t, "received", "/s");
	view_column(t, "sent", "/s");
	for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++)
		view_column(t, names[k], "/s");
	spark_column(t, "received, 10 min", VIEW_BLUE);
	view_column(t, "link", "text");
	view_column(t, "driver", "text");
	json_put(t, "rows", json_array());
	json_array_foreach(json_object_get(a->metrics, "ports"), i, port)
	{
		const char *name = name_of(port);
		json_t *row;

		if (json_is_true(json_object_get(port, "removed")) || !of_place(m, name, NULL))
			continue;
		row = view_row(t);
		put_link(row, name, a->label, "port", name);
		view_append(row, metric_of(port, "rx", "packets_per_second"));
		view_append(row, metric_of(port, "tx", "packets_per_second"));
		for (size_t k = 0; k < sizeof(rates) / sizeof(rates[0]); k++)
			view_append(row, metric_of(port, "driver_per_second", rates[k]));
		put_spark(m, row, a, SERIES_RECEIVED, name);
		put_text(row, json_is_true(json_object_get(port, "link_up")) ? "up" : "down");
		put_text(row, text_of(port, "driver"));
	}
}

/* Cells with the values of these keys, a list ended by NULL. */
static void append_metrics(json_t *row, const json_t *object, const char *const *keys)
{
	for (; *keys; keys++)
		view_append(row, metric_of(object, NULL, *keys));
}

static const char *const queue_metrics[] = {
	"packets_per_second", "calls_per_second", "busy_call_share", "packets_per_busy_call", NULL};
static const char *const thread_metrics[] = {"packets_per_second", "polls_per_second",
	"cycles_per_packet", "cpu", "wait_share", "preemptions_per_second", NULL};
static const char *const ring_metrics[] = {"capacity", "used", "max_used", "highest", NULL};
static const char *const pool_metrics[] = {"size", "available", "in_caches", "min_available", NULL};

void queues_table(struct making *m, const struct app *a)
{
	json_t *t = view_panel(&m->v, "table", "queues", "Queues");
	const json_t *q;
	size_t i;

	view_column(t, "port", "text");
	view_column(t, "direction", "text");
	view_column(t, "queue", "count");
	view_column(t, "thread", "text");
	view_column(t, "packets", "/s");
	view_column(t, "calls", "/s");
	view_column(t, "calls with packets", "share");
	view_column(t, "packets in such a call", "");
	json_put(t, "rows", json_array());
	json_array_foreach(json_object_get(a->metrics, "queues"), i, q)
	{
		const char *port = name_of(json_object_get(q, "port"));
		char thread[SERIES_NAME];
		json_t *row;

		thread_of(json_object_get(q, "thread"), thread);
		if (!of_place(m, port, thread))
			continue;
		row = view_row(t);
		put_link(row, port, a->label, "port", port);
		put_text(row, text_of(q, "direction"));
		view_append(row, metric_of(q, NULL, "queue"));
		put_link(row, thread, a->label, "thread", thread);
		append_metrics(row, q, queue_metrics);
	}
}

void threads_table(struct making *m, const struct app *a)
{
	json_t *t = view_panel(&m->v, "table", "threads", "Threads");
	const json_t *thread;
	size_t i;

	view_column(t, "thread", "text");
	view_column(t, "busy", "share");
	spark_column(t, "busy, 10 min", VIEW_GREEN);
	view_column(t, "received", "/s");
	view_column(t, "polls", "/s");
	view_column(t, "cycles a packet", "");
	view_column(t, "CPU", "count");
	view_column(t, "waited for a CPU", "share");
	view_column(t, "preempted", "/s");
	json_put(t, "rows", json_array());
	json_array_foreach(json_object_get(a->metrics, "threads"), i, thread)
	{
		char name[SERIES_NAME];
		json_t *row;

		thread_of(thread, name);
		if (!json_is_true(json_object_get(thread, "alive")) || !of_place(m, NULL, name))
			continue;
		row = view_row(t);
		put_link(row, name, a->label, "thread", name);
		view_append(row, metric_of(thread, NULL, "busy_share"));
		put_spark(m, row, a, SERIES_BUSY, name);
		append_metrics(row, thread, thread_metrics);
	}
}

void pools_table(struct making *m, const struct app *a)
{
	json_t *t = view_panel(&m->v, "table", "pools", "Mempools");
	const json_t *pool;
	size_t i;

	view_column(t, "mempool", "text");
	view_column(t, "in use", "share");
	spark_column(t, "in use, 10 min", VIEW_PURPLE);
	view_column(t, "objects", "count");
	view_column(t, "available", "count");
	view_column(t, "in caches", "count");
	view_column(t, "fewest available", "count");
	json_put(t, "rows", json_array());
	json_array_foreach(json_object_get(a->metrics, "pools"), i, pool)
	{
		json_t *row;

		if (json_is_true(json_object_get(pool, "removed")))
			continue;
		row = view_row(t);
		put_text(row, name_of(pool));
		view_append(row, metric_of(pool, NULL, "in_use_share"));
		put_spark(m, row, a, SERIES_POOL, name_of(pool));
		append_metrics(row, pool, pool_metrics);
	}
}

void rings_table(struct making *m, const struct app *a)
{
	const json_t *rings = json_object_get(a->metrics, "rings"), *ring;
	json_t *t;
	size_t i;

	if (!json_array_size(rings))
		return;
	t = view_panel(&m->v, "table", "rings", "Rings");
	view_column(t, "ring", "text");
	view_column(t, "filled", "share");
	spark_column(t, "filled, 10 min", VIEW_PURPLE);
	view_column(t, "objects that fit", "count");
	view_column(t, "used", "count");
	view_column(t, "at most", "count");
	view_column(t, "at most, ever", "count");
	json_put(t, "rows", json_array());
	json_array_foreach(rings, i, ring)
	{
		json_t *row;

		if (json_is_true(json_object_get(ring, "removed")))
			continue;
		row = view_row(t);
		put_text(row, name_of(ring));
		view_append(row, metric_of(ring, NULL, "max_used_share"));
		put_spark(m, row, a, SERIES_RING, name_of(ring));
		append_metrics(row, ring, ring_metrics);
	}
}

/* A count beyond what JSON's numbers hold exactly is a text. */
static double count_of(const json_t *j)
{
	return json_is_string(j) ? strtod(json_string_value(j), NULL) : json_number_value(j);
}

/* Counters of drivers or devices that are not 0; nothing unless they are collected. */
static void counters_table(
	struct making *m, const struct app *a, const char *key, const char *title, const char *of)
{
	const json_t *list = json_object_get(a->metrics, key), *one;
	json_t *t = NULL, *row;
	size_t i;

	json_array_foreach(list, i, one)
	{
		const json_t *port = json_object_get(one, "port"), *part;
		char where[2 * SERIES_NAME];

		part = json_object_get(one, "part");
		snprintf(where, sizeof(where), "%s%s%s",
			port ? name_of(port) : text_of(one, "device"),
			json_is_string(part) ? " " : "",
			json_is_string(part) ? json_string_value(part) : "");
		if (json_is_true(json_object_get(one, "removed")) ||
			!(count_of(json_object_get(one, "value")) > 0) ||
			!of_place(m, port ? where : NULL, NULL))
			continue;
		if (!t) {
			t = view_panel(&m->v, "table", key, title);
			view_column(t, of, "text");
			view_column(t, "statistic", "text");
			view_column(t, "value", "count");
			view_column(t, "growth", "/s");
			json_put(t, "rows", json_array());
		}
		row = view_row(t);
		put_text(row, where);
		put_text(row, name_of(one));
		view_append(row, count_of(json_object_get(one, "value")));
		view_append(row, metric_of(one, NULL, "per_second"));
	}
}

void xstats_table(struct making *m, const struct app *a)
{
	counters_table(m, a, "xstats", "Extended statistics of drivers", "port");
}

void devices_table(struct making *m, const struct app *a)
{
	counters_table(m, a, "devices", "Event, crypto and DMA devices", "device");
}
