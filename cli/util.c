/* SPDX-License-Identifier: BSD-3-Clause */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util.h"

const char *say_program = "ringtap";
static char last_text[1024];
static size_t live_len;

/* A terminal obeys these: ASCII's, and C1, in UTF-8 or as it is. What stands in a message may be
 * the name of anybody's process or file. */
static void take_controls_out(char *text)
{
	unsigned more = 0; /* bytes that a UTF-8 sequence still wants */

	for (unsigned char *p = (unsigned char *)text; *p; p++) {
		bool inside = more && (*p & 0xc0) == 0x80;
		bool c1 = *p >= 0x80 && *p < 0xa0 && (!inside || p[-1] == 0xc2);

		more = inside ? more - 1 : *p >= 0xf0 ? 3 : *p >= 0xe0 ? 2 : *p >= 0xc0 ? 1 : 0;
		if (c1 && inside)
			p[-1] = '?';
		if (*p == '\n' || *p == '\r')
			*p = ' ';
		else if (c1 || *p < ' ' || *p == 0x7f)
			*p = '?';
	}
}

void say(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(last_text, sizeof(last_text), format, ap);
	va_end(ap);
	take_controls_out(last_text);
	if (live_len)
		fputc('\n', stderr);
	live_len = 0;
	fprintf(stderr, "%s: %s\n", say_program, last_text);
}

const char *said(void)
{
	return last_text;
}

void say_live(size_t len)
{
	live_len = len;
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

int parse_size(const char *text, uint64_t *bytes)
{
	static const char suffixes[] = "KMGT";
	char *end = NULL;
	int ret = digits(text, UINT64_MAX, bytes, &end);
	unsigned shift = 0;

	if (ret)
		return ret;
	if (*end) {
		const char *s = strchr(suffixes, toupper((unsigned char)*end));

		if (!s || end[1])
			return -EINVAL;
		shift = 10 * (unsigned)(s - suffixes + 1);
	}
	if (*bytes > UINT64_MAX >> shift)
		return -ERANGE;
	*bytes <<= shift;
	return 0;
}

int parse_seconds(const char *text, uint64_t *ns)
{
	uint64_t scale = NS_PER_S;
	char *end = NULL;
	int ret = digits(text, UINT64_MAX / NS_PER_S / 2, ns, &end);

	if (ret)
		return ret;
	*ns *= NS_PER_S;
	if (*end == '.') {
		end++;
		if (!isdigit((unsigned char)*end))
			return -EINVAL;
		for (; isdigit((unsigned char)*end); end++) {
			scale /= 10;
			*ns += scale * (uint64_t)(*end - '0');
		}
	}
	if (*end)
		return -EINVAL;
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

uint64_t now_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}
