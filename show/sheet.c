/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <libsmartcols/libsmartcols.h>
#include <locale.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/util.h"
#include "common/array.h"
#include "sheet.h"
#include "term.h"

#define GAP       2 /* blanks before and between columns */
#define BAR_WIDTH 24
#define WIDTH_MIN 12 /* least width of a column that gives way */

static unsigned default_width = TEXT_WIDTH;

void sheet_set_width(unsigned width)
{
	default_width = width;
}

/* ---- cells; behind those of a row is its note ---- */

static char **cell_at(const struct sheet *s, unsigned row, unsigned column)
{
	return &s->cells[(size_t)row * (s->columns + 1) + column];
}

static const char *cell(const struct sheet *s, unsigned row, unsigned column)
{
	const char *text = *cell_at(s, row, column);

	return text ? text : "";
}

int sheet_row(struct sheet *s)
{
	if (rt_array_room(s->cells, s->room, (s->rows + 1) * (s->columns + 1)))
		return -ENOMEM;
	memset(cell_at(s, s->rows, 0), 0, (s->columns + 1) * sizeof(*s->cells));
	s->rows++;
	return 0;
}

void sheet_put(struct sheet *s, unsigned column, const char *format, ...)
{
	char **at = cell_at(s, s->rows - 1, column);
	va_list args;

	va_start(args, format);
	if (vasprintf(at, format, args) < 0)
		*at = NULL;
	va_end(args);
}

void sheet_add(struct sheet *s, ...)
{
	const char *text;
	va_list args;

	if (sheet_row(s))
		return;
	va_start(args, s);
	for (unsigned c = 0; (text = va_arg(args, const char *)); c++)
		sheet_put(s, c, "%s", text);
	va_end(args);
}

void sheet_note(struct sheet *s, const char *format, ...)
{
	char **at, *before, *line = NULL;
	va_list args;

	if (!s->rows)
		return;
	va_start(args, format);
	if (vasprintf(&line, format, args) < 0)
		line = NULL;
	va_end(args);
	at = cell_at(s, s->rows - 1, s->columns);
	before = *at;
	if (!before)
		*at = line;
	else if (line && asprintf(at, "%s\n%s", before, line) < 0)
		*at = NULL;
	if (before) {
		free(before);
		free(line);
	}
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
	format_ns(text, ns);
	sheet_put(s, column, "%s", text);
}

void sheet_free(struct sheet *s)
{
	for (size_t i = 0; i < (size_t)s->rows * (s->columns + 1); i++)
		free(s->cells[i]);
	free(s->cells);
	s->cells = NULL;
	s->rows = 0;
	s->room = 0;
}

struct sheet sheet_histogram(const char *unit)
{
	return (struct sheet){.heads = {unit, "", "packets", "", ""},
		.columns = 5,
		.numbers = true,
		.left = 1 << 4};
}

/* The smallest share has a mark, too. */
static void put_bar(struct sheet *s, unsigned column, double share)
{
	const char *full = term_utf8() ? "\u2588" : "#";
	char bar[4 * BAR_WIDTH] = "", *to = bar;

	for (int n = (int)(share * BAR_WIDTH + 0.5); n > 0; n--)
		to = stpcpy(to, full);
	if (to == bar)
		strcpy(bar, term_utf8() ? "\u258f" : ".");
	sheet_put(s, column, "%s", bar);
}

void sheet_add_bar(struct sheet *s, const char *low, const char *high, uint64_t n, uint64_t sum,
	uint64_t most, int digits)
{
	if (sheet_row(s))
		return;
	sheet_put(s, 0, high ? "%s -" : "%s  ", low);
	sheet_put(s, 1, "%s", high ? high : "");
	sheet_put_count(s, 2, n);
	sheet_put(s, 3, "%.*f %%", digits, 100.0 * (double)n / (double)sum);
	put_bar(s, 4, (double)n / (double)most);
}

/* ---- text ---- */

static bool is_left(const struct sheet *s, unsigned c)
{
	return (c == 0 && !s->numbers) || s->left & 1u << c || (s->wide && c == s->columns - 1);
}

static bool gives_way(const struct sheet *s, unsigned c)
{
	return (c == 0 && !s->numbers) || (s->fold | s->cut) & 1u << c ||
	       (s->wide && c == s->columns - 1);
}

/* Blanks between columns, and before them. */
static int gap(const struct sheet *s)
{
	return s->dense ? 1 : 2;
}

static int indent(const struct sheet *s)
{
	return s->dense ? 0 : 2;
}

/* Spare columns are left out, and have width 0 then; then the widest of the columns that may give
 * way does, until all fit. */
static void fit(const struct sheet *s, size_t width[SHEET_COLUMNS])
{
	size_t sum = 0, most = (s->width ? s->width : default_width) - (size_t)indent(s);

	for (unsigned c = 0; c < s->columns; c++) {
		width[c] = text_columns(s->heads[c]);
		for (unsigned r = 0; r < s->rows; r++)
			if (text_columns(cell(s, r, c)) > width[c])
				width[c] = text_columns(cell(s, r, c));
		sum += width[c] + (c ? (size_t)gap(s) : 0);
	}
	for (unsigned c = s->columns; c-- > 0 && sum > most;)
		if (s->spare & 1u << c) {
			sum -= width[c] + (size_t)gap(s);
			width[c] = 0;
		}
	for (; sum > most; sum--) {
		unsigned widest = s->columns;

		for (unsigned c = 0; c < s->columns; c++)
			if (gives_way(s, c) && width[c] > WIDTH_MIN &&
				(widest == s->columns || width[c] > width[widest]))
				widest = c;
		if (widest == s->columns)
			return;
		width[widest]--;
	}
}

