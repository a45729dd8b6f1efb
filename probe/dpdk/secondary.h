/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What differs in a DPDK secondary process. It shares the primary's memory, with the locks in it:
 * of the heap, of the lists of mempools, memzones and mbuf fields. Nothing releases a lock that a
 * process held when it was killed, and the primary would wait for it for ever. So the probe of a
 * secondary takes such locks only where a capture begins or ends, which ethdev's callbacks require,
 * never periodically; mempools are shown by the primary.
 *
 * Drivers keep their state in the shared memory as well. The primary may stop, close or reconfigure
 * a port at any time, and ethdev shows that in the primary only. So the control functions of
 * drivers are called once per port here: NIC counters, link and clock are those that the primary
 * shows.
 *
 * There is no telemetry, which would wake the probe: its control thread stays, and sleeps on its
 * socket while no reader is connected.
 */
#ifndef RINGTAP_PROBE_DPDK_SECONDARY_H
#define RINGTAP_PROBE_DPDK_SECONDARY_H

#include <stdbool.h>

#include <rte_eal.h>

static inline bool rt_is_secondary(void)
{
	return rte_eal_process_type() == RTE_PROC_SECONDARY;
}

/* Whether this process has started a few seconds ago, or that is unknown: its ports may still come
 * up. */
bool rt_process_is_new(void);

/* A number of this process among those of its runtime folder, for as long as it lives: 0 for a
 * primary, 1 to 7 for secondaries. -EBUSY: all are taken; -errno. Control lock held. */
#define RT_PROCESSES_MAX 8
int rt_process_number(void);

#endif
