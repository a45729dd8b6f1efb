/* SPDX-License-Identifier: BSD-3-Clause */
/* The file of a flight recorder beside the packets of an incident. */
#ifndef RINGTAP_CLI_EXPLAIN_INCIDENT_H
#define RINGTAP_CLI_EXPLAIN_INCIDENT_H

#include "counted/counted.h"

/* The application's own counters of drops around the incident whose packets are in this file. The
 * caller frees *document after *c. False: there are none. */
bool incident_counted(const char *packets, struct counted *c, json_t **document);

#endif
