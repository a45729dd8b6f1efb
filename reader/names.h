/* SPDX-License-Identifier: BSD-3-Clause */
/* Names that Open vSwitch's users gave to its ports: ethdev does not know them, its database does.
 */
#ifndef RINGTAP_READER_NAMES_H
#define RINGTAP_READER_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/segment.h"

#define RT_SWITCH_PORTS_MAX 1024

struct ringtap_conn;

/* The ports of type dpdk in the switch's database. Zeroed: not queried yet. */
struct rt_names {
	struct rt_switch_port *list;
	size_t count;
	uint64_t queried_ns; /* CLOCK_MONOTONIC */
	bool useless;        /* no Open vSwitch, or its database does not answer */
	bool live;           /* packets flow: the reader of the rings must not wait for long */
};

void rt_names_free(struct rt_names *n);

/* How long the database may take; a variable for the tests' sake. */
extern int rt_names_ms;

/* Puts the name that the switch has for a port into name, cleaned for terminals; device, ethdev's
 * name, where there is none. False: there is none. Queries the database, ten times a second at
 * most, as names and numbers of ports change, and never again where that fails. */
bool rt_switch_name(
	struct ringtap_conn *c, uint16_t port_id, const char *device, char name[RT_NAME_LEN]);

/* ethdev's name of what a user calls a port, into device; the same text where that is no name of
 * the switch. Requests the list of ports, so only before RT_MSG_OPEN. */
void rt_switch_device(struct ringtap_conn *c, const char *name, char device[RT_NAME_LEN]);

#endif
