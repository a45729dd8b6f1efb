/* SPDX-License-Identifier: BSD-3-Clause */
/* The largest flows of each application, of the last ten seconds. */
#ifndef RINGTAP_CLI_EXPORT_FLOWS_H
#define RINGTAP_CLI_EXPORT_FLOWS_H

#include "labels.h"

struct export_flows;

/* Starts a thread that captures a sample of each application of w. top: flows of an application, at
 * most. 0 or -errno. End it with export_flows_stop(), while w is there. */
int export_flows_start(struct export_flows **out, struct watch *w, unsigned top);
void export_flows_stop(struct export_flows *f);
#define EXPORT_FLOWS_MAX 1000u

enum export_flow_metric { EXPORT_FLOW_PACKETS, EXPORT_FLOW_BITS, EXPORT_FLOW_METRICS };
extern const struct rt_metric export_flow_metrics[EXPORT_FLOW_METRICS];
/* The samples of an application. */
void export_flows_put(struct export_text *t, enum export_flow_metric id, const struct exported *x,
	struct export_flows *f);

#endif
