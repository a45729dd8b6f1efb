/* SPDX-License-Identifier: BSD-3-Clause */
/* Counters of DPDK's libraries of event, crypto and DMA devices, if the application uses them. */
#ifndef RINGTAP_PROBE_DPDK_DEVICES_H
#define RINGTAP_PROBE_DPDK_DEVICES_H

#include <stdbool.h>
#include <stdint.h>

struct rt_device_stat {
	const char *device, *name; /* only until the function returns */
	uint8_t kind;              /* enum rt_device_kind */
	uint8_t part;              /* enum rt_device_part */
	uint16_t id, number;       /* the device's in its library, the part's in the device */
	uint64_t value;
};

/* Calls f with each statistic of the devices in use: eventdevs that are started, crypto devices
 * whose queue pairs are set up, DMA devices with channels. Control lock held. These are calls of
 * drivers, as those by DPDK's telemetry: the library does not announce that a device is about to be
 * stopped or closed. beyond: statistics that could not be read, as there are too many of one part.
 * False: not in a secondary process, and not when DPDK ends. */
bool rt_devices_each(
	void (*f)(const struct rt_device_stat *s, void *arg), void *arg, uint32_t *beyond);

#endif
