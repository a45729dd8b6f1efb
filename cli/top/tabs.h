/* SPDX-License-Identifier: BSD-3-Clause */
/* The line of all views on the screen. */
#ifndef RINGTAP_CLI_TOP_TABS_H
#define RINGTAP_CLI_TOP_TABS_H

#include "views.h"

/* The name, cut to a number of letters; before it the key, unless the name begins with that.
 * Returns the length. */
#define TAB_LEN 16
int tab_text(const struct view *v, unsigned letters, char out[TAB_LEN]);
/* The number of letters, at least 1, with which the line fits into width, with blanks between. */
unsigned tabs_letters(unsigned width);

/* Draws it: the view that is shown in reverse, and the keys underlined. */
void tabs_draw(enum top_view shown);

#endif
