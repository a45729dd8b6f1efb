/* SPDX-License-Identifier: BSD-3-Clause */
/* Metrics of event, crypto and DMA devices, and of lcores. */
#include <stdio.h>

#include "metrics.h"

const char *device_kind(const struct ringtap_device_stat *d)
{
	static const char *const names[] = {"eventdev", "cryptodev", "dmadev"};

	return names[d->kind];
}

const char *device_part(char buf[PART_NAME_LEN], const struct ringtap_device_stat *d)
{
	static const char *const names[] = {"", "port", "queue", "channel"};

	buf[0] = '\0';
	if (d->part != RINGTAP_PART_DEVICE)
		snprintf(buf, PART_NAME_LEN, "%s %u", names[d->part], d->number);
	return buf;
}

double device_number(const struct subject *x, enum rt_metric_id id)
{
	const struct ringtap_device_stat *d = x->device;
	double seconds, n = rates_device(x->span, x->index, &seconds);

	switch (id) {
	case RT_M_DEVICE_ID: return d->id;
	case RT_M_DEVICE_REMOVED: return d->gone;
	case RT_M_DEVICE_VALUE: return d->read_ns ? (double)d->value : NAN;
	case RT_M_DEVICE_RATE: return n / seconds;
	default: return NAN;
	}
}

double lcore_number(const struct subject *x, enum rt_metric_id id)
{
	static const struct ringtap_lcore_stats zero;
	const struct ringtap_lcore_stats *b = x->lcore, *a = &zero;

	if (x->index < x->span->from->lcore_count)
		a = ringtap_snapshot_lcore(x->span->from, x->index);
	switch (id) {
	case RT_M_LCORE_NUMBER: return b->lcore;
	case RT_M_LCORE_TOTAL: return (double)grown(b->total_cycles, a->total_cycles);
	case RT_M_LCORE_BUSY: return (double)grown(b->busy_cycles, a->busy_cycles);
	case RT_M_LCORE_SHARE: return rates_lcore(x->span, x->index);
	default: return NAN;
	}
}
