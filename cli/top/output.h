/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ringtap top: statistics of an interval as tables, on a terminal or not.
 *
 *   watch (snapshots) -> views: a table of cells -> show/table: fitted to a width, sorted
 *                                                     -> screen (ncurses), once (text)
 *                    -> json
 */
#ifndef RINGTAP_CLI_TOP_OUTPUT_H
#define RINGTAP_CLI_TOP_OUTPUT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "measure/watch.h"
#include "views.h"

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

/* One document over all applications; NULL: out of memory. The caller decrefs. A later one than the
 * first has none that ended in an interval before. */
json_t *top_json(const struct watch *w, bool later);

/* Both return enum status, after a message where they fail. */
int top_screen(struct watch *w, const struct top_config *cfg);
int top_lines(struct watch *w, const struct top_config *cfg);

#endif
