/* SPDX-License-Identifier: BSD-3-Clause */
/* The views of top: which rows and columns each table has. */
#ifndef RINGTAP_CLI_TOP_VIEWS_H
#define RINGTAP_CLI_TOP_VIEWS_H

#include "measure/metrics.h"
#include "measure/watch.h"
#include "show/table.h"
#include "curves.h"
#include "flow_view.h"

enum top_view {
	VIEW_APPS,
	VIEW_PORTS,
	VIEW_QUEUES,
	VIEW_THREADS,
	VIEW_POOLS,
	VIEW_RINGS,
	VIEW_XSTATS,
	VIEW_DEVICES,
	VIEW_LATENCY,
	VIEW_GAPS,
	VIEW_FLOWS,
	VIEW_COUNT
};
#define VIEW_NAMES "apps|ports|queues|threads|pools|rings|xstats|devices|latency|gaps|flows"

/* The titles of all columns that are one word, for completion. */
#define COLUMN_NAMES                                                                                                                                                               \
	"APP|PORT|ID|RXPPS|RXBIT/s|TXPPS|TXBIT/s|POLLS|BUSY/s|PKT/P|PKT/B|BURSTS|"                                                                                                 \
	"MISSED|NO-MBUF|ERRORS|REFUSED|Q|DIR|THREAD|PPS|BIT/s|CALLS|BUSY%|PKT/C|P50|P99|MAX|"                                                                                      \
	"TID|CPU|CYC/PKT|RUN%|WAIT%|PREEMPT|WORST|IDLEGAP|MICROB|POOL|SIZE|USE%|"                                                                                                  \
	"FREE|RING|CAPACITY|IN|FILL%|PEAK|PEAK%|HIGHEST|XSTAT|VALUE|RATE/s|DEVICE|KIND|PART|STAT|USAGE%|CACHED|LOWEST|OBJECT|OPS|PAGE|MEMORY|RXPORT|TXPORT|INFERRED|TIMED/s|MEAN|" \
	"P90|P99.9|WHAT|BEGAN|LENGTH|PACKETS|FLOW|+-PPS|+-BIT/s|SHARE%|"                                                                                                           \
	"+-SHARE%|BYTES|+-BYTES|1-OF"

struct view {
	const char *name;
	char key;                     /* on the screen */
	enum rt_metric_object object; /* a row is one of these */
	/* The first is the application. Behind them, unless curve is 0, is one for the screen: the
	 * last minute of column curve. */
	const struct column *columns;
	unsigned column_count, curve;
	const char *empty; /* see view_empty() */
	unsigned needs;    /* collectors */
	unsigned sort;     /* column; column_count: by index */
};
extern const struct view views[VIEW_COUNT];

/* The table of a view, over all applications. curves: with the last minute; NULL: without. flows:
 * for its view; NULL: not started. */
void view_fill(enum top_view view, struct table *t, const struct watch *w,
	const struct curves *curves, struct flows_live *flows);

/* The text where the view has no rows. */
const char *view_empty(enum top_view view, const struct watch *w);

#endif
