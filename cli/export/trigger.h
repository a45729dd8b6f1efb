/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests to ringtap flight */
#ifndef RINGTAP_CLI_EXPORT_TRIGGER_H
#define RINGTAP_CLI_EXPORT_TRIGGER_H

#include <stdbool.h>
#include <stdint.h>

#define EXPORT_TRIGGERS_MAX 64

struct export_triggers {
	const char *folders[EXPORT_TRIGGERS_MAX];
	uint64_t sent_ns[EXPORT_TRIGGERS_MAX]; /* CLOCK_MONOTONIC, of the last accepted POST */
	unsigned count;
	bool from_any; /* not only clients of this host */
};

/* -EINVAL after a message. The text lives as long as t. */
int export_trigger_add(struct export_triggers *t, const char *folder);

struct MHD_Connection;
/* Answers a POST; one thread calls it. Returns the status of the answer; *text is static. */
unsigned export_trigger(
	struct export_triggers *t, struct MHD_Connection *c, const char *url, const char **text);

#endif
