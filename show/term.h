/* SPDX-License-Identifier: BSD-3-Clause */
/* The terminal: its width, and screens of ncurses. */
#ifndef RINGTAP_SHOW_TERM_H
#define RINGTAP_SHOW_TERM_H

#include <stdbool.h>

/* False: the terminal cannot place its cursor (TERM=dumb). */
bool term_can_draw(void);
/* Begins a screen of ncurses; the caller ends it by endwin(). *alarm: the attribute of what is bad
 * news. False: the terminal is of an unknown kind. */
bool term_begin(unsigned long *alarm);
/* The locale's characters are UTF-8; setlocale() was called before. */
bool term_utf8(void);
/* Characters of a line on standard output: COLUMNS, the terminal's, or TEXT_WIDTH. */
unsigned term_width(void);

#endif
