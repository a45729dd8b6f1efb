/* SPDX-License-Identifier: BSD-3-Clause */
/* The largest flows of an incident. */
#ifndef RINGTAP_CLI_FLIGHT_FLOW_REPORT_H
#define RINGTAP_CLI_FLIGHT_FLOW_REPORT_H

#include <jansson.h>
#include <stdio.h>

struct incident;

/* The caller decrefs. */
json_t *flow_report_json(const struct incident *i);
void flow_report_page(const struct incident *i, FILE *f);

#endif
