/* SPDX-License-Identifier: BSD-3-Clause */
/* Flight recorders of the applications */
#ifndef RINGTAP_CLI_EXPORT_RECORDERS_H
#define RINGTAP_CLI_EXPORT_RECORDERS_H

#include "labels.h"

/* The series of a metric of theirs. */
void export_recorders(struct export_text *t, enum rt_metric_id id, const struct exported *x);

#endif
