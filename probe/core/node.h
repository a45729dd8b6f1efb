/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RINGTAP_PROBE_CORE_NODE_H
#define RINGTAP_PROBE_CORE_NODE_H

#include <stdint.h>

/* The NUMA node of the CPUs that a thread of this process may run on. RT_NODE_UNKNOWN: there is no
 * such thread, its first and last CPU are of different nodes, or the kernel names no node. */
int rt_node_of_thread(uint32_t tid);

#endif
