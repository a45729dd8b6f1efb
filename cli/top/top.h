/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ringtap top: statistics of an interval as tables, on a terminal or not.
 *
 *   watch (snapshots) -> top_views: a table of cells -> top_table: fitted to a width, sorted
 *                                                        -> top_screen (ncurses), top_once (text)
 *                    -> top_json
 */
#ifndef RINGTAP_CLI_TOP_TOP_H
#define RINGTAP_CLI_TOP_TOP_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/monitor/rates.h"
#include "cli/monitor/watch.h"

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
	enum top_view view;
	const char *sort; /* a column's title; NULL: the view's own order */
	bool reverse;
	unsigned collectors, latency_every;
};

/* ---- table.c: cells, sorted and fitted */

enum cell_kind {
	CELL_TEXT,
	CELL_SI,      /* 12.3M */
	CELL_COUNT,   /* 1234 */
	CELL_PERCENT, /* of a share 0 … 1 */
	CELL_MEAN,    /* 31.9 */
	CELL_NS,      /* 12.3us */
	CELL_BYTES,   /* 2M, powers of 1024 */
	CELL_CLOCK,   /* ns since the epoch: 12:34:56.123456 */
	CELL_BARS,    /* a histogram in one line */
};

struct column {
	const char *title;
	unsigned width; /* characters, at least the title's */
	unsigned rank;  /* the highest ranks give way first where there is no room; 0 never does */
	enum cell_kind kind;
	bool alarm; /* more than nothing in it is bad news */
	const char *help;
};

#define CELL_TEXT_LEN 64
#define BARS_MAX      BURST_CLASSES
struct cell {
	double number;            /* NAN: unknown, and nothing is shown */
	char text[CELL_TEXT_LEN]; /* of CELL_TEXT */
	float bar[BARS_MAX];      /* of CELL_BARS: shares */
};

#define COLUMNS_MAX 24
struct row {
	struct cell cell[COLUMNS_MAX];
};

struct table {
	const struct column *columns;
	unsigned column_count;
	struct row *rows;
	size_t row_count, row_room;
};

/* A new row of unknown numbers and empty texts; NULL: out of memory. */
struct row *table_add(struct table *t);
void table_clear(struct table *t);
void table_free(struct table *t);
/* By a column; unknown numbers come last. Numbers begin with the largest. */
void table_sort(struct table *t, unsigned column, bool reverse);
/* Which columns fit, and how wide they are. 0: left out. */
void table_fit(const struct table *t, unsigned room, unsigned width[COLUMNS_MAX]);
/* A cell as people read it, in UTF-8 or ASCII, no longer than width characters. */
void cell_text(const struct column *c, const struct cell *cell, bool utf8, unsigned width,
	char *buf, size_t size);
/* Shown at the left or the right of its width. */
bool column_left(const struct column *c);
/* The index of a column by its title, in any case of letters; -1: none. */
int column_find(const struct column *columns, unsigned count, const char *title);

/* ---- views.c: what the tables are made of */

struct view {
	const char *name;
	const struct column *columns;
	unsigned column_count;
	const char *empty; /* what it says when there are no rows */
	unsigned needs;    /* collectors */
	unsigned sort;     /* column; column_count: as they come */
	void (*fill)(struct table *t, const struct watched *a, const struct span *s);
};
extern const struct view views[VIEW_COUNT];

/* The table of a view, over all applications. */
void view_fill(enum top_view view, struct table *t, const struct watch *w);

/* ---- json.c */

/* One document over all applications; NULL: out of memory. The caller decrefs. */
json_t *top_json(const struct watch *w);

/* ---- screen.c, once.c: both return enum status and say what is wrong */

int top_screen(struct watch *w, const struct top_config *cfg);
/* False: the terminal cannot place its cursor (TERM=dumb). */
bool top_can_draw(void);
int top_lines(struct watch *w, const struct top_config *cfg);

#endif
