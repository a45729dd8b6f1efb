/* SPDX-License-Identifier: BSD-3-Clause */
/* Tables of metrics: cells, sorted and fitted to a width. */
#ifndef RINGTAP_SHOW_TABLE_H
#define RINGTAP_SHOW_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "measure/metrics.h"

/* rt_metrics[id] has its unit and meaning. */
struct column {
	const char *title;
	unsigned width; /* characters, at least the title's */
	unsigned rank;  /* the highest ranks give way first where there is no room; 0 never does */
	enum rt_metric_id id;
	bool tx;    /* TX among a port's calls */
	bool alarm; /* more than nothing in it is bad news */
};

#define COLUMNS_MAX 24
struct row {
	const struct watched *app; /* that it is of; for the caller */
	/* Entries of the snapshot: its own; its port and thread, or RINGTAP_NO_INDEX. */
	uint32_t index, port, thread;
	uint32_t place; /* before table_sort() */
	struct metric_value cell[COLUMNS_MAX];
};

struct table {
	const struct column *columns;
	unsigned column_count;
	struct row *rows;
	size_t row_count;
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
/* A cell in UTF-8 or ASCII, no longer than width characters. Returns buf. */
const char *cell_text(const struct column *c, const struct metric_value *cell, bool utf8,
	unsigned width, char *buf, size_t size);
/* Characters to the left of a text, by its bytes. */
int column_pad(const struct column *c, const char *text, unsigned width);
/* Prints it in room characters. */
void table_print(const struct table *t, unsigned room, bool utf8, FILE *f);
/* The index of a column by its title, in any case of letters; -1: none. */
int column_find(const struct column *columns, unsigned count, const char *title);

#endif
