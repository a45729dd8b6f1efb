/* SPDX-License-Identifier: BSD-3-Clause */
/* The endpoint */
#ifndef RINGTAP_CLI_EXPORT_SERVER_H
#define RINGTAP_CLI_EXPORT_SERVER_H

#include "families.h"
#include "serve/serve.h"
#include "trigger.h"

struct export_server;

struct export_config {
	struct serve_options serve;
	struct export_triggers triggers;
	struct export_limits limits;
	uint32_t top_flows; /* that each application exports; 0: none */
};

/* Serves w. 0, or -errno after printing why. url becomes where it can be had. config lives as long
 * as the server. */
int export_serve(struct export_server **out, struct watch *w, struct export_config *config,
	char *url, size_t url_size);
/* Ends clients that are too slow. Call it again and again. */
void export_expire(struct export_server *s);
void export_stop(struct export_server *s);

#endif
