/* SPDX-License-Identifier: BSD-3-Clause */
/* The terminal: its width, and screens of ncurses. */
#ifndef RINGTAP_SHOW_TERM_H
#define RINGTAP_SHOW_TERM_H

#include <stdbool.h>

/* Begins a screen of ncurses; the caller ends it by endwin(). *alarm: the attribute of what is bad
 * news. False: the terminal is of an unknown kind. */
bool term_begin(unsigned long *alarm);
/* The locale's characters are UTF-8; setlocale() was called before. */
bool term_utf8(void);
/* Characters of a line on standard output: COLUMNS, or the terminal's; elsewhere there is no limit,
 * and names are whole. */
unsigned term_width(void);

/* How a live command shows its tables. */
enum live_form {
	LIVE_ONCE,   /* one table or document, after an interval */
	LIVE_LINES,  /* a table or document each interval, as standard output is not a terminal */
	LIVE_SCREEN, /* on the terminal */
};
/* The rule for all of them. Also sets the width of sheets to term_width() for what is not a screen.
 */
enum live_form term_live(bool once, bool json);
/* Prints what stands before each table of LIVE_LINES: a line with the time, and an empty one before
 * that of all but the first. */
void term_live_head(void);

#endif
