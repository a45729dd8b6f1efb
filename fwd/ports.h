/* SPDX-License-Identifier: BSD-3-Clause */
/* The ports that roles use: DPDK devices, or sockets on interfaces. */
#ifndef RINGTAP_FWD_PORTS_H
#define RINGTAP_FWD_PORTS_H

#include "memory.h"
#include "role.h"

/* DPDK ports that are used. */
struct ports {
	uint16_t ids[2 * ROLES_MAX];
	unsigned count;
	struct memory memory;
};

/* Finds the port of a link that a role will use as its flags rx and tx say; name: as given. -errno
 * after saying why. */
int ports_find(struct ports *p, struct link *l, const char *name);
/* Makes the rings of --ring. */
int ports_make_rings(const struct fwd_config *c);
/* Makes the pool, configures and starts the ports found so far. */
int ports_start(struct ports *p, const struct fwd_config *c);
/* Waits until the link is up. 0 or -ENETDOWN after saying so, -EINTR on a signal. */
int ports_wait(const struct link *l, uint64_t ns);
void ports_stop(struct ports *p);

#endif
