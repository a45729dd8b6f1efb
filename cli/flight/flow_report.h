/* SPDX-License-Identifier: BSD-3-Clause */
/* The largest flows of an incident. */
#ifndef RINGTAP_CLI_FLIGHT_FLOW_REPORT_H
#define RINGTAP_CLI_FLIGHT_FLOW_REPORT_H

#include <jansson.h>

#include "web/view.h"

struct incident;

/* The caller decrefs. */
json_t *flow_report_json(const struct incident *i);
/* Adds a table of them. */
void flow_report_view(const struct incident *i, struct view *v);

#endif
