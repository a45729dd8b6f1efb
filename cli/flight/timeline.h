/* SPDX-License-Identifier: BSD-3-Clause */
/* An incident for programs that show traces: trace.json. */
#ifndef RINGTAP_CLI_FLIGHT_TIMELINE_H
#define RINGTAP_CLI_FLIGHT_TIMELINE_H

#include <jansson.h>

#include "ringtap/monitor.h"

struct incident;

/* A polling gap or a busy period of a thread, of which it has one. */
struct activity {
	const struct ringtap_snapshot *snapshot;
	uint32_t thread; /* index in snapshot, the same in later ones */
	const struct ringtap_gap *gap;
	const struct ringtap_microburst *burst;
};

/* Calls fn for each that touches the window, once, in snapshots first … last of the history. */
void timeline_walk(const struct incident *i, unsigned first, unsigned last,
	void (*fn)(void *ctx, const struct activity *a), void *ctx);

/* With snapshots first … last of the history (none if they are equal). The caller decrefs; NULL: no
 * memory. */
json_t *timeline_json(const struct incident *i, unsigned first, unsigned last);

#endif
