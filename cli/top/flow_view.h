/* SPDX-License-Identifier: BSD-3-Clause */
/* The view of flows, whose rows are not of snapshots. */
#ifndef RINGTAP_CLI_TOP_FLOW_VIEW_H
#define RINGTAP_CLI_TOP_FLOW_VIEW_H

#include "flows/live.h"
#include "show/table.h"

#define FLOW_VIEW_COLUMNS 12
#define FLOW_VIEW_SORT    4 /* column */
extern const struct column flow_view_columns[FLOW_VIEW_COLUMNS];
/* The meaning of a column. */
const char *flow_view_help(unsigned column);

/* Adds the rows of an application. */
void flow_view_add(struct table *t, const struct watched *a, const struct flow_rows *rows);
/* Starts a thread that captures for the view. NULL after a message. */
struct flows_live *flow_view_start(struct watch *w);
/* Waits until the first interval of each application is complete, or there is a reason why not; a
 * minute at most. */
void flow_view_settle(struct watch *w, struct flows_live *f);
/* Line n below the table: price, and what is missing. False: there are no more. */
bool flow_view_note(struct watch *w, struct flows_live *f, size_t n, char line[WATCH_REASON_LEN]);
/* Opens the flow of a row, for flow_view_draw(). False: it is no longer there. */
bool flow_view_open(const struct watch *w, struct flows_live *f, const struct row *r);
/* Writes its packets, of the application of this name, to the terminal from line y on. */
void flow_view_draw(const struct watch *w, struct flows_live *f, const char *app, int y);

#endif
