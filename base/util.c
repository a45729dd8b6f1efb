/* SPDX-License-Identifier: BSD-3-Clause */
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controls.h"
#include "util.h"

#define WIDTH 80

const char *message_program = "ringtap";
static char last_text[1024];
static size_t live_len;

char *text_one_line(char *text)
{
	struct controls c = {0};

	for (char *p = text; *p; p++)
		if (*p == '\n' || *p == '\r' || *p == '\t')
			*p = ' ';
	controls_replace(&c, text, strlen(text));
	return text;
}

static __attribute__((format(printf, 1, 0))) void print(const char *format, va_list ap)
{
	vsnprintf(last_text, sizeof(last_text), format, ap);
	text_one_line(last_text); /* may name another user's process or file */
	if (live_len)
		fputc('\n', stderr);
	live_len = 0;
	fprintf(stderr, "%s: %s\n", message_program, last_text);
}

void message_print(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	print(format, ap);
	va_end(ap);
}

int message_fail(int result, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	print(format, ap);
	va_end(ap);
	return result;
}

const char *start_error(int error)
{
	switch (error) {
	case -EAGAIN: return "the limit of processes is reached (ulimit -u, pids.max); raise it";
	case -ENOMEM: return "there is not enough memory; free some";
	case -EMFILE: return "the limit of open files is reached (ulimit -n); raise it";
	case -ENFILE: return "the system has no more open files (fs.file-max); raise it";
	case -ENOENT: return "No such file or directory; install it";
	case -EACCES: return "Permission denied; this user may not execute it";
	default: return strerror(-error);
	}
}

const char *write_advice(int error)
{
	switch (error) {
	case -ENOSPC: return "; free some space, or choose another disk";
	case -EDQUOT: return "; free some of this user's quota, or choose another disk";
	case -EFBIG: return "; raise the limit of file sizes (ulimit -f)";
	case -EIO: return "; check the disk";
	case -EROFS: return "; choose another file system";
	default: return "";
	}
}

const char *message_last(void)
{
	return last_text;
}

void message_live_line(size_t len)
{
	live_len = len;
}

int output_end(const char *command, int error)
{
	if (!error && !fflush(stdout) && !ferror(stdout))
		return STATUS_OK;
	if (controls_closed())
		return STATUS_FAILED;
	error = error ? error : -errno;
	return message_fail(STATUS_FAILED, "%s: cannot write to standard output: %s%s", command,
		strerror(-error), write_advice(error));
}

static bool begins_character(char c)
{
	return ((unsigned char)c & 0xc0) != 0x80;
}

size_t text_columns(const char *text)
{
	size_t n = 0;

	for (; *text; text++)
		n += begins_character(*text);
	return n;
}

/* Where the n-th character begins, or the text ends. */
static const char *character(const char *text, size_t n)
{
	for (; *text; text++)
		if (begins_character(*text) && !n--)
			break;
	return text;
}

char *text_shorten(char *buf, size_t size, const char *text, size_t columns)
{
	size_t n = text_columns(text), head = (columns - 1) / 2, tail = columns - 1 - head;

	if (n <= columns)
		snprintf(buf, size, "%s", text);
	else
		snprintf(buf, size, "%.*s…%s", (int)(character(text, head) - text), text,
			character(text, n - tail));
	return buf;
}

static int word_columns(const char *word, size_t len)
{
	int n = 0;

	for (size_t i = 0; i < len; i++)
		n += begins_character(word[i]);
	return n;
}

/* Bytes of the word; a number and its unit are one. */
static size_t word_length(const char *text)
{
	size_t len = strcspn(text, " \n"), unit;

	if (!len || text[len] != ' ' || !isdigit((unsigned char)text[len - 1]))
		return len;
	unit = strspn(text + len + 1, "numskMGTiB%");
	return unit && !isalnum((unsigned char)text[len + 1 + unit])
		       ? len + 1 + strcspn(text + len + 1, " \n")
		       : len;
}

void text_wrap(FILE *f, int column, int indent, const char *text)
{
	bool first = true; /* first word of its line */

	for (;;) {
		int blanks = (int)strspn(text, " \n"), columns;
		size_t len;

		text += blanks;
		len = word_length(text);
		if (!len)
			break;
		columns = word_columns(text, len);
		if (!first && column + blanks + columns > TEXT_WIDTH) {
			fputc('\n', f);
			column = 0;
			blanks = indent;
		}
		fprintf(f, "%*s%.*s", blanks, "", (int)len, text);
		column += blanks + columns;
		text += len;
		first = false;
	}
	fputc('\n', f);
}

void text_wrapf(FILE *f, int indent, const char *format, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	text_wrap(f, 0, indent, text);
}

/* Bytes of the line that text begins with, in at most width characters; without the blank after it.
 */
static size_t line_length(const char *text, size_t width)
{
	const char *end = character(text, width), *at = end;

	if (!*end)
		return (size_t)(end - text);
	while (at > text && *at != ' ')
		at--;
	return (size_t)((at > text ? at : end) - text);
}

char *text_fold(const char *text, size_t width)
{
	char *folded = malloc(2 * strlen(text) + 1), *to = folded;

	while (folded && text_columns(text) > width) {
		size_t len = line_length(text, width);

		to = mempcpy(to, text, len);
		*to++ = '\n';
		text += len + (text[len] == ' ');
	}
	if (folded)
		strcpy(to, text);
	return folded;
}

void text_list_add(char *buf, size_t size, const char *text)
{
	size_t len = strlen(buf);

	snprintf(buf + len, size - len, "%s%s", len ? ", " : "", text);
}

uint64_t now_ns(clockid_t clock)
{
	return rt_now_ns(clock);
}
