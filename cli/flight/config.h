/* SPDX-License-Identifier: BSD-3-Clause */
/* Configuration of `ringtap flight`: nothing changes it while it records. */
#ifndef RINGTAP_CLI_FLIGHT_CONFIG_H
#define RINGTAP_CLI_FLIGHT_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "target/capture_config.h"
#include "trigger.h"

#define FLIGHT_TRIGGERS_MAX 32 /* beside commands, see ASK_CONDITIONS_MAX */

struct flight_config {
	const char *words[CAPTURE_IFACES_MAX]; /* APP[:PORT], :PORT */
	unsigned word_count;                   /* 0: all ports of the only application */
	const char *filter;
	enum ringtap_tags tags; /* what it and those of conditions mean */
	bool inner;
	uint32_t snaplen;
	unsigned directions;
	int queue;            /* -1: all */
	uint64_t duration_ns; /* 0: until a signal */
	uint64_t keep_ns;     /* 0: no limit */
	uint64_t buffer;      /* bytes */
	uint32_t sample;      /* one of N packets; 0: all */
	struct trigger triggers[FLIGHT_TRIGGERS_MAX + 1];
	unsigned trigger_count;
	struct trigger defaults; /* --before, --after, --cooldown ahead of any --on */
	unsigned collectors, latency_every;
	const char *folder;
	uint64_t max_incidents, max_disk; /* 0: no limit */
	bool attach;                      /* load the probe where it is missing */
	bool wait;                        /* for the application */
	bool quiet;
	bool ids, fates;
};

#endif
