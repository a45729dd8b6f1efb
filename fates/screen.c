/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <locale.h>
#include <ncurses.h>
#include <stdlib.h>
#include <string.h>

#include "show/term.h"
#include "screen.h"

struct fates_screen {
	char *text;
	size_t size, first; /* line at the top */
	bool paused;
};

struct fates_screen *fates_screen_open(void)
{
	struct fates_screen *s;
	unsigned long alarm;

	s = calloc(1, sizeof(*s));
	setlocale(LC_CTYPE, "");
	if (s && term_begin(&alarm))
		return s;
	free(s);
	return NULL;
}

void fates_screen_close(struct fates_screen *s)
{
	if (!s)
		return;
	endwin();
	free(s->text);
	free(s);
}

static size_t count_lines(const struct fates_screen *s)
{
	size_t n = 0;

	for (const char *c = s->text; c && *c; c++)
		n += *c == '\n';
	return n;
}

static void draw(struct fates_screen *s)
{
	size_t room = LINES > 1 ? (size_t)LINES - 1 : 1, lines = count_lines(s), line = 0;
	const char *at = s->text, *end;

	if (s->first + room > lines)
		s->first = lines > room ? lines - room : 0;
	erase();
	for (; at && (end = strchr(at, '\n')); at = end + 1, line++)
		if (line >= s->first && line < s->first + room)
			mvaddnstr((int)(line - s->first), 0, at, (int)(end - at));
	mvprintw(
		LINES - 1, 0, "q quit  space pause  up down scroll%s", s->paused ? "  PAUSED" : "");
	refresh();
}

int fates_screen_show(struct fates_screen *s, int (*print)(void *ctx, FILE *f), void *ctx)
{
	char *text = NULL;
	FILE *f = open_memstream(&text, &s->size);
	int ret = f ? print(ctx, f) : -errno;

	if (f && fclose(f) && !ret)
		ret = -errno;
	free(s->text);
	s->text = text;
	if (!ret)
		draw(s);
	return ret;
}

bool fates_screen_keys(struct fates_screen *s)
{
	size_t page = LINES > 2 ? (size_t)LINES - 2 : 1;
	bool any = false;
	int key;

	while ((key = getch()) != ERR) {
		any = true;
		switch (key) {
		case 'q':
		case 'Q': return false;
		case ' ': s->paused = !s->paused; break;
		case KEY_UP: s->first -= s->first > 0; break;
		case KEY_DOWN: s->first++; break;
		case KEY_PPAGE: s->first -= s->first < page ? s->first : page; break;
		case KEY_NPAGE: s->first += page; break;
		case KEY_HOME: s->first = 0; break;
		}
	}
	if (any)
		draw(s);
	return true;
}

bool fates_screen_paused(const struct fates_screen *s)
{
	return s->paused;
}
