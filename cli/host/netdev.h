/* SPDX-License-Identifier: BSD-3-Clause */
/* Interfaces of the kernel. */
#ifndef RINGTAP_CLI_HOST_NETDEV_H
#define RINGTAP_CLI_HOST_NETDEV_H

#include <stdbool.h>
#include <stdint.h>

/* LINKTYPE_… (pcap-linktype(7)) of what packet sockets deliver. 0: none that ringtap-host knows. */
#define NETDEV_ETHERNET 1
#define NETDEV_RAW      101
#define NETDEV_SLL      113
#define NETDEV_SLL2     276

struct netdev {
	uint16_t linktype;
	uint16_t arphrd; /* hardware type of <net/if_arp.h> */
	uint32_t mtu;
	uint32_t queues; /* that it receives by */
	bool up;
	bool merges; /* packets are handed on in larger pieces than the MTU: GRO, LRO, TSO, GSO */
};

/* name may be "any". 0; -ENODEV; -ENAMETOOLONG; … */
int netdev_get(const char *name, struct netdev *out);
/* Whether we may listen to any. 0, -EPERM, … */
int netdev_allowed(void);

#endif
