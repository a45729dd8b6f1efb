/* SPDX-License-Identifier: BSD-3-Clause */
#include <sched.h>
#include <stdio.h>
#include <unistd.h>

#include "common/proto.h"
#include "node.h"

#define NODES_MAX 64

static int node_of_cpu(int cpu)
{
	for (int node = 0; node < NODES_MAX; node++) {
		char path[80];

		snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/node%d", cpu, node);
		if (access(path, F_OK) == 0)
			return node;
	}
	return RT_NODE_UNKNOWN;
}

int32_t rt_node_of_cpus(const cpu_set_t *set)
{
	int first = -1, last = -1, node;

	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (CPU_ISSET(cpu, set)) {
			first = first < 0 ? cpu : first;
			last = cpu;
		}
	}
	node = first < 0 ? RT_NODE_UNKNOWN : node_of_cpu(first);
	return node == node_of_cpu(last) ? node : RT_NODE_UNKNOWN;
}
