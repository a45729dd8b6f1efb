/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by all commands: exit statuses, messages, numbers. */
#ifndef RINGTAP_BASE_UTIL_H
#define RINGTAP_BASE_UTIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#include "common/now.h"
#include "numbers.h"

enum status {
	STATUS_OK = 0,
	STATUS_FAILED = 1, /* the capture or its output */
	STATUS_USAGE = 2,  /* the command line; nothing was touched */
	STATUS_LOSS = 3,   /* --fail-on-loss, and packets were lost */
	STATUS_FAULT = 4,  /* doctor: something is wrong with an application */
};

/* Stands before every message; "ringtap" unless it is set. */
extern const char *message_program;
/* Prints one line to stderr: the program's name and the text, which reads "what failed: why; what
 * to do". Replaces control characters, and ends a live line first. */
void message_print(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The same; returns result. */
int message_fail(int result, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Why a thread or process cannot be started, and what to do. */
const char *start_error(int error);
/* Remedy of an error of writing, behind "; "; "": there is none that is known. */
const char *write_advice(int error);
/* The text of the last message, for tests and for --json; "" if none. */
const char *message_last(void);
/* To be called after printing a live line, which has len characters and no line break. */
void message_live_line(size_t len);

/* Flushes standard output. error: 0, or -errno of what has been written there. STATUS_OK, or
 * STATUS_FAILED after a message of command. Its reader having closed it is not an error of the
 * program: then there is no message, and main() makes it STATUS_OK (controls_closed()). */
int output_end(const char *command, int error);

/* Characters of a UTF-8 text, for columns. */
size_t text_columns(const char *text);
/* Copies text into buf. If it has more characters than columns (at least 3), "…" stands instead of
 * its middle: names differ at their ends. Returns buf. */
char *text_shorten(char *buf, size_t size, const char *text, size_t columns);

/* Replaces line ends, tabs and control characters, for a terminal. Returns text. */
char *text_one_line(char *text);

#define TEXT_WIDTH 80 /* columns of a terminal, and of tables that go elsewhere */
/* Prints text and a line end, with breaks at blanks to stay within TEXT_WIDTH; the lines after the
 * first begin behind indent blanks. column: what stands in its first line already. */
void text_wrap(FILE *f, int column, int indent, const char *text);
/* The same of a format; at most 1023 bytes of it. */
void text_wrapf(FILE *f, int indent, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* A copy with line breaks at blanks, or within words, to stay within width characters. The caller
 * frees it; NULL: out of memory. */
char *text_fold(const char *text, size_t width);
/* Puts text behind what stands in buf, behind a comma if that is not empty. What does not fit is
 * cut off. */
void text_list_add(char *buf, size_t size, const char *text);

uint64_t now_ns(clockid_t clock);

#endif
