/* SPDX-License-Identifier: BSD-3-Clause */
#include <ncurses.h>
#include <stdio.h>
#include <string.h>

#include "tabs.h"

int tab_text(const struct view *v, unsigned letters, char out[TAB_LEN])
{
	if (*v->name == v->key)
		return snprintf(out, TAB_LEN, "%.*s", (int)letters, v->name);
	return snprintf(out, TAB_LEN, "%c %.*s", v->key, (int)letters, v->name);
}

unsigned tabs_letters(unsigned width)
{
	unsigned letters = TAB_LEN, used;
	char tab[TAB_LEN];

	do {
		used = VIEW_COUNT - 1;
		letters--;
		for (const struct view *v = views; v < views + VIEW_COUNT; v++)
			used += (unsigned)tab_text(v, letters, tab);
	} while (used > width && letters > 1);
	return letters;
}

void tabs_draw(enum top_view shown)
{
	static const char *const hints[] = {" h help  q quit", " h help", " ?"};
	unsigned letters = tabs_letters((unsigned)COLS);
	char tab[TAB_LEN];
	int x = 0;

	for (unsigned i = 0; i < VIEW_COUNT && x < COLS; i++) {
		int len = tab_text(&views[i], letters, tab);

		if (i == shown)
			attron(A_REVERSE | A_BOLD);
		mvaddnstr(1, x, tab, COLS - x);
		attron(A_UNDERLINE);
		mvaddnstr(1, x, tab, 1);
		attroff(A_REVERSE | A_BOLD | A_UNDERLINE);
		x += len + 1;
	}
	for (unsigned i = 0; i < sizeof(hints) / sizeof(hints[0]); i++) {
		if (x + (int)strlen(hints[i]) > COLS)
			continue;
		mvaddstr(1, x, hints[i]);
		break;
	}
}
