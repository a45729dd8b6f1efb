/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls of drivers against removal of ports: closing a port frees memory that its driver uses. */
#ifndef RINGTAP_PROBE_DPDK_PORT_CALL_H
#define RINGTAP_PROBE_DPDK_PORT_CALL_H

#include <stdbool.h>
#include <stdint.h>

/* Brackets calls of a port's driver; control lock held. False: the port is being removed, or
 * DPDK no longer waits: do not call it. After true call rt_port_call_end(). */
bool rt_port_call_begin(uint16_t port);
void rt_port_call_end(void);

/* In the application's thread that adds or removes the port. going: no call begins any more;
 * waits for a call in progress, but at most rt_probe_limits.port_call_ms. */
void rt_port_call_bar(uint16_t port, bool going);
/* No port is being removed. */
void rt_port_call_unbar_all(void);

#endif
