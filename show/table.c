/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/numbers.h"
#include "common/array.h"
#include "sheet.h"
#include "table.h"

struct row *table_add(struct table *t)
{
	struct row *row = rt_array_add(t->rows, t->row_count);

	for (unsigned i = 0; row && i < COLUMNS_MAX; i++)
		row->cell[i].number = NAN;
	return row;
}

void table_clear(struct table *t)
{
	t->row_count = 0;
}

void table_free(struct table *t)
{
	free(t->rows);
	*t = (struct table){0};
}

static enum rt_unit unit_of(const struct column *c)
{
	return rt_metrics[c->id].unit;
}

struct order {
	enum rt_unit unit;
	unsigned index;
	bool reverse;
};

static int compare(
	const struct metric_value *a, const struct metric_value *b, const struct order *o)
{
	int ret;

	if (o->unit == RT_UNIT_TEXT) {
		ret = strverscmp(a->text, b->text);
	} else {
		if (isnan(a->number) || isnan(b->number))
			return isnan(a->number) - isnan(b->number);
		ret = (a->number < b->number) - (a->number > b->number);
	}
	return o->reverse ? -ret : ret;
}

/* Equal rows keep their order. */
static int compare_rows(const void *left, const void *right, void *arg)
{
	const struct order *o = arg;
	const struct row *a = left, *b = right;
	int ret = compare(&a->cell[o->index], &b->cell[o->index], o);

	return ret ? ret : (a->place > b->place) - (a->place < b->place);
}

void table_sort(struct table *t, unsigned column, bool reverse)
{
	struct order o = {unit_of(&t->columns[column]), column, reverse};

	for (size_t i = 0; i < t->row_count; i++)
		t->rows[i].place = (uint32_t)i;
	if (t->row_count)
		qsort_r(t->rows, t->row_count, sizeof(t->rows[0]), compare_rows, &o);
}

/* Shown at the left or the right of its width. */
static bool column_left(const struct column *c)
{
	return unit_of(c) == RT_UNIT_TEXT || unit_of(c) == RT_UNIT_BARS;
}

static unsigned total(const struct table *t, const unsigned width[COLUMNS_MAX])
{
	unsigned sum = 0;

	for (unsigned i = 0; i < t->column_count; i++)
		sum += width[i] ? width[i] + (sum > 0) : 0;
	return sum;
}

static size_t longest(const struct table *t, unsigned column)
{
	size_t most = 0;

	for (size_t r = 0; r < t->row_count; r++)
		if (strlen(t->rows[r].cell[column].text) > most)
			most = strlen(t->rows[r].cell[column].text);
	return most;
}

/* Gives the room that is left to texts that need it; first to those that are never left out. */
static void widen(const struct table *t, unsigned room, unsigned width[COLUMNS_MAX])
{
	for (unsigned i = 0; i < 2 * t->column_count; i++) {
		unsigned at = i % t->column_count, used = total(t, width);
		size_t need = longest(t, at);

		if (unit_of(&t->columns[at]) != RT_UNIT_TEXT || !width[at] || need <= width[at] ||
			used >= room || (i < t->column_count && t->columns[at].rank))
			continue;
		if (need - width[at] > room - used)
			need = width[at] + room - used;
		width[at] = (unsigned)need;
	}
}

void table_fit(const struct table *t, unsigned room, unsigned width[COLUMNS_MAX])
{
	for (unsigned i = 0; i < t->column_count; i++)
		width[i] = t->columns[i].width;
	while (total(t, width) > room) {
		unsigned last = t->column_count;

		for (unsigned i = 0; i < t->column_count; i++)
			if (width[i] && t->columns[i].rank &&
				(last == t->column_count ||
					t->columns[i].rank >= t->columns[last].rank))
				last = i;
		if (last == t->column_count)
			break;
		width[last] = 0;
	}
	widen(t, room, width);
}

/* "12.3M" */
static const char *compact(char *text)
{
	char *blank = strchr(text, ' ');

	if (blank)
		memmove(blank, blank + 1, strlen(blank));
	return text;
}

static void clock_text(char *buf, size_t size, double ns)
{
	time_t seconds = (time_t)(ns / 1e9);
	struct tm tm;

	localtime_r(&seconds, &tm);
	snprintf(buf, size, "%02d:%02d:%02d.%06u", tm.tm_hour, tm.tm_min, tm.tm_sec,
		(unsigned)((uint64_t)ns / 1000 % 1000000));
}

