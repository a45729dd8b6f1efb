/* SPDX-License-Identifier: BSD-3-Clause */
/* Renames, additions and removals between DPDK 21.11 and 26.07. No other file depends on the
 * version. */
#ifndef RINGTAP_PROBE_DPDK_COMPAT_H
#define RINGTAP_PROBE_DPDK_COMPAT_H

#include <assert.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

#include <rte_dev.h>
#include <rte_lcore.h>
#include <rte_telemetry.h>
#include <rte_version.h>

#include "common/mbuf_history.h"

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

#if RTE_VERSION >= RTE_VERSION_NUM(22, 11, 0, 0)
#define RT_COMPAT_BUS_CLEANUP     true
#define rt_compat_bus_name(bus)   rte_bus_name(bus)
#define rt_compat_mbuf_iova(mbuf) rte_mbuf_iova_get(mbuf)
#define rt_compat_device_name(d)  rte_dev_name(d)
typedef uint64_t rt_compat_event_id; /* an eventdev's statistic */
#else
#define RT_COMPAT_BUS_CLEANUP     false /* rte_eal_cleanup() does not call buses */
#define rt_compat_bus_name(bus)   (((const struct rte_bus *)(bus))->name)
#define rt_compat_mbuf_iova(mbuf) ((mbuf)->buf_iova)
#define rt_compat_device_name(d)  ((d)->name)
typedef unsigned rt_compat_event_id;
#endif

#if RTE_VERSION >= RTE_VERSION_NUM(23, 3, 0, 0)
#define rt_compat_tel_uint(dict, name, v)  rte_tel_data_add_dict_uint(dict, name, v)
#define rt_compat_tel_array_uint(array, v) rte_tel_data_add_array_uint(array, v)
#define RT_COMPAT_TEL_UINT                 RTE_TEL_UINT_VAL
#else
#define rt_compat_tel_uint(dict, name, v)  rte_tel_data_add_dict_u64(dict, name, v)
#define rt_compat_tel_array_uint(array, v) rte_tel_data_add_array_u64(array, v)
#define RT_COMPAT_TEL_UINT                 RTE_TEL_U64_VAL
struct rte_lcore_usage {
	uint64_t total_cycles, busy_cycles;
};
typedef int (*rte_lcore_usage_cb)(unsigned lcore, struct rte_lcore_usage *usage);
/* An object for 22.11 also serves 23.03 and 23.07, which have it. */
extern void rte_lcore_register_usage_cb(rte_lcore_usage_cb cb);
#endif

#if RTE_VERSION >= RTE_VERSION_NUM(25, 11, 0, 0)
#include <rte_mbuf.h>

static_assert(sizeof(rte_mbuf_history_t) == 8 && RTE_MBUF_HISTORY_BITS == RT_HISTORY_BITS,
	"the layout of an mbuf's history");
static_assert(sizeof(RT_HISTORY_FIELD) == sizeof(RTE_MBUF_DYNFIELD_HISTORY_NAME), "its name");
#define RT_COMPAT_SAME(op, number, text) static_assert(RTE_MBUF_HISTORY_OP_##op == (number), text);
RT_HISTORY_OPS(RT_COMPAT_SAME)
#undef RT_COMPAT_SAME
#endif

#endif
