/* SPDX-License-Identifier: BSD-3-Clause */
/* What ethdev says of the application's ports, and their coming and going. */
#ifndef RINGTAP_PROBE_PORTS_H
#define RINGTAP_PROBE_PORTS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/proto.h"

#define RT_NIC_COUNTERS 6 /* ipackets, opackets, imissed, ierrors, rx_nombuf, oerrors */

/* Changes whenever the port id changes hands. */
uint32_t rt_port_generation(uint16_t port);

/* Calls changed() on every NEW and DESTROY, in the thread of the application that does it, after
 * the generation has changed; a port that is being destroyed still works in there. 0 or -errno. */
int rt_ports_watch(void (*changed)(void));
void rt_ports_unwatch(void);

/* False from the moment on that a port begins to go away. */
bool rt_port_alive(uint16_t port);

/* Next such port id from port on, RTE_MAX_ETHPORTS if there is none. */
uint16_t rt_port_next(uint16_t port);

/* 0 or -ENODEV. Of a stopped port they say what is known, as it may be about to be closed. */
int rt_port_describe(uint16_t port, struct rt_msg_port *out);
int rt_port_counters(uint16_t port, uint64_t out[RT_NIC_COUNTERS]);
/* All that ethdev counts, absolute, and what the application says it missed. -ENODEV: the port is
 * gone or stopped. */
struct rte_eth_stats;
int rt_port_stats(uint16_t port, struct rte_eth_stats *out);
/* Numbers of queues by direction; cheap, and reads only. */
int rt_port_queues(uint16_t port, uint32_t out[2]);

/* What the application says of its port: see <ringtap/probe.h>. 0 or -EINVAL. */
int rt_port_set_name(uint16_t port, const char *name);
int rt_port_set_missed(uint16_t port, uint64_t packets);
int rt_port_set_stamped(uint16_t port);
bool rt_port_stamped(uint16_t port);

/* Does the port field of a want (name, decimal id, empty for all) mean this port? */
bool rt_port_matches(const struct rt_msg_port *port, const char *want);

#endif
