/* SPDX-License-Identifier: BSD-3-Clause */
/* Flight recorders of the applications */
#ifndef RINGTAP_CLI_EXPORT_RECORDERS_H
#define RINGTAP_CLI_EXPORT_RECORDERS_H

#include "labels.h"
#include "measure/watch.h"

/* A thread that asks the flight recorders of the applications. 0 or -errno. */
struct export_recorders;
int export_recorders_start(struct export_recorders **out, struct watch *w);
void export_recorders_stop(struct export_recorders *r);
/* The last answers of an application's; NULL: none yet. The caller decrefs. */
json_t *export_recorders_of(struct export_recorders *r, const struct exported *x);
/* The series of a metric of theirs. */
void export_recorders(struct export_text *t, enum rt_metric_id id, const struct exported *x);

#endif