static void bars(char *buf, size_t size, const struct metric_value *cell, bool utf8, unsigned width)
{
	static const char *const fine[] = {" ", "\u2581", "\u2582", "\u2583", "\u2584", "\u2585",
		"\u2586", "\u2587", "\u2588"};
	static const char *const coarse[] = {" ", ".", ":", "-", "=", "+", "*", "#", "@"};

	buf[0] = '\0';
	for (unsigned i = 0; i < METRIC_BARS && i < width; i++) {
		/* The smallest share is visible, too. */
		unsigned level = cell->bar[i] > 0 ? 1 + (unsigned)(cell->bar[i] * 7.01f) : 0;
		const char *glyph = (utf8 ? fine : coarse)[level > 8 ? 8 : level];

		if (strlen(buf) + strlen(glyph) < size)
			strcat(buf, glyph);
	}
}

/* Without what stands in brackets, where there is no room for it: "lcore 1 (rte-worker-1, 24772)";
 * then without the middle, as names often differ at their ends: "net_vh~ost_17". */
static void cut_text(char *buf, size_t size, const char *text)
{
	const char *bracket = strstr(text, " (");
	size_t len = strlen(text), head = size / 2 - 1;

	if (bracket && len >= size)
		len = (size_t)(bracket - text);
	if (len < size || size < 4)
		snprintf(buf, size, "%.*s", (int)len, text);
	else
		snprintf(buf, size, "%.*s~%.*s", (int)head, text, (int)(size - 2 - head),
			text + len - (size - 2 - head));
}

const char *cell_text(const struct column *c, const struct metric_value *cell, bool utf8,
	unsigned width, char *buf, size_t size)
{
	enum rt_unit unit = unit_of(c);
	double v = cell->number;
	char text[FORMAT_LEN];

	if (size > width + 1 && unit != RT_UNIT_BARS)
		size = width + 1;
	buf[0] = '\0';
	if (isnan(v) && unit != RT_UNIT_TEXT && unit != RT_UNIT_BARS)
		unit = RT_UNIT_COUNT;
	switch (unit) {
	case RT_UNIT_TEXT: cut_text(buf, size, cell->text); break;
	case RT_UNIT_BARS: bars(buf, size, cell, utf8, width); break;
	case RT_UNIT_BOOL: snprintf(buf, size, v > 0 ? "yes" : "no"); break;
	case RT_UNIT_RATE: snprintf(buf, size, "%s", compact(format_si(text, v))); break;
	case RT_UNIT_BYTES: snprintf(buf, size, "%s", compact(format_bytes(text, v))); break;
	case RT_UNIT_SHARE:
		snprintf(buf, size, "%.*f", v < 0.0995 && v > 0 ? 1 : 0, 100 * v);
		break;
	case RT_UNIT_MEAN: snprintf(buf, size, "%.*f", v < 999.5 ? 1 : 0, v); break;
	case RT_UNIT_NS: snprintf(buf, size, "%s", compact(format_ns(text, v))); break;
	case RT_UNIT_CLOCK: clock_text(buf, size, v); break;
	default:
		/* A number that is cut would be a wrong one. */
		if (snprintf(buf, size, isnan(v) ? "-" : "%.0f", v) >= (int)size)
			snprintf(buf, size, "%s", compact(format_si(text, v)));
		break;
	}
	return buf;
}

int column_pad(const struct column *c, const char *text, unsigned width)
{
	/* A character of a bar has several bytes, which are as wide as their column. */
	size_t shown = unit_of(c) == RT_UNIT_BARS ? width : strlen(text);

	return column_left(c) || shown >= width ? 0 : (int)(width - shown);
}

void table_print(const struct table *t, unsigned room, bool utf8, FILE *f)
{
	struct sheet s = {.numbers = true, .width = room, .dense = true};
	unsigned width[COLUMNS_MAX], at = 0;
	char text[CELL_LEN];

	table_fit(t, room, width);
	for (unsigned i = 0; i < t->column_count; i++) {
		if (!width[i])
			continue;
		s.left |= (unsigned)column_left(&t->columns[i]) << s.columns;
		s.heads[s.columns++] = t->columns[i].title;
	}
	for (size_t r = 0; r < t->row_count && !sheet_row(&s); r++, at = 0)
		for (unsigned i = 0; i < t->column_count; i++)
			if (width[i])
				sheet_put(&s, at++, "%s",
					cell_text(&t->columns[i], &t->rows[r].cell[i], utf8,
						width[i], text, sizeof(text)));
	sheet_end(&s, 0, f);
}

int column_find(const struct column *columns, unsigned count, const char *title)
{
	for (unsigned i = 0; i < count; i++)
		if (!strcasecmp(columns[i].title, title))
			return (int)i;
	return -1;
}
