/* SPDX-License-Identifier: BSD-3-Clause */
/* Interfaces of the kernel. */
#ifndef RINGTAP_CLI_HOST_NETDEV_H
#define RINGTAP_CLI_HOST_NETDEV_H

#include <stdbool.h>
#include <stdint.h>

struct netdev {
	uint32_t mtu;
	uint32_t queues; /* that it receives by */
	bool up;
	bool merges; /* packets are handed on in larger pieces than the MTU: GRO, LRO, TSO, GSO */
};

/* 0; -ENODEV; -ENAMETOOLONG; … */
int netdev_get(const char *name, struct netdev *out);
/* Whether we may listen to any. 0, -EPERM, … */
int netdev_allowed(void);

#endif
