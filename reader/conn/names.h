/* SPDX-License-Identifier: BSD-3-Clause */
/* Port names of Open vSwitch: ethdev has others, the switch's database has these. */
#ifndef RINGTAP_READER_CONN_NAMES_H
#define RINGTAP_READER_CONN_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "common/segment.h"

#define RT_SWITCH_PORTS_MAX 1024

struct ringtap_conn;

struct rt_switch_port {
	char name[RT_NAME_LEN],
		device[RT_NAME_LEN]; /* zero-terminated, without control characters: name */
	int port_id;                 /* -1: not known */
	bool vhost;                  /* a vhost-user port, with: */
	int8_t link;                 /* 1: up, 0: down, -1: the database does not have it */
	uint32_t link_mbps;          /* 0: the same */
};

/* The ports of type dpdk, dpdkvhostuserclient and dpdkvhostuser in the switch's database. Zeroed:
 * not queried yet. */
struct rt_names {
	struct rt_switch_port *list;
	size_t count;
	uint64_t next_ns; /* CLOCK_MONOTONIC: not queried again before; 0: not queried yet */
	bool useless;     /* no Open vSwitch, or its database does not answer */
	bool live;        /* a capture runs: do not block the reader of the rings */
};

void rt_names_free(struct rt_names *n);

/* Takes the ports of the database's answer, which may be any JSON; its list replaces the one
 * before. */
void rt_names_take(struct rt_names *n, const json_t *answer);

/* After a query: the next one is due 100 ms after its beginning, and no earlier than 20 times its
 * duration after its end. A database may be slow on purpose. */
void rt_names_queried(struct rt_names *n, uint64_t begin_ns, uint64_t end_ns);

/* Writes the switch's name of a port into name, without control characters; device, ethdev's name,
 * if it has none. False: none. Queries the database again, see rt_names_queried(), as names and
 * numbers of ports change, and never again after a failure. */
bool rt_switch_name(
	struct ringtap_conn *c, uint16_t port_id, const char *device, char name[RT_NAME_LEN]);

/* Link and speed of a vhost-user port as the switch's database has them replace those of the probe,
 * which knows only whether the port is polled. Other ports, and what the database does not have,
 * stay as they are. The last query is at most about a second old. */
void rt_switch_link(struct ringtap_conn *c, uint16_t port_id, const char *device, bool *link_up,
	uint32_t *link_mbps);

/* ethdev's name of the port that a user named, into device; the same text if it is not a name of
 * the switch. Requests the list of ports, so only before RT_MSG_OPEN. */
void rt_switch_device(struct ringtap_conn *c, const char *name, char device[RT_NAME_LEN]);

#endif
