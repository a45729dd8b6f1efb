/* SPDX-License-Identifier: BSD-3-Clause */
/* --collectors: which statistics are counted. */
#ifndef RINGTAP_MEASURE_COLLECTORS_H
#define RINGTAP_MEASURE_COLLECTORS_H

#include <jansson.h>

#include "base/command.h"
#include "ringtap/monitor.h"

#define LATENCY_SAMPLE_MAX (1u << 20)
/* The option --latency-sample, an unsigned of the command's context. */
#define LATENCY_SAMPLE_OPTION(type, field)                                                         \
	{                                                                                          \
		OPTION_TO(type, field), OPTION_NUMBER, 0, "latency-sample", "N", NULL, 1,          \
			LATENCY_SAMPLE_MAX,                                                        \
			"Time one packet in N only, which costs the application less (default: 1)" \
	}

#define COLLECTOR_NAMES "polls|bytes|busy|gaps|latency|addresses|pools|xstats|devices"

/* "polls,gaps" or "all" to RINGTAP_*; 0, after a message: not a list of them. */
unsigned collectors_parse(const char *command, const char *text);
/* An array of their names. */
json_t *collectors_json(unsigned collectors);

#endif
