/* SPDX-License-Identifier: BSD-3-Clause */
/* A text on a terminal, drawn again with each reading. */
#ifndef RINGTAP_SHOW_TEXT_SCREEN_H
#define RINGTAP_SHOW_TEXT_SCREEN_H

#include <stdbool.h>
#include <stdio.h>

struct text_screen;
/* NULL: standard input or output is not a terminal that can be drawn on. */
struct text_screen *text_screen_open(void);
void text_screen_close(struct text_screen *s);
/* Characters that begin a line, and say how it looks. */
#define TEXT_TITLE '\1'
#define TEXT_ALARM '\2'
#define TEXT_ROW   '\3' /* up and down choose one of these lines */
/* Shows the text that print() writes. 0 or -errno. */
int text_screen_show(struct text_screen *s, int (*print)(void *ctx, FILE *f), void *ctx);
/* Takes the keys that were pressed. False: q. */
bool text_screen_keys(struct text_screen *s);
/* The row, from 0, that Enter has opened; -1: none, or Enter or Esc has closed it. */
int text_screen_opened(const struct text_screen *s);
unsigned text_screen_width(void);
/* The space bar: nothing is to be shown. */
bool text_screen_paused(const struct text_screen *s);

#endif
