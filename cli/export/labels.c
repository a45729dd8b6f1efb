/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "labels.h"

#define NONE RINGTAP_NO_INDEX

static int by_number(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

static int by_port(const struct ringtap_snapshot *f, uint32_t a, uint32_t b)
{
	if (a == b || a == NONE || b == NONE)
		return by_number(a, b);
	return strcmp(ringtap_snapshot_port(f, a)->name, ringtap_snapshot_port(f, b)->name);
}

static int by_queue(const struct ringtap_snapshot *f, uint32_t a, uint32_t b)
{
	const struct ringtap_queue_stats *x = ringtap_snapshot_queue(f, a),
					 *y = ringtap_snapshot_queue(f, b);
	int ret = by_number(x->queue, y->queue);

	if (!ret)
		ret = by_number(x->direction, y->direction);
	return ret ? ret : by_port(f, x->port, y->port);
}

static int by_thread(const struct ringtap_snapshot *f, uint32_t a, uint32_t b)
{
	char left[THREAD_NAME_LEN], right[THREAD_NAME_LEN];

	return strcmp(thread_label(left, ringtap_snapshot_thread(f, a)),
		thread_label(right, ringtap_snapshot_thread(f, b)));
}

static int by_pool(const struct ringtap_snapshot *f, uint32_t a, uint32_t b)
{
	return strcmp(ringtap_snapshot_pool(f, a)->name, ringtap_snapshot_pool(f, b)->name);
}

static int by_ring(const struct ringtap_snapshot *f, uint32_t a, uint32_t b)
{
	return strcmp(ringtap_snapshot_ring(f, a)->name, ringtap_snapshot_ring(f, b)->name);
}

static int by_xstat(const struct ringtap_snapshot *f, uint32_t a, uint32_t b)
{
	const struct ringtap_xstat_stats *x = ringtap_snapshot_xstat(f, a),
					 *y = ringtap_snapshot_xstat(f, b);
	int ret = strcmp(x->name, y->name);

	return ret ? ret : by_port(f, x->port, y->port);
}

static int by_device(const struct ringtap_snapshot *f, uint32_t a, uint32_t b)
{
	const struct ringtap_device_stat *x = ringtap_snapshot_device_stat(f, a),
					 *y = ringtap_snapshot_device_stat(f, b);
	int ret = by_number(x->kind, y->kind);

	ret = ret ? ret : by_number(x->id, y->id);
	ret = ret ? ret : by_number(x->part, y->part);
	ret = ret ? ret : by_number(x->number, y->number);
	ret = ret ? ret : strcmp(x->name, y->name);
	return ret ? ret : strcmp(x->device, y->device);
}

static int by_pair(const struct ringtap_snapshot *f, uint32_t a, uint32_t b)
{
	const struct ringtap_pair_stats *x = ringtap_snapshot_pair(f, a),
					*y = ringtap_snapshot_pair(f, b);
	int ret = by_number(x->inferred, y->inferred);

	if (!ret)
		ret = by_port(f, x->rx_port, y->rx_port);
	return ret ? ret : by_port(f, x->tx_port, y->tx_port);
}

/* A class of objects whose entries have the same labels. */
static enum rt_metric_object class_of(enum rt_metric_object object)
{
	return object == RT_OBJECT_DRIVER  ? RT_OBJECT_PORT
	       : object == RT_OBJECT_CALLS ? RT_OBJECT_QUEUE
					   : object;
}

struct order {
	const struct ringtap_snapshot *f;
	const struct span *span;
	enum rt_metric_object object;
};

static int by_labels(const struct order *o, uint32_t a, uint32_t b)
{
	switch (o->object) {
	case RT_OBJECT_PORT: return by_port(o->f, a, b);
	case RT_OBJECT_QUEUE: return by_queue(o->f, a, b);
	case RT_OBJECT_THREAD: return by_thread(o->f, a, b);
	case RT_OBJECT_POOL: return by_pool(o->f, a, b);
	case RT_OBJECT_RING: return by_ring(o->f, a, b);
	case RT_OBJECT_XSTAT: return by_xstat(o->f, a, b);
	case RT_OBJECT_DEVICE: return by_device(o->f, a, b);
	case RT_OBJECT_LCORE: return by_number(a, b);
	case RT_OBJECT_PAIR: return by_pair(o->f, a, b);
	default: return 0;
	}
}

static int by_labels_and_entry(const void *a, const void *b, void *order)
{
	const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	int ret = by_labels(order, x, y);

	return ret ? ret : by_number(x, y);
}

/* Links the entries of each series, which are neighbours in sorted[]. */
static void link_series(
	struct series *s, const struct order *o, const uint32_t *sorted, uint32_t entries)
{
	for (uint32_t i = 0; i < entries; i++) {
		bool last = i + 1 == entries || by_labels(o, sorted[i], sorted[i + 1]);

		s->next[sorted[i]] = last ? NONE : sorted[i + 1];
		if (!last)
			s->first[sorted[i + 1]] = NONE;
	}
	for (uint32_t i = 0; i < entries; i++)
		if (s->first[i] != NONE && subject_wanted(o->span, o->object, i) &&
			!(o->object == RT_OBJECT_PAIR &&
				ringtap_snapshot_pair(o->f, i)->rx_port == NONE))
			s->first[s->count++] = i;
}

static int find_series(struct series *s, struct order *o)
{
	uint32_t entries = subject_count(o->f, o->object);
	uint32_t *sorted = calloc(entries + 1, sizeof(*sorted));

	s->first = calloc(entries + 1, sizeof(*s->first));
	s->next = calloc(entries + 1, sizeof(*s->next));
	if (sorted && s->first && s->next) {
		for (uint32_t i = 0; i < entries; i++)
			sorted[i] = i;
		qsort_r(sorted, entries, sizeof(*sorted), by_labels_and_entry, o);
		link_series(s, o, sorted, entries);
	}
	free(sorted);
	return sorted && s->first && s->next ? 0 : -ENOMEM;
}

int labels_find(struct exported *x)
{
	int ret = 0;

	for (unsigned i = 0; i < LABEL_CLASSES && !ret; i++) {
		struct order o = {x->span.to, &x->span, (enum rt_metric_object)i};

		if (class_of(o.object) == o.object)
			ret = find_series(&x->series[i], &o);
	}
	return ret;
}

void labels_free(struct exported *x)
{
	for (unsigned i = 0; i < LABEL_CLASSES; i++) {
		free(x->series[i].first);
		free(x->series[i].next);
	}
}

const struct series *labels_series(const struct exported *x, enum rt_metric_object object)
{
	return &x->series[class_of(object)];
}

static char *queue_labels(char buf[LABELS_LEN], const struct exported *x, uint32_t i)
{
	const struct ringtap_queue_stats *q = ringtap_snapshot_queue(x->span.to, i);
	char queue[16];

	snprintf(queue, sizeof(queue), "%u", q->queue);
	return export_labels(buf, "app", x->label, "port",
		ringtap_snapshot_port(x->span.to, q->port)->name, "queue", queue, "direction",
		q->direction == RINGTAP_TX ? "tx" : "rx", NULL);
}

static char *device_labels(char buf[LABELS_LEN], const struct exported *x, uint32_t i)
{
	const struct ringtap_device_stat *d = ringtap_snapshot_device_stat(x->span.to, i);
	char id[16], part[PART_NAME_LEN];

	snprintf(id, sizeof(id), "%u", d->id);
	return export_labels(buf, "app", x->label, "kind", device_kind(d), "device", d->device,
		"id", id, "part", device_part(part, d), "stat", d->name, NULL);
}

char *labels_of(
	char buf[LABELS_LEN], const struct exported *x, enum rt_metric_object object, uint32_t i)
{
	const struct ringtap_snapshot *f = x->span.to;
	const struct ringtap_pair_stats *p;
	const struct ringtap_xstat_stats *s;
	char name[THREAD_NAME_LEN];

	switch (object) {
	case RT_OBJECT_PORT:
	case RT_OBJECT_DRIVER:
		return export_labels(
			buf, "app", x->label, "port", ringtap_snapshot_port(f, i)->name, NULL);
	case RT_OBJECT_QUEUE:
	case RT_OBJECT_CALLS: return queue_labels(buf, x, i);
	case RT_OBJECT_THREAD:
		return export_labels(buf, "app", x->label, "thread",
			thread_label(name, ringtap_snapshot_thread(f, i)), NULL);
	case RT_OBJECT_POOL:
		return export_labels(
			buf, "app", x->label, "pool", ringtap_snapshot_pool(f, i)->name, NULL);
	case RT_OBJECT_RING:
		return export_labels(
			buf, "app", x->label, "ring", ringtap_snapshot_ring(f, i)->name, NULL);
	case RT_OBJECT_XSTAT:
		s = ringtap_snapshot_xstat(f, i);
		return export_labels(buf, "app", x->label, "port",
			s->port == NONE ? "" : ringtap_snapshot_port(f, s->port)->name, "xstat",
			s->name, NULL);
	case RT_OBJECT_DEVICE: return device_labels(buf, x, i);
	case RT_OBJECT_LCORE:
		snprintf(name, sizeof(name), "%u", i);
		return export_labels(buf, "app", x->label, "lcore", name, NULL);
	case RT_OBJECT_PAIR:
		p = ringtap_snapshot_pair(f, i);
		return export_labels(buf, "app", x->label, "rx_port",
			ringtap_snapshot_port(f, p->rx_port)->name, "tx_port",
			ringtap_snapshot_port(f, p->tx_port)->name, NULL);
	default: return export_labels(buf, "app", x->label, NULL);
	}
}
