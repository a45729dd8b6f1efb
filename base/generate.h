/* SPDX-License-Identifier: BSD-3-Clause */
/* What the writers of man pages and completions share. */
#ifndef RINGTAP_BASE_GENERATE_H
#define RINGTAP_BASE_GENERATE_H

#include <stdio.h>

#include "command.h"

/* A new file, to be closed by generate_finish(); NULL with a message if there is none. */
FILE *generate_create(const char *dir, const char *name);
/* Closes the file. 0, or -EIO with a message if something could not be written. */
int generate_finish(FILE *f, const char *name);

/* The completion of commands[] for zsh (_PROGRAM) and fish (PROGRAM.fish). 0, or -EIO after
 * printing why. */
int generate_zsh(const char *dir);
int generate_fish(const char *dir);

#endif
