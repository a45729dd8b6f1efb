/* SPDX-License-Identifier: BSD-3-Clause */
/* The values of common/metrics.h, computed from two snapshots. */
#ifndef RINGTAP_MEASURE_METRICS_H
#define RINGTAP_MEASURE_METRICS_H

#include <jansson.h>

#include "common/metrics.h"
#include "rates.h"

#define METRIC_TEXT_LEN 128
#define METRIC_BARS     20 /* at least BURST_CLASSES */

struct metric_value {
	double number;              /* NAN: unknown */
	char text[METRIC_TEXT_LEN]; /* RT_UNIT_TEXT; printable */
	float bar[METRIC_BARS];     /* RT_UNIT_BARS: shares of the largest */
};

/* An entry of a snapshot, and what its values are computed from. */
struct subject {
	const struct span *span;
	enum rt_metric_object object;
	uint32_t index;
	const struct ringtap_port_stats *port;
	const struct ringtap_queue_stats *queue;
	const struct ringtap_thread_stats *thread;
	const struct ringtap_pool_stats *pool;
	const struct ringtap_ring_stats *ring;
	const struct ringtap_xstat_stats *xstat;
	const struct ringtap_device_stat *device;
	const struct ringtap_lcore_stats *lcore;
	const struct ringtap_pair_stats *pair;
	const struct ringtap_gap *gap; /* RT_OBJECT_GAP: one of the two */
	const struct ringtap_microburst *microburst;
	struct tally calls[2]; /* RX and TX of a port; the first for a queue */
	struct driver_counts driver;
	struct thread_rates rates;
	struct latency_rates latency;
};

/* Entries of an object in a snapshot. */
uint32_t subject_count(const struct ringtap_snapshot *f, enum rt_metric_object object);
/* Entry i, less than that. sums: also what takes sums over queues (calls of ports, rates of
 * threads). It lives as long as span. */
void subject_make(struct subject *x, const struct span *span, enum rt_metric_object object,
	uint32_t i, bool sums);
/* Gap or microburst i of a thread that is in the span. False: there are no more. */
bool subject_gap(struct subject *x, const struct subject *thread, uint32_t i);
/* Whether a port, mempool, ring, xstat or device is there no more, or a thread has ended. */
bool subject_gone(const struct subject *x);
/* Whether entry i belongs to the ports that are chosen; what has no port, as mempools, always does.
 */
bool subject_wanted(const struct span *s, enum rt_metric_object object, uint32_t i);

/* tx: of a port's calls, those of TX. */
void metric_get(const struct subject *x, enum rt_metric_id id, bool tx, struct metric_value *v);
/* Adds all metrics of an object that have a key. */
void metrics_json(json_t *j, const struct subject *x, enum rt_metric_object object, bool tx);
/* A port of a snapshot; null where it has no such port. */
json_t *stats_port_json(const struct ringtap_snapshot *f, uint32_t port);
/* The part of a device that a statistic is of, as "port 0"; "": the device itself. */
#define PART_NAME_LEN 24
const char *device_part(char buf[PART_NAME_LEN], const struct ringtap_device_stat *d);
const char *device_kind(const struct ringtap_device_stat *d);
/* Values of statistics of devices, and of lcores. */
double device_number(const struct subject *x, enum rt_metric_id id);
double lcore_number(const struct subject *x, enum rt_metric_id id);
/* Adds the metrics of all objects of an interval. */
void metrics_json_all(json_t *j, const struct span *s);

#endif
