/* SPDX-License-Identifier: BSD-3-Clause */
/* What was renamed or removed between DPDK 22.11 and 26.07. Nowhere else does the version matter.
 */
#ifndef RINGTAP_PROBE_COMPAT_H
#define RINGTAP_PROBE_COMPAT_H

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

#include <rte_lcore.h>
#include <rte_version.h>

#if RTE_VERSION >= RTE_VERSION_NUM(23, 11, 0, 0)
#include <rte_thread.h>
#endif

/* Starts a detached thread off the CPUs that lcores poll on. 0 or -errno. */
static inline int rt_compat_control_thread(const char *name, uint32_t (*run)(void *))
{
#if RTE_VERSION >= RTE_VERSION_NUM(23, 11, 0, 0)
	rte_thread_t id;
	int ret = rte_thread_create_control(&id, name, run, NULL);

	return ret ? -abs(ret) : -abs(rte_thread_detach(id));
#else
	pthread_t id;
	int ret = rte_ctrl_thread_create(&id, name, NULL, (void *(*)(void *))(uintptr_t)run, NULL);

	return ret ? -abs(ret) : -pthread_detach(id);
#endif
}

#endif
