/* SPDX-License-Identifier: BSD-3-Clause */
/* The application's ports in ethdev, and their creation and removal. */
#ifndef RINGTAP_PROBE_DPDK_PORTS_H
#define RINGTAP_PROBE_DPDK_PORTS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/proto.h"
#include "vhost.h"

#define RT_NIC_COUNTERS 6 /* ipackets, opackets, imissed, ierrors, rx_nombuf, oerrors */

/* Port ids below RTE_MAX_ETHPORTS are ethdev's. Those from there on are given to devices of the
 * vhost library, which has no such numbers: see vhost.h. They have no driver to call, counters
 * included. */
#define RT_MAX_PORTS (RTE_MAX_ETHPORTS + RT_VHOST_PORTS)

/* Changes whenever the port id passes to another port, or may have done so since
 * rt_ports_unwatch(). */
uint32_t rt_port_generation(uint16_t port);

/* For vhost.c: the port id has passed on, or will. Unlinks all from its hooks. */
void rt_port_vhost_changed(uint16_t port);

/* Calls changed() on every NEW and DESTROY event, in the application's thread that causes it,
 * after the generation has changed; a port that is being destroyed still works then. 0 or
 * -errno. */
int rt_ports_watch(void (*changed)(uint16_t port));
void rt_ports_unwatch(void);

/* Whether the number of ports is another than *count, which becomes it. A driver's functions may be
 * called only some time after ethdev shows a port; what waits for it without rt_ports_watch() tries
 * again after RT_PORTS_SETTLE_MS. */
#define RT_PORTS_SETTLE_MS 500
bool rt_ports_changed(uint32_t *count);

/* False as soon as the port's removal begins. */
bool rt_port_alive(uint16_t port);

/* These four call no driver and take no lock. The first three are also for hooks. */

/* Port ids from here on have not been in use since rt_ports_watch(). */
uint32_t rt_ports_top(void);
/* A port that is stopped, or none; never one of a secondary process. */
bool rt_port_stopped(uint16_t port);
/* Whether a port may get queues, or start, at any time: it is stopped, or new. */
bool rt_ports_restless(void);
/* Whether a port was created, started or stopped since the last call. Control lock held. */
bool rt_ports_moved(void);

/* Ports whose ids this object has no place for: the application's DPDK was built with a greater
 * RTE_MAX_ETHPORTS. */
uint32_t rt_ports_beyond(void);

/* The next port id from port on that is alive; RT_MAX_PORTS: none. */
uint16_t rt_port_next(uint16_t port);

/* The name that the application has set, else ethdev's. Never calls the driver. 0 or -ENODEV. */
int rt_port_name(uint16_t port, char out[RT_NAME_LEN]);

/* These call the driver, so use them for selected ports. All return 0 or -ENODEV. For a stopped
 * port, which may be about to be closed, they return the last known values. */

/* Link, address and MTU are at most a second old. */
int rt_port_describe(uint16_t port, struct rt_msg_port *out);
/* Numbers of queues by direction. Calls the driver only when they have changed. */
int rt_port_queues(uint16_t port, uint32_t out[2]);
/* All counters of ethdev, and the misses that the application reports; at most age_ms old. They are
 * carried over when the driver's have begun again: epoch then changes, and what was counted after
 * the reading before is missing. Unnoticed if by the next reading every counter has outgrown its
 * value. -ENODEV: the port is gone or stopped, or this is a secondary process. */
#define RT_PORT_COUNTERS 8
struct rt_port_stats {
	uint64_t ipackets, opackets, ibytes, obytes, imissed, ierrors, rx_nombuf, oerrors;
	uint32_t epoch;
};
int rt_port_stats(uint16_t port, uint32_t age_ms, struct rt_port_stats *out);
int rt_port_counters(uint16_t port, uint32_t age_ms, uint64_t out[RT_NIC_COUNTERS]);
/* The current values, also of a stopped port: called once, where counting begins. */
int rt_port_first_counters(uint16_t port, uint64_t out[RT_NIC_COUNTERS]);

/* By direction, of queue 0, as rt_port_describe() read them; 0: unknown. */
void rt_port_descriptors(uint16_t port, uint32_t out[2]);

/* Whether the port field of a target (name, decimal id, empty for all) selects this port. Never
 * calls the driver. */
bool rt_port_matches(uint16_t port, const char *wanted);
/* The same, and the link type: a filter is for one, and so are readers. */
bool rt_target_matches(uint16_t port, const struct rt_msg_target *target);

/* Whether it is the port that had this name, driver and address before its removal. */
bool rt_port_same(
	const struct rt_msg_port *port, const char *name, const char *driver, const uint8_t mac[6]);

#endif
