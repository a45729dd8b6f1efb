/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ringtap top: statistics of an interval as tables, on a terminal or not.
 *
 *   watch (snapshots) -> views: a table of cells -> show/table: fitted to a width, sorted
 *                                                     -> screen (ncurses), once (text)
 *                    -> json
 */
#ifndef RINGTAP_CLI_TOP_TOP_H
#define RINGTAP_CLI_TOP_TOP_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "measure/metrics.h"
#include "measure/watch.h"
#include "show/table.h"

enum top_view {
	VIEW_PORTS,
	VIEW_QUEUES,
	VIEW_THREADS,
	VIEW_POOLS,
	VIEW_LATENCY,
	VIEW_GAPS,
	VIEW_COUNT
};
#define VIEW_NAMES "ports|queues|threads|pools|latency|gaps"

/* The titles of all columns that are one word, for completion. */
#define COLUMN_NAMES                                                                          \
	"APP|PORT|ID|RXPPS|RXBIT/s|TXPPS|TXBIT/s|POLLS|BUSY/s|PKT/P|PKT/B|BURSTS|"            \
	"MISSED|NO-MBUF|ERRORS|REFUSED|Q|DIR|THREAD|PPS|BIT/s|CALLS|BUSY%|PKT/C|P50|P99|MAX|" \
	"TID|CPU|CYC/PKT|RUN%|WAIT%|PREEMPT|WORST|IDLEGAP|MICROB|POOL|SIZE|USE%|"             \
	"FREE|CACHED|LOWEST|OBJECT|OPS|PAGE|MEMORY|RXPORT|TXPORT|INFERRED|TIMED/s|MEAN|"      \
	"P90|P99.9|WHAT|BEGAN|LENGTH|PACKETS"

struct top_config {
	uint64_t interval_ns;
	uint64_t count;       /* intervals; 0: no limit */
	uint64_t duration_ns; /* 0: no limit */
	bool once, json;
	bool wide; /* without a screen: all columns */
	enum top_view view;
	const char *sort; /* a column's title; NULL: the view's own order */
	bool reverse;
	unsigned collectors; /* besides those of the view */
};

/* ---- views.c: what the tables are made of */

struct view {
	const char *name;
	enum rt_metric_object object; /* a row is one of these */
	const struct column *columns; /* the first is the application */
	unsigned column_count;
	const char *empty; /* shown where there are no rows */
	unsigned needs;    /* collectors */
	unsigned sort;     /* column; column_count: by index */
};
extern const struct view views[VIEW_COUNT];

/* The table of a view, over all applications. */
void view_fill(enum top_view view, struct table *t, const struct watch *w);

/* ---- json.c */

/* One document over all applications; NULL: out of memory. The caller decrefs. */
json_t *top_json(const struct watch *w);

/* ---- screen.c, once.c: both return enum status, after a message where they fail */

int top_screen(struct watch *w, const struct top_config *cfg);
int top_lines(struct watch *w, const struct top_config *cfg);

#endif
