/* SPDX-License-Identifier: BSD-3-Clause */
/* The endpoint */
#ifndef RINGTAP_CLI_EXPORT_SERVER_H
#define RINGTAP_CLI_EXPORT_SERVER_H

#include "families.h"
#include "trigger.h"

struct export_server;

#define EXPORT_HOSTS_MAX 16

struct export_config {
	const char *listen; /* "[HOST]:PORT", port 0: any */
	struct export_triggers triggers;
	struct export_limits limits;
	const char *hosts[EXPORT_HOSTS_MAX + 1]; /* names of this host, and that of listen */
	unsigned host_count;
};

/* Serves w. 0, or -errno after printing why. url becomes where it can be had. config lives as long
 * as the server. */
int export_serve(struct export_server **out, struct watch *w, struct export_config *config,
	char *url, size_t url_size);
/* Ends clients that are too slow. Call it again and again. */
void export_expire(struct export_server *s);
void export_stop(struct export_server *s);

#endif