static bool left_out(const struct sheet *s, unsigned c, const size_t width[SHEET_COLUMNS])
{
	return s->spare & 1u << c && !width[c];
}

/* As it is printed; NULL: out of memory. */
static char *fitted(const struct sheet *s, unsigned row, unsigned c, size_t width)
{
	char *text;

	if (!(s->cut & 1u << c))
		return text_fold(cell(s, row, c), width);
	return asprintf(&text, "%s…", cell(s, row, c)) < 0
		       ? NULL
		       : text_shorten(text, strlen(text) + 1, cell(s, row, c), width);
}

static struct libscols_table *make(const struct sheet *s, const size_t width[SHEET_COLUMNS])
{
	struct libscols_table *t = scols_new_table();

	if (!t)
		return NULL;
	scols_table_set_termforce(t, SCOLS_TERMFORCE_NEVER);
	scols_table_set_column_separator(t, s->dense ? " " : "  ");
	for (unsigned c = 0; c < s->columns; c++) {
		struct libscols_column *column = scols_table_new_column(t, s->heads[c], 0,
			SCOLS_FL_WRAP | (is_left(s, c) ? 0 : SCOLS_FL_RIGHT) |
				(left_out(s, c, width) ? SCOLS_FL_HIDDEN : 0));

		if (!column)
			break;
		scols_column_set_wrapfunc(
			column, scols_wrapnl_chunksize, scols_wrapnl_nextchunk, NULL);
		scols_column_set_safechars(column, "\n");
	}
	for (unsigned r = 0; r < s->rows; r++) {
		struct libscols_line *line = scols_table_new_line(t, NULL);

		for (unsigned c = 0; line && c < s->columns; c++)
			if (!left_out(s, c, width))
				scols_line_refer_data(line, c, fitted(s, r, c, width[c]));
	}
	return t;
}

/* The lines that smartcols made, without blanks at their ends. */
static void print_lines(const struct sheet *s, char *text, bool head, FILE *f)
{
	char *rest = NULL;

	for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		size_t len = strlen(line);

		while (len && line[len - 1] == ' ')
			len--;
		if (len && !head && s->mark)
			fputc(s->mark, f);
		if (len)
			fprintf(f, "%*s%.*s\n", indent(s), "", (int)len, line);
		head &= !len;
	}
	free(text);
}

static void print_rows(const struct sheet *s, struct libscols_table *t, FILE *f)
{
	unsigned first = 0;
	char *text;

	for (unsigned r = 0; r < s->rows; r++) {
		char *note = *cell_at(s, r, s->columns), *rest = NULL;

		if (!note && r < s->rows - 1)
			continue;
		if (!scols_table_print_range_to_string(
			    t, scols_table_get_line(t, first), scols_table_get_line(t, r), &text))
			print_lines(s, text, !first, f);
		for (char *line = note ? strtok_r(note, "\n", &rest) : NULL; line;
			line = strtok_r(NULL, "\n", &rest))
			text_wrapf(f, 6, "    %s", line);
		first = r + 1;
	}
}

static void print_all(const struct sheet *s, FILE *f)
{
	size_t width[SHEET_COLUMNS];
	struct libscols_table *t;
	char names[256] = "";

	fit(s, width);
	t = make(s, width);
	if (t)
		print_rows(s, t, f);
	scols_unref_table(t);
	for (unsigned c = 0; c < s->columns; c++)
		if (left_out(s, c, width))
			text_list_add(names, sizeof(names), s->heads[c]);
	if (*names)
		fprintf(f, "  without room: %s\n", names);
}

void sheet_print(const struct sheet *s, FILE *f)
{
	locale_t utf8, old;
	char n[FORMAT_LEN];

	if (!s->rows)
		return;
	if (s->title)
		fprintf(f, "\n%s\n", s->title);
	/* Text is UTF-8 in any locale. */
	utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
	old = uselocale(utf8);
	print_all(s, f);
	uselocale(old);
	if (utf8)
		freelocale(utf8);
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

void sheet_view(const struct sheet *s, struct view *v)
{
	char n[FORMAT_LEN], text[64];
	json_t *table, *row;

	if (!s->rows)
		return;
	table = view_panel(v, "table", NULL, s->title);
	if (s->more) {
		snprintf(text, sizeof(text), "There are %s more.", format_count(n, s->more));
		view_panel_note(table, text);
	}
	for (unsigned c = 0; c < s->columns; c++)
		view_column(table, s->heads[c], is_left(s, c) ? "text" : "label");
	for (unsigned r = 0; r < s->rows; r++) {
		row = view_row(table);
		for (unsigned c = 0; c < s->columns; c++)
			json_array_append_new(row, json_text(cell(s, r, c)));
	}
}
