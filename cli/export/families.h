/* SPDX-License-Identifier: BSD-3-Clause */
/* All families of metrics */
#ifndef RINGTAP_CLI_EXPORT_FAMILIES_H
#define RINGTAP_CLI_EXPORT_FAMILIES_H

#include "recorder/answers.h"
#include "flows/live.h"
#include "recorders.h"

struct export_limits {
	unsigned of_app, in_all; /* samples */
};

/* All families. flows: NULL without them. */
void export_all(struct export_text *t, const struct watch *w, const struct export_limits *l,
	struct recorder_answers *r, struct flows_live *flows);

#endif
