/* SPDX-License-Identifier: BSD-3-Clause */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
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

/* A message may contain the name of another user's process or file. */
static void make_one_line(char *text)
{
	struct controls c = {0};

	for (char *p = text; *p; p++)
		if (*p == '\n' || *p == '\r' || *p == '\t')
			*p = ' ';
	controls_replace(&c, text, strlen(text));
}

void message_print(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(last_text, sizeof(last_text), format, ap);
	va_end(ap);
	make_one_line(last_text);
	if (live_len)
		fputc('\n', stderr);
	live_len = 0;
	fprintf(stderr, "%s: %s\n", message_program, last_text);
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
	message_print("%s: cannot write to standard output: %s", command,
		strerror(error ? -error : errno));
	return STATUS_FAILED;
}

static int digits(const char *text, uint64_t max, uint64_t *out, char **end)
{
	if (!isdigit((unsigned char)*text))
		return -EINVAL;
	errno = 0;
	*out = strtoull(text, end, 10);
	return errno || *out > max ? -ERANGE : 0;
}

int parse_number(const char *text, uint64_t max, uint64_t *out)
{
	char *end = NULL;
	int ret = digits(text, max, out, &end);

	if (end && *end)
		return -EINVAL;
	return ret;
}

/* What a unit multiplies by: K, M, G, T and KiB, … by powers of 1024, kB, MB, … by powers of 1000.
 * 0: not a unit of size. */
static uint64_t size_unit(const char *unit)
{
	static const char prefixes[] = "KMGT";
	const char *prefix = *unit ? strchr(prefixes, toupper((unsigned char)*unit)) : NULL;
	const char *rest = prefix ? unit + 1 : unit;
	bool decimal = prefix && !strcmp(rest, "B");
	uint64_t factor = 1;

	if (*rest && strcmp(rest, "B") && !(prefix && !strcmp(rest, "iB")))
		return 0;
	for (const char *p = prefixes; prefix && p <= prefix; p++)
		factor *= decimal ? 1000 : 1024;
	return factor;
}

int parse_size(const char *text, uint64_t *bytes)
{
	char *end = NULL;
	int ret = digits(text, UINT64_MAX, bytes, &end);
	uint64_t unit = ret ? 0 : size_unit(end);

	if (ret || !unit)
		return ret ? ret : -EINVAL;
	if (*bytes > UINT64_MAX / unit)
		return -ERANGE;
	*bytes *= unit;
	return 0;
}

/* 0: not a unit of time. */
static uint64_t time_unit_ns(const char *unit)
{
	static const struct {
		const char *name;
		uint64_t ns;
	} units[] = {{"", NS_PER_S}, {"s", NS_PER_S}, {"ms", NS_PER_S / 1000},
		{"us", NS_PER_S / 1000000}, {"ns", 1}, {"m", 60 * NS_PER_S}, {"min", 60 * NS_PER_S},
		{"h", 3600 * NS_PER_S}};

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (!strcmp(unit, units[i].name))
			return units[i].ns;
	}
	return 0;
}

int parse_seconds(const char *text, uint64_t *ns)
{
	uint64_t whole, unit, scale = NS_PER_S, billionths = 0;
	char *end = NULL;
	int ret = digits(text, UINT64_MAX / NS_PER_S / 2, &whole, &end);

	if (ret)
		return ret;
	if (*end == '.') {
		end++;
		if (!isdigit((unsigned char)*end))
			return -EINVAL;
		for (; isdigit((unsigned char)*end); end++) {
			scale /= 10;
			billionths += scale * (uint64_t)(*end - '0');
		}
	}
	unit = time_unit_ns(end);
	if (!unit)
		return -EINVAL;
	if (whole > UINT64_MAX / 2 / unit)
		return -ERANGE;
	*ns = whole * unit + (uint64_t)((double)billionths / 1e9 * (double)unit + 0.5);
	return *ns ? 0 : -ERANGE;
}

char *format_count(char buf[FORMAT_LEN], uint64_t n)
{
	char plain[FORMAT_LEN];
	size_t len = (size_t)snprintf(plain, sizeof(plain), "%" PRIu64, n);
	char *p = buf;

	for (size_t i = 0; i < len; i++) {
		if (i && (len - i) % 3 == 0)
			*p++ = ',';
		*p++ = plain[i];
	}
	*p = '\0';
	return buf;
}

char *format_si(char buf[FORMAT_LEN], double v)
{
	static const char *const units[] = {"", " k", " M", " G", " T"};
	size_t i = 0;

	while (v >= 999.5 && i < sizeof(units) / sizeof(units[0]) - 1) {
		v /= 1000;
		i++;
	}
	snprintf(buf, FORMAT_LEN, "%.*f%s", i && v < 99.95 ? 1 : 0, v, units[i]);
	return buf;
}

char *format_mac(char buf[FORMAT_LEN], const uint8_t mac[6])
{
	snprintf(buf, FORMAT_LEN, "%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2], mac[3],
		mac[4], mac[5]);
	return buf;
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

void text_wrap(FILE *f, int column, int indent, const char *text)
{
	bool first = true; /* of its line */

	for (;;) {
		int blanks = (int)strspn(text, " \n"), columns;
		size_t len;

		text += blanks;
		len = strcspn(text, " \n");
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
