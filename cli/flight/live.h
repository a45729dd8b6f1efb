/* SPDX-License-Identifier: BSD-3-Clause */
/* ringtap flight top: what recorders keep, and their conditions. */
#ifndef RINGTAP_CLI_FLIGHT_LIVE_H
#define RINGTAP_CLI_FLIGHT_LIVE_H

#include <stdbool.h>
#include <jansson.h>
#include <stdint.h>

struct live {
	const char *app; /* NULL: all */
	uint64_t interval_ns;
	uint64_t duration_ns; /* 0: until a signal */
	uint64_t updates;     /* 0: no limit */
	bool once, json;
};

/* Returns enum status. */
int live_run(struct live *v);

#define LIVE_TIMEOUT_MS 2000 /* a recorder may be stopped */

/* The document of the recorders of an application, NULL: of all; the caller decrefs. Those of each
 * application get timeout_ms together; *late, if not NULL: some did not answer within. NULL: no
 * memory, or applications cannot be found. */
json_t *live_ask(const char *app, int timeout_ms, bool *late);

#endif
