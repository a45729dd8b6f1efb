/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>

#include "export.h"

#define NONE RINGTAP_NO_INDEX

static bool same_port(const struct ringtap_snapshot *f, uint32_t a, uint32_t b)
{
	return a == b || (a != NONE && b != NONE &&
				 !strcmp(ringtap_snapshot_port(f, a)->name,
					 ringtap_snapshot_port(f, b)->name));
}

static bool same_queue(const struct ringtap_queue_stats *x, const struct ringtap_queue_stats *y,
	const struct ringtap_snapshot *f)
{
	return x->queue == y->queue && x->direction == y->direction &&
	       same_port(f, x->port, y->port);
}

static bool same_thread(const struct ringtap_thread_stats *x, const struct ringtap_thread_stats *y)
{
	char left[THREAD_NAME_LEN], right[THREAD_NAME_LEN];

	return !strcmp(thread_name(left, x), thread_name(right, y));
}

static bool same_pair(const struct ringtap_pair_stats *x, const struct ringtap_pair_stats *y,
	const struct ringtap_snapshot *f)
{
	return !x->inferred == !y->inferred && same_port(f, x->rx_port, y->rx_port) &&
	       same_port(f, x->tx_port, y->tx_port);
}

bool labels_same(
	const struct ringtap_snapshot *f, enum rt_metric_object object, uint32_t a, uint32_t b)
{
	switch (object) {
	case RT_OBJECT_PORT:
	case RT_OBJECT_DRIVER: return same_port(f, a, b);
	case RT_OBJECT_QUEUE:
	case RT_OBJECT_CALLS:
		return same_queue(ringtap_snapshot_queue(f, a), ringtap_snapshot_queue(f, b), f);
	case RT_OBJECT_THREAD:
		return same_thread(ringtap_snapshot_thread(f, a), ringtap_snapshot_thread(f, b));
	case RT_OBJECT_POOL:
		return !strcmp(
			ringtap_snapshot_pool(f, a)->name, ringtap_snapshot_pool(f, b)->name);
	case RT_OBJECT_PAIR:
		return same_pair(ringtap_snapshot_pair(f, a), ringtap_snapshot_pair(f, b), f);
	default: return true;
	}
}

bool labels_first(const struct ringtap_snapshot *f, enum rt_metric_object object, uint32_t i)
{
	if (object == RT_OBJECT_PAIR && ringtap_snapshot_pair(f, i)->rx_port == NONE)
		return false;
	for (uint32_t k = 0; k < i; k++)
		if (labels_same(f, object, k, i))
			return false;
	return true;
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

char *labels_of(
	char buf[LABELS_LEN], const struct exported *x, enum rt_metric_object object, uint32_t i)
{
	const struct ringtap_snapshot *f = x->span.to;
	const struct ringtap_pair_stats *p;
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
			thread_name(name, ringtap_snapshot_thread(f, i)), NULL);
	case RT_OBJECT_POOL:
		return export_labels(
			buf, "app", x->label, "pool", ringtap_snapshot_pool(f, i)->name, NULL);
	case RT_OBJECT_PAIR:
		p = ringtap_snapshot_pair(f, i);
		return export_labels(buf, "app", x->label, "rx_port",
			ringtap_snapshot_port(f, p->rx_port)->name, "tx_port",
			ringtap_snapshot_port(f, p->tx_port)->name, NULL);
	default: return export_labels(buf, "app", x->label, NULL);
	}
}
