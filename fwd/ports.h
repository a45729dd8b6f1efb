/* SPDX-License-Identifier: BSD-3-Clause */
/* The ports that roles use: DPDK devices, or sockets on interfaces. */
#ifndef RINGTAP_FWD_PORTS_H
#define RINGTAP_FWD_PORTS_H

#include "memory.h"
#include "role.h"

/* DPDK ports in use, and their memory. */
struct ports {
	uint16_t ids[2 * ROLES_MAX];
	unsigned count;
	struct memory memory;
};

/* Finds a port by number, device name or name of a --ring, and sets port, name and mac of l. 0, or
 * -errno after printing why. */
int ports_find(struct ports *p, struct link *l, const char *name);
/* Creates the ports of --ring. 0, or -errno after printing why. */
int ports_make_rings(const struct fwd_config *c);
/* Creates the pool, and starts the ports found so far. 0, or -errno after printing why. */
int ports_start(struct ports *p, const struct fwd_config *c);
/* Waits up to ns until the link is up. 0, -ENETDOWN after printing it, or -EINTR on a signal. */
int ports_wait(const struct link *l, uint64_t ns);
void ports_stop(struct ports *p);

#endif
