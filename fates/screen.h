/* SPDX-License-Identifier: BSD-3-Clause */
/* A text on a terminal, drawn again with each reading. */
#ifndef RINGTAP_FATES_SCREEN_H
#define RINGTAP_FATES_SCREEN_H

#include <stdbool.h>
#include <stdio.h>

struct screen;
/* NULL: standard input or output is not a terminal that can be drawn on. */
struct screen *screen_open(void);
void screen_close(struct screen *s);
/* Shows the text that print() writes. 0 or -errno. */
int screen_show(struct screen *s, int (*print)(void *ctx, FILE *f), void *ctx);
/* Takes the keys that were pressed. False: q. */
bool screen_keys(struct screen *s);
/* The space bar: nothing is to be shown. */
bool screen_paused(const struct screen *s);

#endif
