/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <locale.h>
#include <ncurses.h>
#include <stdlib.h>
#include <string.h>

#include "term.h"
#include "text_screen.h"

struct text_screen {
	char *text;
	size_t size, first; /* line at the top */
	size_t rows, row;   /* lines of TEXT_ROW; the chosen one */
	bool paused, open;
	unsigned long alarm;
};

struct text_screen *text_screen_open(void)
{
	struct text_screen *s = calloc(1, sizeof(*s));

	setlocale(LC_CTYPE, "");
	if (s && term_begin(&s->alarm))
		return s;
	free(s);
	return NULL;
}

void text_screen_close(struct text_screen *s)
{
	if (!s)
		return;
	endwin();
	free(s->text);
	free(s);
}

static size_t count_lines(const struct text_screen *s)
{
	size_t n = 0;

	for (const char *c = s->text; c && *c; c++)
		n += *c == '\n';
	return n;
}

static size_t count_rows(const struct text_screen *s)
{
	const char *at = s->text, *end;
	size_t n = 0;

	for (; at && (end = strchr(at, '\n')); at = end + 1)
		n += *at == TEXT_ROW;
	return n;
}

static void put_line(
	const struct text_screen *s, int y, const char *at, const char *end, bool chosen)
{
	attr_t as = *at == TEXT_TITLE ? A_BOLD : *at == TEXT_ALARM ? (attr_t)s->alarm : A_NORMAL;

	at += *at >= TEXT_TITLE && *at <= TEXT_ROW;
	if (chosen)
		as = A_REVERSE;
	attron(as);
	mvaddnstr(y, 0, at, (int)(end - at));
	attroff(as);
}

static void draw(struct text_screen *s)
{
	size_t room = LINES > 1 ? (size_t)LINES - 1 : 1, lines = count_lines(s), line = 0, row = 0;
	const char *at = s->text, *end;

	if (s->first + room > lines)
		s->first = lines > room ? lines - room : 0;
	if (s->row >= s->rows)
		s->row = s->rows ? s->rows - 1 : 0;
	erase();
	for (; at && (end = strchr(at, '\n')); at = end + 1, line++) {
		bool chosen = *at == TEXT_ROW && row++ == s->row;

		if (line >= s->first && line < s->first + room)
			put_line(s, (int)(line - s->first), at, end, chosen);
	}
	mvprintw(LINES - 1, 0, "q quit  space pause  up down %s%s%s", s->rows ? "choose" : "scroll",
		s->open   ? "  Enter back"
		: s->rows ? "  Enter its packets"
			  : "",
		s->paused ? "  PAUSED" : "");
	refresh();
}

int text_screen_show(struct text_screen *s, int (*print)(void *ctx, FILE *f), void *ctx)
{
	char *text = NULL;
	FILE *f = open_memstream(&text, &s->size);
	int ret = f ? print(ctx, f) : -errno;

	if (f && fclose(f) && !ret)
		ret = -errno;
	free(s->text);
	s->text = text;
	if (!s->open) /* the choice stays while the table is hidden */
		s->rows = ret ? 0 : count_rows(s);
	if (!ret)
		draw(s);
	return ret;
}

static void move_up(struct text_screen *s)
{
	size_t *n = s->rows && !s->open ? &s->row : &s->first;

	*n -= *n > 0;
}

bool text_screen_keys(struct text_screen *s)
{
	size_t page = LINES > 2 ? (size_t)LINES - 2 : 1;
	bool any = false;
	int key;

	while ((key = getch()) != ERR) {
		any = true;
		switch (key) {
		case 'q':
		case 'Q':
		case 'x': return false;
		case ' ': s->paused = !s->paused; break;
		case KEY_UP: move_up(s); break;
		case KEY_DOWN: *(s->rows && !s->open ? &s->row : &s->first) += 1; break;
		case '\n':
		case '\r':
		case KEY_ENTER: s->open = !s->open && s->rows; break;
		case 27: s->open = false; break; /* Esc */
		case KEY_PPAGE: s->first -= s->first < page ? s->first : page; break;
		case KEY_NPAGE: s->first += page; break;
		case KEY_HOME: s->first = 0; break;
		}
	}
	if (any)
		draw(s);
	return true;
}

int text_screen_opened(const struct text_screen *s)
{
	return s->open ? (int)s->row : -1;
}

unsigned text_screen_width(void)
{
	return (unsigned)COLS;
}

bool text_screen_paused(const struct text_screen *s)
{
	return s->paused;
}
