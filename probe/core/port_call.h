/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls of drivers against ports that go away: closing a port frees what its driver works with. */
#ifndef RINGTAP_PROBE_CORE_PORT_CALL_H
#define RINGTAP_PROBE_CORE_PORT_CALL_H

#include <stdbool.h>
#include <stdint.h>

/* Around calls of a port's driver, by holders of the control lock. False: the port is going away,
 * or DPDK does not wait any more, and it must not be called. Else rt_port_call_end(). */
bool rt_port_call_begin(uint16_t port);
void rt_port_call_end(void);

/* In the application's thread that adds or removes the port. Going: no call begins any more; one
 * that lasts is waited for, but rt_port_call_ms at most. */
void rt_port_call_bar(uint16_t port, bool going);
/* No port is going away. */
void rt_port_call_unbar_all(void);

/* A driver may take as long as it likes, or need what the waiting thread holds. A variable for the
 * tests' sake. */
extern unsigned rt_port_call_ms;

#endif
