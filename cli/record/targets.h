/* SPDX-License-Identifier: BSD-3-Clause */
/* Which applications and ports the -i options mean. */
#ifndef RINGTAP_CLI_RECORD_TARGETS_H
#define RINGTAP_CLI_RECORD_TARGETS_H

#include <stddef.h>

#include "config.h"
#include "ringtap/reader.h"

/* An application to attach to, in order of attaching. */
struct target {
	const char *name, *dir; /* live as long as targets.apps */
	struct ringtap_target ports[CONFIG_IFACES_MAX];
	const struct iface_config *ifaces[CONFIG_IFACES_MAX]; /* sources of the ports */
	unsigned port_count;
};

struct targets {
	struct ringtap_apps *apps;
	struct target *list;
	unsigned count;
};

/* Finds the applications and fills in ports. Prints what is wrong and returns -errno: -ENOENT,
 * -EINVAL, … Free with targets_free() in any case. */
int targets_resolve(struct targets *t, const struct record_config *cfg);
void targets_free(struct targets *t);

#endif
