/* SPDX-License-Identifier: BSD-3-Clause */
/* Text of others on a terminal, which obeys control characters: it could be made to write files, or
 * to show another text. */
#ifndef RINGTAP_BASE_CONTROLS_H
#define RINGTAP_BASE_CONTROLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Where a text has been cut: bytes that its last UTF-8 sequence lacks, and its last byte. */
struct controls {
	unsigned more;
	unsigned char last;
};

/* Puts '?' instead of control characters, those of ASCII and C1, the latter in UTF-8 or as they
 * are; line ends and tabs stay. c: zeros for the beginning of a text. */
void controls_replace(struct controls *c, char *text, size_t len);

/* From now on, this happens to all that the program prints to standard output. To be called before
 * the first output. What is written to STDOUT_FILENO, such as packets, stays as it is. */
void controls_guard_stdout(void);
/* The reader of standard output, a pipe, has closed it. SIGPIPE is ignored. */
bool controls_closed(void);
/* Standard output for a library that controls the terminal. */
FILE *controls_terminal(void);

#endif
