/* SPDX-License-Identifier: BSD-3-Clause */
/* Families of the metrics that have a name in Prometheus. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "families.h"

static bool collected(const struct ringtap_snapshot *f, enum rt_metric_id id)
{
	return !(id == RT_M_MAX_GAP || id == RT_M_GAPS) || f->collectors & RINGTAP_GAPS;
}

/* Prometheus has base units. Cycles become seconds by the first snapshot's frequency: a counter
 * must not go back when the frequency is measured better. */
static double scale(enum rt_unit unit, const struct span *s)
{
	return unit == RT_UNIT_NS       ? 1e-9
	       : unit == RT_UNIT_CYCLES ? 1 / s->tsc_hz
	       : unit == RT_UNIT_MBPS   ? 1e6 / 8
					: 1;
}

/* Over all entries with the labels of entry i: the sum of counters, the largest gauge of those that
 * are still there. NAN: none is known. */
static double series_value(const struct exported *x, enum rt_metric_id id, uint32_t i)
{
	const struct rt_metric *m = &rt_metrics[id];
	bool counter = m->type == RT_METRIC_COUNTER, sums = id == RT_M_MAX_GAP;
	double value = NAN;

	for (uint32_t k = i; k != RINGTAP_NO_INDEX; k = labels_series(x, m->object)->next[k]) {
		struct metric_value v;
		struct subject y;

		subject_make(&y, &x->span, m->object, k, sums);
		if (!counter && m->object != RT_OBJECT_THREAD && subject_gone(&y))
			continue;
		metric_get(&y, id, false, &v);
		/* Not counted is not zero. */
		if (isnan(v.number) ||
			(id == RT_M_BYTES && !y.calls[0].byte_packets &&
				!(x->span.to->collectors & RINGTAP_BYTES)) ||
			(id == RT_M_PORT_MBPS && v.number <= 0))
			continue;
		value = isnan(value) ? v.number
			: counter    ? value + v.number
				     : fmax(value, v.number);
	}
	return value * scale(m->unit, &x->span);
}

static void export_series(struct export_text *t, enum rt_metric_id id, const struct exported *x)
{
	enum rt_metric_object object = rt_metrics[id].object;
	const struct series *s = labels_series(x, object);
	char labels[LABELS_LEN];

	for (uint32_t i = 0; i < s->count; i++) {
		double value = series_value(x, id, s->first[i]);

		if (!isnan(value) && export_takes(t, 1))
			export_number(t, "", labels_of(labels, x, object, s->first[i]), value);
	}
}

static void export_port_info(struct export_text *t, const struct exported *x)
{
	char labels[LABELS_LEN], id[16];

	for (uint32_t i = 0; i < x->span.to->port_count; i++) {
		const struct ringtap_port_stats *p = ringtap_snapshot_port(x->span.to, i);

		if (p->gone || !span_has_port(&x->span, i) || !export_takes(t, 1))
			continue;
		snprintf(id, sizeof(id), "%u", p->port_id);
		export_number(t, "",
			export_labels(labels, "app", x->label, "port", p->name, "id", id, "driver",
				p->driver, NULL),
			1);
	}
}

static void export_app(struct export_text *t, enum rt_metric_id id, const struct exported *x)
{
	const struct ringtap_app_info *a = &x->app->info;
	struct metric_value v = {.number = x->span.to != NULL};
	struct subject y = {.span = &x->span};
	char labels[LABELS_LEN];

	export_labels(labels, "app", x->label, NULL);
	if (id == RT_M_APP_INFO)
		export_labels(labels, "app", x->label, "program", a->program, "dpdk", a->dpdk,
			"probe", a->probe, NULL);
	if (id != RT_M_APP_UP)
		metric_get(&y, id, false, &v);
	export_number(t, "", labels, v.number);
}

static void export_metric(struct export_text *t, enum rt_metric_id id, const struct exported *x)
{
	if (rt_metrics[id].object >= RT_OBJECT_RECORDER) {
		export_recorders(t, id, x);
		return;
	}
	if (!x->span.to && id != RT_M_APP_UP)
		return;
	if (rt_metrics[id].object == RT_OBJECT_APP)
		export_app(t, id, x);
	else if (id == RT_M_PORT_NAME)
		export_port_info(t, x);
	else if (!collected(x->span.to, id))
		return;
	else if (rt_metrics[id].type == RT_METRIC_HISTOGRAM)
		export_histogram(t, id, x);
	else
		export_series(t, id, x);
}

