/* SPDX-License-Identifier: BSD-3-Clause */
/* An incident for programs that show traces: trace.json. */
#ifndef RINGTAP_CLI_FLIGHT_TIMELINE_H
#define RINGTAP_CLI_FLIGHT_TIMELINE_H

#include <jansson.h>

struct incident;

/* With snapshots first … last of the history (none if they are equal). The caller decrefs; NULL: no
 * memory. */
json_t *timeline_json(const struct incident *i, unsigned first, unsigned last);

#endif
