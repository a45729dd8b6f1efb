/* SPDX-License-Identifier: BSD-3-Clause */
/* Cycles that the application counts of its lcores (rte_lcore_register_usage_cb()). */
#ifndef RINGTAP_PROBE_DPDK_LCORES_H
#define RINGTAP_PROBE_DPDK_LCORES_H

#include <stdint.h>

/* Calls f with the cycles of each lcore that the application's callback knows: none without a
 * callback, before DPDK 23.03, and where the callback is not found. The control thread, as DPDK's
 * telemetry, runs the callback. */
void rt_lcores_each(void (*f)(unsigned lcore, uint64_t total, uint64_t busy, void *arg), void *arg);

#endif
