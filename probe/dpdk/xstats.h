/* SPDX-License-Identifier: BSD-3-Clause */
/* Extended statistics of the ports' drivers (rte_eth_xstats_get()). */
#ifndef RINGTAP_PROBE_DPDK_XSTATS_H
#define RINGTAP_PROBE_DPDK_XSTATS_H

#include <stdint.h>

#include <rte_ethdev.h>

/* A port's. Some drivers put an array of this length on the stack of the control thread. */
#define RT_XSTATS_MAX 4096

/* These call the driver; control lock held. Like rt_port_stats(), they do not call the driver of a
 * port that is stopped, as it may be about to be closed or configured: -ENODEV then, and for ports
 * without a driver and in a secondary process. */

/* Returns the number of values; more than RT_XSTATS_MAX: none was read. */
int rt_port_xstats(uint16_t port, struct rte_eth_xstat values[RT_XSTATS_MAX]);
/* The names of all of them, by number. -EAGAIN: the driver has another number of names. */
int rt_port_xstat_names(uint16_t port, struct rte_eth_xstat_name *names, uint32_t count);

#endif
