/* SPDX-License-Identifier: BSD-3-Clause */
/* A text on a terminal, drawn again with each reading. */
#ifndef RINGTAP_FATES_SCREEN_H
#define RINGTAP_FATES_SCREEN_H

#include <stdbool.h>
#include <stdio.h>

struct fates_screen;
/* NULL: standard input or output is not a terminal that can be drawn on. */
struct fates_screen *fates_screen_open(void);
void fates_screen_close(struct fates_screen *s);
/* Shows the text that print() writes. 0 or -errno. */
int fates_screen_show(struct fates_screen *s, int (*print)(void *ctx, FILE *f), void *ctx);
/* Takes the keys that were pressed. False: q. */
bool fates_screen_keys(struct fates_screen *s);
/* The space bar: nothing is to be shown. */
bool fates_screen_paused(const struct fates_screen *s);

#endif
