/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ringtap top: statistics of an interval as tables, on a terminal or not.
 *
 *   watch (snapshots) -> views: a table of cells -> table: fitted to a width, sorted
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

struct top_config {
	uint64_t interval_ns;
	uint64_t count; /* intervals; 0: no limit */
	bool once, json;
	bool wide; /* without a screen: all columns */
	enum top_view view;
	const char *sort; /* a column's title; NULL: the view's own order */
	bool reverse;
	unsigned collectors; /* besides those of the view */
};

/* ---- table.c: cells, sorted and fitted */

/* rt_metrics[id] has its unit and meaning. */
struct column {
	const char *title;
	unsigned width; /* characters, at least the title's */
	unsigned rank;  /* the highest ranks give way first where there is no room; 0 never does */
	enum rt_metric_id id;
	bool tx;    /* of a port's calls: those of TX */
	bool alarm; /* more than nothing in it is bad news */
};

#define COLUMNS_MAX 24
struct row {
	struct metric_value cell[COLUMNS_MAX];
};

struct table {
	const struct column *columns;
	unsigned column_count;
	struct row *rows;
	size_t row_count, row_room;
};

#define CELL_LEN (4 * METRIC_TEXT_LEN) /* bytes, in UTF-8 */

/* A new row of unknown numbers and empty texts; NULL: out of memory. */
struct row *table_add(struct table *t);
void table_clear(struct table *t);
void table_free(struct table *t);
/* By a column; unknown numbers come last. Numbers begin with the largest. */
void table_sort(struct table *t, unsigned column, bool reverse);
/* Which columns fit, and how wide they are. 0: left out. */
void table_fit(const struct table *t, unsigned room, unsigned width[COLUMNS_MAX]);
/* A cell in UTF-8 or ASCII, no longer than width characters. */
void cell_text(const struct column *c, const struct metric_value *cell, bool utf8, unsigned width,
	char *buf, size_t size);
/* Shown at the left or the right of its width. */
bool column_left(const struct column *c);
/* Characters to the left of a text, by its bytes. */
int column_pad(const struct column *c, const char *text, unsigned width);
/* A row as a line of text; row NULL: the titles. Returns its length. */
#define LINE_LEN 4096
size_t table_line(const struct table *t, const struct row *row, const unsigned width[COLUMNS_MAX],
	bool utf8, char *line, size_t size);
/* The index of a column by its title, in any case of letters; -1: none. */
int column_find(const struct column *columns, unsigned count, const char *title);

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
/* Adds the metrics of an interval to an object. */
void top_set_metrics(json_t *j, const struct span *s);

/* ---- screen.c, once.c: both return enum status, after a message where they fail */

int top_screen(struct watch *w, const struct top_config *cfg);
/* Begins a screen of ncurses; the caller ends it by endwin(). *alarm: the attribute of what is bad
 * news. False: the terminal is of an unknown kind. */
bool top_begin(unsigned long *alarm, bool *utf8);
/* Characters of a line on standard output: COLUMNS, the terminal's, or 80. */
unsigned top_width(void);
/* False: the terminal cannot place its cursor (TERM=dumb). */
bool top_can_draw(void);
int top_lines(struct watch *w, const struct top_config *cfg);

#endif
