/* SPDX-License-Identifier: BSD-3-Clause */
/* --collectors: which statistics are counted. */
#ifndef RINGTAP_MEASURE_COLLECTORS_H
#define RINGTAP_MEASURE_COLLECTORS_H

#include <jansson.h>

#include "ringtap/monitor.h"

#define COLLECTOR_NAMES "polls|bytes|busy|gaps|latency|addresses|pools"

/* "polls,gaps" or "all" to RINGTAP_*; 0, after a message: not a list of them. */
unsigned collectors_parse(const char *command, const char *text);
/* An array of their names. */
json_t *collectors_json(unsigned collectors);

#endif
