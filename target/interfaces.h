/* SPDX-License-Identifier: BSD-3-Clause */
/* An application's ports, for list and record -D. */
#ifndef RINGTAP_TARGET_INTERFACES_H
#define RINGTAP_TARGET_INTERFACES_H

#include "ringtap/reader.h"

struct app_view {
	const char *name, *dir;
	const char *primary; /* name of a secondary process's primary; "": it has ended */
	int error;           /* 0, or -errno: why the rest is empty */
	char why[256];
	struct ringtap_app_info info;
	struct ringtap_list *list; /* NULL: none */
	size_t port_count, session_count;
};

/* Reads the i-th application, waiting timeout_ms (0: the default) for each answer. Free with
 * app_view_free(). *foreign_ns: the time of applications of other users, which have some seconds
 * together; NULL: this one was named. */
void app_view_get(struct app_view *v, const struct ringtap_apps *apps, size_t i, int timeout_ms,
	uint64_t *foreign_ns);
void app_view_free(struct app_view *v);

/* record -D. Returns enum status. */
int interfaces_list(void);

#endif
