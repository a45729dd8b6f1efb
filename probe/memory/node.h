/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RINGTAP_PROBE_MEMORY_NODE_H
#define RINGTAP_PROBE_MEMORY_NODE_H

#include <sched.h>
#include <stdint.h>

/* The NUMA node of these CPUs. RT_NODE_UNKNOWN: there are none, the first and the last one are of
 * different nodes, or the kernel names no node. */
int32_t rt_node_of_cpus(const cpu_set_t *set);

#endif
