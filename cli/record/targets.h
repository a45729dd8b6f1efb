/* SPDX-License-Identifier: BSD-3-Clause */
/* Which applications and ports the -i options mean. */
#ifndef RINGTAP_CLI_RECORD_TARGETS_H
#define RINGTAP_CLI_RECORD_TARGETS_H

#include <stdbool.h>
#include <stddef.h>

#include "config.h"
#include "ringtap/reader.h"

/* An application to attach to, in order of attaching. */
struct target {
	const char *name, *dir; /* live as long as targets.apps */
	struct ringtap_target ports[CONFIG_IFACES_MAX];
	const struct iface_config *ifaces[CONFIG_IFACES_MAX]; /* sources of the ports */
	unsigned port_count;
	bool secondary; /* a secondary process */
	bool implied;   /* meant by its primary */
	int watch;      /* of newcomers.c */
};

struct targets {
	struct ringtap_apps *apps;
	struct target *list;
	unsigned count;
	unsigned named; /* the first ones, which are not implied */
};

/* Finds the applications and fills in ports. A primary process means its secondaries as well, as
 * far as they have the ports; those without the probe are reported and left out. Prints what is
 * wrong and returns -errno: -ENOENT, -EINVAL, … Free with targets_free() in any case. */
int targets_resolve(struct targets *t, const struct record_config *cfg);
void targets_free(struct targets *t);
/* Leaves out an implied one. */
void targets_remove(struct targets *t, unsigned i);

#endif
