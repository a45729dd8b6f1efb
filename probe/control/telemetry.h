/* SPDX-License-Identifier: BSD-3-Clause */
/* The statistics for DPDK's own telemetry (dpdk-telemetry.py). */
#ifndef RINGTAP_PROBE_CONTROL_TELEMETRY_H
#define RINGTAP_PROBE_CONTROL_TELEMETRY_H

#include <rte_telemetry.h>

#include "common/metrics.h"
#include "probe/monitor/stats.h"

/* Before rte_eal_init() or after. */
void rt_telemetry_register(void);
void rt_telemetry_register_trace(void);

/* The smallest value that a share of ten thousand of the counts does not exceed: the middle of its
 * bucket, cycles; 0: no counts. */
uint64_t rt_telemetry_quantile(const uint64_t *bucket, uint64_t count, unsigned share);

/* rte_telemetry 22.11 writes arrays of containers on the outermost level only: a list is a
 * dictionary with the keys 0, 1, …, up to 256 of them, and an answer is cut off at 16 KiB:
 * entries beyond are omitted and counted. */
struct rt_tel_list {
	struct rte_tel_data *dict;
	unsigned count, omitted; /* entries */
	size_t bytes;            /* as text */
};

/* The name of a metric, as in the JSON of ringtap top. */
#define KEY(id) (rt_metrics[RT_M_##id].key)

/* Into an entry of a list, which grows by that. */
void rt_telemetry_uint(struct rte_tel_data *d, const char *name, uint64_t v);
void rt_telemetry_int(struct rte_tel_data *d, const char *name, int v);
void rt_telemetry_string(struct rte_tel_data *d, const char *name, const char *v);

/* Makes an empty dictionary, NULL: no memory; puts it into a list, which then owns it. */
struct rte_tel_data *rt_telemetry_dict(void);
void rt_telemetry_add(struct rt_tel_list *list, struct rte_tel_data *d);

/* Answer of a command, control lock held. port: decimal id, NULL: all. */
void rt_telemetry_ports(struct rt_stats *f, const char *port, struct rt_tel_list *out);
void rt_telemetry_threads(struct rt_stats *f, const char *port, struct rt_tel_list *out);
void rt_telemetry_polling(struct rt_stats *f, const char *port, struct rt_tel_list *out);
void rt_telemetry_latency(struct rt_stats *f, const char *port, struct rt_tel_list *out);
void rt_telemetry_mempools(struct rt_stats *f, const char *port, struct rt_tel_list *out);
void rt_telemetry_addresses(struct rt_stats *f, const char *port, struct rt_tel_list *out);

#endif
