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
	struct ringtap_want wants[CONFIG_IFACES_MAX];
	const struct iface_config *ifaces[CONFIG_IFACES_MAX]; /* that the wants stem from */
	unsigned want_count;
};

struct targets {
	struct ringtap_apps *apps;
	struct target *list;
	unsigned count;
};

/* Splits [APP:]PORT or APP. If what stands before the first colon is one of the applications, *app
 * becomes its index; else -1, and all of spec is the port: names such as 0000:03:00.0 have colons
 * of their own. *port becomes NULL for all ports. */
void target_split(
	const char *spec, const char *const *apps, size_t count, int *app, const char **port);

/* Whether a port is the one given by name or number. */
bool target_port_matches(const struct ringtap_port_info *p, const char *port);

/* The application that is meant where none is named: the one that has such a port (NULL: the
 * probe). -1 after saying, as command, why there is none. */
int targets_only_app(const char *command, const struct ringtap_apps *apps, const char *const *names,
	const char *port);

/* Finds the applications and fills in wants. Says what is wrong and returns -errno: -ENOENT,
 * -EINVAL, … Free with targets_free() in any case. */
int targets_resolve(struct targets *t, const struct record_config *cfg);
void targets_free(struct targets *t);

#endif
