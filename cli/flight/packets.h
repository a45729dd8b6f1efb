/* SPDX-License-Identifier: BSD-3-Clause */
/* The thread that writes an incident's packets. */
#ifndef RINGTAP_CLI_FLIGHT_PACKETS_H
#define RINGTAP_CLI_FLIGHT_PACKETS_H

#include "sink/output.h"

extern const struct output_options packets_options;

/* Takes a struct incident, whose done it sets at the end. */
void *packets_write(void *incident);

#endif
