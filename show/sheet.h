/* SPDX-License-Identifier: BSD-3-Clause */
/* A table of texts: printed with libsmartcols, or part of a document. */
#ifndef RINGTAP_SHOW_SHEET_H
#define RINGTAP_SHOW_SHEET_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "web/view.h"

#define SHEET_COLUMNS 24

struct sheet {
	const char *title; /* NULL: none */
	const char *heads[SHEET_COLUMNS];
	unsigned columns;
	bool numbers; /* the first column is numbers; else it is text: on the left, and folded */
	bool wide;    /* the last column is text */
	/* Bits of columns: that are on the left; that are folded at blanks, or shortened in their
	 * middle, where the line has no room. */
	unsigned left, fold, cut;
	unsigned spare; /* bits of columns that are left out, the last one first, before one is cut
			 */
	char mark;      /* begins each line but the head, if it is not 0: TEXT_ROW */
	bool dense;     /* one blank between columns, none before them */
	unsigned width; /* columns in a line; 0: that of sheet_set_width() */
	char **cells;   /* rows × (columns and a note); NULL: empty */
	unsigned rows;
	size_t room;   /* cells allocated */
	uint64_t more; /* rows that are not shown */
};

/* The width of sheets that have none of their own; TEXT_WIDTH without a call. */
void sheet_set_width(unsigned width);
/* Appends a row of empty cells, which sheet_put() fills. 0 or -ENOMEM. */
int sheet_row(struct sheet *s);
__attribute__((format(printf, 3, 4))) void sheet_put(
	struct sheet *s, unsigned column, const char *format, ...);
/* Appends a row of texts, one for each column at most; NULL at the end. */
void sheet_add(struct sheet *s, ...) __attribute__((sentinel));
/* A line below the last row; may be called again. */
__attribute__((format(printf, 2, 3))) void sheet_note(struct sheet *s, const char *format, ...);
void sheet_put_count(struct sheet *s, unsigned column, uint64_t n);
/* "12.3 us"; nothing where it is NAN. */
void sheet_put_ns(struct sheet *s, unsigned column, double ns);
void sheet_free(struct sheet *s);

/* A histogram, without rows. unit: of the values. */
struct sheet sheet_histogram(const char *unit);
/* Appends the row of the values from low to high; NULL: they are one value. n of them, of sum, and
 * most in a row; digits: of the per cent. */
void sheet_add_bar(struct sheet *s, const char *low, const char *high, uint64_t n, uint64_t sum,
	uint64_t most, int digits);

/* Nothing without rows. Texts of columns that do not fit are folded at blanks. */
void sheet_print(const struct sheet *s, FILE *f);
/* Prints it if ret, of the rows, is 0, and frees it. Returns ret. */
int sheet_end(struct sheet *s, int ret, FILE *f);
/* Adds it to a document; nothing without rows. */
void sheet_view(const struct sheet *s, struct view *v);

#endif