/* Applications of one name in different runtime folders (of different users) have different
 * labels. */
static void name_app(const struct exported *list, size_t i, struct exported *x)
{
	const struct watched *a = x->app;
	bool taken = false;

	for (size_t k = 0; k < i; k++)
		taken |= !strcmp(list[k].app->name, a->name);
	snprintf(x->label, sizeof(x->label), "%s", taken ? a->dir : a->name);
	if (!a->ended && a->now)
		x->span = span_total(a);
}

/* The samples of each application: those of other users share a quarter of all. */
static unsigned room_of(const struct watch *w, const struct export_limits *l, bool foreign)
{
	unsigned n = 0, most = foreign ? l->in_all / 4 : l->in_all - l->in_all / 4;

	for (size_t i = 0; i < w->count; i++)
		n += w->list[i]->foreign == foreign;
	return n && most / n < l->of_app ? most / n : l->of_app;
}

static bool prepare(struct exported *list, const struct watch *w, const struct export_limits *l,
	struct recorder_answers *r)
{
	size_t n = 0;

	for (unsigned foreign = 0; foreign < 2; foreign++) {
		unsigned most = room_of(w, l, foreign);

		for (size_t i = 0; i < w->count; i++) {
			struct exported *x = &list[n];

			if (w->list[i]->foreign != foreign)
				continue;
			x->app = w->list[i];
			x->room.most = most;
			name_app(list, n++, x);
			x->recorders = recorder_answers_of(r, x->app->dir);
			if (x->span.to && labels_find(x))
				return false;
		}
	}
	return true;
}

static const struct rt_metric flow_metrics[] = {
	{.prometheus = "flow_packets_per_second",
		.type = RT_METRIC_GAUGE,
		.help = "received packets a second of one of the largest flows, of the last 10 s"},
	{.prometheus = "flow_bits_per_second",
		.type = RT_METRIC_GAUGE,
		.help = "received bits a second of one of the largest flows, of the last 10 s"},
};

static void export_flows(
	struct export_text *t, const struct exported *x, bool bits, struct flows_live *flows)
{
	const struct flow_rows *rows = flows_live_rows(flows, x->app->dir);
	char labels[LABELS_LEN];

	for (unsigned i = 0; rows && i < rows->count && export_takes(t, 1); i++) {
		const struct flow_row *r = &rows->list[i];

		export_labels(labels, "app", x->label, "flow", r->name, NULL);
		export_number(t, "", labels, bits ? r->bits.value : r->packets.value);
	}
	flows_live_release(flows);
}

static void export_largest_flows(
	struct export_text *t, struct exported *list, size_t count, struct flows_live *flows)
{
	for (unsigned bits = 0; flows && bits < 2; bits++) {
		export_family(t, &flow_metrics[bits]);
		for (size_t i = 0; i < count; i++) {
			t->room = &list[i].room;
			export_flows(t, &list[i], bits, flows);
		}
	}
}

static void export_families(
	struct export_text *t, struct exported *list, size_t count, struct flows_live *flows)
{
	for (enum rt_metric_id id = 0; id < RT_M_COUNT; id++) {
		if (!rt_metrics[id].prometheus || id == RT_M_APP_LEFT_OUT)
			continue;
		export_family(t, &rt_metrics[id]);
		for (size_t i = 0; i < count; i++) {
			t->room = &list[i].room;
			export_metric(t, id, &list[i]);
		}
	}
	export_largest_flows(t, list, count, flows);
	/* Last, as the others count. */
	export_family(t, &rt_metrics[RT_M_APP_LEFT_OUT]);
	for (size_t i = 0; i < count; i++) {
		char labels[LABELS_LEN];

		if (list[i].span.to)
			export_number(t, "", export_labels(labels, "app", list[i].label, NULL),
				list[i].room.left_out);
	}
	export_end(t);
}

void export_all(struct export_text *t, const struct watch *w, const struct export_limits *l,
	struct recorder_answers *r, struct flows_live *flows)
{
	struct exported *list = calloc(w->count + 1, sizeof(*list));

	t->failed = !list || !prepare(list, w, l, r);
	if (!t->failed)
		export_families(t, list, w->count, flows);
	for (size_t i = 0; list && i < w->count; i++) {
		json_decref(list[i].recorders);
		labels_free(&list[i]);
	}
	free(list);
}
