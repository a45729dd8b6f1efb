/* SPDX-License-Identifier: BSD-3-Clause */
/* A table of texts, for the terminal and for the page. */
#ifndef RINGTAP_CLI_EXPLAIN_SHEET_H
#define RINGTAP_CLI_EXPLAIN_SHEET_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define SHEET_COLUMNS 10

struct sheet {
	const char *title;
	const char *heads[SHEET_COLUMNS]; /* the first column's text is on the left */
	unsigned columns;
	bool wide;    /* the last column is text, too */
	char **cells; /* rows × columns; NULL: empty */
	unsigned rows, room;
	uint64_t more; /* rows that are not shown */
};

/* Appends a row of empty cells, which sheet_put() fills. 0 or -ENOMEM. */
int sheet_row(struct sheet *s);
__attribute__((format(printf, 3, 4))) void sheet_put(
	struct sheet *s, unsigned column, const char *format, ...);
void sheet_put_count(struct sheet *s, unsigned column, uint64_t n);
/* "12.3 µs"; nothing where it is NAN. */
void sheet_put_ns(struct sheet *s, unsigned column, double ns);
void sheet_free(struct sheet *s);

/* In TEXT_WIDTH columns. Nothing without rows. */
void sheet_print(const struct sheet *s, FILE *f);
/* Prints it if ret, of the rows, is 0, and frees it. Returns ret. */
int sheet_end(struct sheet *s, int ret, FILE *f);
/* What text_width columns do not matter for. */
void sheet_html(const struct sheet *s, FILE *f);

#endif
