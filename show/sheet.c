/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/html.h"
#include "base/util.h"
#include "measure/plot.h"
#include "sheet.h"

#define ROWS_FIRST 16u
#define GAP        2 /* blanks between columns */
#define NAME_MIN   12

int sheet_row(struct sheet *s)
{
	if (s->rows == s->room) {
		unsigned room = s->room ? 2 * s->room : ROWS_FIRST;
		char **cells = reallocarray(s->cells, (size_t)room * s->columns, sizeof(*cells));

		if (!cells)
			return -ENOMEM;
		s->cells = cells;
		s->room = room;
	}
	memset(s->cells + (size_t)s->rows * s->columns, 0, s->columns * sizeof(*s->cells));
	s->rows++;
	return 0;
}

void sheet_put(struct sheet *s, unsigned column, const char *format, ...)
{
	char **cell = &s->cells[(size_t)(s->rows - 1) * s->columns + column];
	va_list args;

	va_start(args, format);
	if (vasprintf(cell, format, args) < 0)
		*cell = NULL;
	va_end(args);
}

void sheet_put_count(struct sheet *s, unsigned column, uint64_t n)
{
	char text[FORMAT_LEN];

	sheet_put(s, column, "%s", format_count(text, n));
}

void sheet_put_ns(struct sheet *s, unsigned column, double ns)
{
	char text[32];

	if (isnan(ns))
		return;
	plot_si(text, sizeof(text), ns * 1e-9, 3, "s");
	sheet_put(s, column, "%s", ns > 0 ? text : "0 s");
}

void sheet_free(struct sheet *s)
{
	for (size_t i = 0; i < (size_t)s->rows * s->columns; i++)
		free(s->cells[i]);
	free(s->cells);
	s->cells = NULL;
	s->rows = s->room = 0;
}

static const char *cell(const struct sheet *s, unsigned row, unsigned column)
{
	const char *text = s->cells[(size_t)row * s->columns + column];

	return text ? text : "";
}

/* ---- terminal ---- */

static int width_of(const struct sheet *s, unsigned column)
{
	size_t width = text_columns(s->heads[column]);

	for (unsigned r = 0; r < s->rows; r++)
		width = text_columns(cell(s, r, column)) > width ? text_columns(cell(s, r, column))
								 : width;
	return (int)width;
}

static void print_right(FILE *f, const char *text, int width)
{
	fprintf(f, "%*s%s", width - (int)text_columns(text) + GAP, "", text);
}

/* names: columns of the first one; 0: it has a line of its own. */
static void print_row(const struct sheet *s, int row, int names, const int *widths, FILE *f)
{
	char name[512];
	const char *first = row < 0 ? s->heads[0] : cell(s, (unsigned)row, 0);
	int at = GAP + names;

	if (names)
		fprintf(f, "  %s", text_cell(name, sizeof(name), first, (size_t)names));
	else if (row < 0)
		fprintf(f, "  ");
	else
		text_wrapf(f, 4, "  %s", first);
	if (!names && row >= 0)
		fprintf(f, "  ");
	for (unsigned c = 1; c < s->columns; c++) {
		const char *text = row < 0 ? s->heads[c] : cell(s, (unsigned)row, c);

		if (s->wide && c == s->columns - 1) {
			fprintf(f, "%*s", GAP, "");
			text_wrap(f, at + GAP, at + GAP, text);
			return;
		}
		print_right(f, text, widths[c]);
		at += GAP + widths[c];
	}
	fputc('\n', f);
}

void sheet_print(const struct sheet *s, FILE *f)
{
	int widths[SHEET_COLUMNS] = {0}, left = TEXT_WIDTH - GAP, names;
	char n[FORMAT_LEN];

	if (!s->rows)
		return;
	fprintf(f, "\n%s\n", s->title);
	for (unsigned c = 0; c < s->columns; c++)
		widths[c] = width_of(s, c);
	for (unsigned c = 1; c < s->columns - s->wide; c++)
		left -= GAP + widths[c];
	if (s->wide) /* what it needs, or half of what is left */
		left -= GAP +
			(widths[s->columns - 1] < left / 2 ? widths[s->columns - 1] : left / 2);
	names = widths[0] <= left || s->wide ? widths[0] : 0;
	if (s->wide && names > left)
		names = left > NAME_MIN ? left : NAME_MIN;
	print_row(s, -1, names, widths, f);
	for (unsigned r = 0; r < s->rows; r++)
		print_row(s, (int)r, names, widths, f);
	if (s->more)
		fprintf(f, "  and %s more\n", format_count(n, s->more));
}

int sheet_end(struct sheet *s, int ret, FILE *f)
{
	if (!ret)
		sheet_print(s, f);
	sheet_free(s);
	return ret;
}

/* ---- page ---- */

static void html_cell(
	const struct sheet *s, unsigned column, const char *tag, const char *text, FILE *f)
{
	bool left = column == 0 || (s->wide && column == s->columns - 1);

	fprintf(f, "<%s%s>", tag, left ? " class=\"text\"" : "");
	html_text(f, text);
	fprintf(f, "</%s>", tag);
}

void sheet_html(const struct sheet *s, FILE *f)
{
	char n[FORMAT_LEN];

	if (!s->rows)
		return;
	fputs("<h2>", f);
	html_text(f, s->title);
	fputs("</h2>\n<div class=\"scroll\"><table>\n<thead><tr>", f);
	for (unsigned c = 0; c < s->columns; c++)
		html_cell(s, c, "th", s->heads[c], f);
	fputs("</tr></thead>\n<tbody>\n", f);
	for (unsigned r = 0; r < s->rows; r++) {
		fputs("<tr>", f);
		for (unsigned c = 0; c < s->columns; c++)
			html_cell(s, c, "td", cell(s, r, c), f);
		fputs("</tr>\n", f);
	}
	fputs("</tbody></table></div>\n", f);
	if (s->more)
		fprintf(f, "<p class=\"soft\">and %s more</p>\n", format_count(n, s->more));
}
