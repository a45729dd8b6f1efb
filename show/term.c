/* SPDX-License-Identifier: BSD-3-Clause */
#include <langinfo.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "base/controls.h"
#include "base/util.h"
#include "sheet.h"
#include "term.h"

/* At the end: <term.h> makes macros of words like columns. */
#include <curses.h>
#include <term.h>

enum { PAIR_ALARM = 1 };

/* False: the terminal cannot place its cursor (TERM=dumb). */
static bool term_can_draw(void)
{
	int error;
	const char *move;

	if (setupterm(NULL, STDOUT_FILENO, &error) == ERR)
		return true; /* an unknown terminal: term_begin() reports it */
	move = tigetstr("cup");
	return move && move != (const char *)-1;
}

/* https://no-color.org */
static bool colored(void)
{
	const char *refused = getenv("NO_COLOR");

	return has_colors() && !(refused && *refused);
}

bool term_begin(unsigned long *alarm)
{
	SCREEN *terminal = newterm(NULL, controls_terminal(), stdin);

	if (!terminal)
		return false;
	set_term(terminal);
	cbreak();
	noecho();
	nonl();
	keypad(stdscr, true);
	nodelay(stdscr, true);
	curs_set(0);
	*alarm = A_BOLD;
	if (colored()) {
		start_color();
		use_default_colors();
		init_pair(PAIR_ALARM, COLOR_RED, -1);
		*alarm |= COLOR_PAIR(PAIR_ALARM);
	}
	return true;
}

bool term_utf8(void)
{
	return !strcmp(nl_langinfo(CODESET), "UTF-8");
}

unsigned term_width(void)
{
	const char *set = getenv("COLUMNS");
	struct winsize size;
	uint64_t n;

	if (set && !parse_number(set, INT_MAX, &n) && n)
		return (unsigned)n;
	if (!isatty(STDOUT_FILENO))
		return INT_MAX;
	return !ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) && size.ws_col ? size.ws_col : TEXT_WIDTH;
}

enum live_form term_live(bool once, bool json)
{
	bool terminal = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);

	if (!once && !json && terminal && term_can_draw())
		return LIVE_SCREEN;
	sheet_set_width(term_width());
	return once ? LIVE_ONCE : LIVE_LINES;
}

void term_live_head(void)
{
	time_t now = (time_t)(now_ns(CLOCK_REALTIME) / NS_PER_S);
	static bool again;
	char text[32];
	struct tm tm;

	strftime(text, sizeof(text), "%FT%TZ", gmtime_r(&now, &tm));
	printf("%s%s\n", again ? "\n" : "", text);
	again = true;
}
