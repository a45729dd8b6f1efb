/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The probe's bus, by which EAL announces its start and its end: docs/memory-model.md. struct
 * rte_bus is in a header for drivers, which is not installed, and changes within an ABI.
 */
#ifndef RINGTAP_PROBE_DPDK_BUS_H
#define RINGTAP_PROBE_DPDK_BUS_H

#include <stdbool.h>
#include <stdint.h>

#define RT_BUS_WORDS 32

/* Has a letter for each word of struct rte_bus: bus.c. */
struct rt_bus_layout;

/* Layout of a release, such as "DPDK 22.11.5"; NULL: unknown. */
const struct rt_bus_layout *rt_bus_layout(const char *version);
/* Whether a registered bus has it. */
bool rt_bus_fits(const struct rt_bus_layout *l, const void *bus);
/* Fills what rte_bus_register() and EAL require, and the functions of the start and the end. */
void rt_bus_lay_out(const struct rt_bus_layout *l, uintptr_t bus[RT_BUS_WORDS]);

/* Compares all buses that are there with the layout. */
bool rt_bus_known(void);
/* Whether the end of DPDK will be announced, if the layout is known. */
bool rt_bus_announces_end(void);

#endif
