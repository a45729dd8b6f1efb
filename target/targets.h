/* SPDX-License-Identifier: BSD-3-Clause */
/* Which applications and ports the targets of a command line mean. */
#ifndef RINGTAP_TARGET_TARGETS_H
#define RINGTAP_TARGET_TARGETS_H

#include <stdbool.h>
#include <stddef.h>

#include "capture_config.h"
#include "ringtap/reader.h"

/* An application to attach to, in order of attaching. */
struct target {
	const char *name, *dir; /* live as long as targets.apps */
	struct ringtap_target ports[CAPTURE_IFACES_MAX];
	const struct iface_config *ifaces[CAPTURE_IFACES_MAX]; /* sources of the ports */
	struct filter filters[CAPTURE_IFACES_MAX];             /* for ports that are not Ethernet */
	unsigned port_count;
	bool secondary; /* a secondary process */
	bool implied;   /* meant by its primary */
	int watch;      /* descriptor of inotify that the user of this list has for it */
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
int targets_resolve(struct targets *t, const struct capture_config *cfg);
void targets_free(struct targets *t);
/* For targets_resolve(): ports that have another link type than Ethernet become targets of their
 * own, with filters of that type. Prints what is wrong; -errno. */
int targets_add_links(struct targets *t, const struct capture_config *cfg);
void target_free_filters(struct target *t);

/* Attaches the capture to all of them; those that are implied and cannot be attached to are left
 * out. Prints what is wrong. */
int targets_attach(
	struct targets *t, const struct capture_config *cfg, struct ringtap_capture *cap);
/* The target, or the defaults, that an interface of the capture stems from. */
const struct iface_config *targets_iface(const struct targets *t, const struct capture_config *cfg,
	const struct ringtap_interface *i);

#endif
