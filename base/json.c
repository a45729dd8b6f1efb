/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/now.h"
#include "json.h"

#define SCHEMA      1 /* rises when a key changes its meaning or goes */
#define DIGITS      9 /* in numbers that are not integers */
#define INTEGER_MAX (UINT64_C(1) << 53)
#define WRONG       "\xef\xbf\xbd" /* U+FFFD */

/* Bytes of the character at p; 0: it is not UTF-8. */
static size_t character(const char *p)
{
	size_t max = strnlen(p, 4);

	for (size_t n = 1; n <= max; n++) {
		json_t *j = json_stringn(p, n);

		json_decref(j);
		if (j)
			return n;
	}
	return 0;
}

json_t *json_text(const char *text)
{
	json_t *j;
	char *copy, *to;

	if (!text)
		return json_null();
	j = json_string(text);
	if (j)
		return j;
	to = copy = malloc(strlen(text) * strlen(WRONG) + 1);
	if (!copy)
		return NULL;
	while (*text) {
		size_t n = character(text);

		to = n ? mempcpy(to, text, n) : stpcpy(to, WRONG);
		text += n ? n : 1;
	}
	*to = '\0';
	j = json_string(copy);
	free(copy);
	return j;
}

json_t *json_count(uint64_t n)
{
	return n <= INTEGER_MAX ? json_integer((json_int_t)n) : json_sprintf("%" PRIu64, n);
}

json_t *json_number(double v)
{
	return isfinite(v) ? json_real(v) : json_null();
}

json_t *json_ns(double ns)
{
	return isfinite(ns) ? json_count(ns > 0 ? (uint64_t)(ns < 1e19 ? ns + 0.5 : 1e19) : 0)
			    : json_null();
}

json_t *json_hex(uint64_t n)
{
	return json_sprintf("0x%" PRIx64, n);
}

json_t *json_time(uint64_t ns)
{
	time_t s = (time_t)(ns / 1000000000);
	char text[32];
	struct tm tm;

	if (!ns || !gmtime_r(&s, &tm))
		return json_null();
	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
	return json_sprintf("%s.%09uZ", text, (unsigned)(ns % 1000000000));
}

json_t *json_port(uint32_t index, const char *name)
{
	return json_pack("{s:o,s:o}", "index", json_count(index), "name", json_text(name));
}

json_t *json_thread(uint32_t lcore, const char *name, uint32_t tid)
{
	return json_pack("{s:o,s:o,s:o}", "lcore",
		lcore == UINT32_MAX ? json_null() : json_count(lcore), "name",
		json_text(*name ? name : NULL), "tid", tid ? json_count(tid) : json_null());
}

json_t *json_application(const char *name, uint32_t pid, const char *program)
{
	return json_pack("{s:o,s:o,s:o}", "name", json_text(name), "pid",
		pid ? json_count(pid) : json_null(), "program",
		json_text(program && *program ? program : NULL));
}

json_t *json_document(const char *command, json_t *applications)
{
	char host[256] = "";

	(void)gethostname(host, sizeof(host) - 1);
	if (!json_is_array(applications))
		applications = applications ? json_pack("[o]", applications) : json_array();
	return json_pack("{s:i,s:s,s:s,s:o,s:o,s:o}", "schema", SCHEMA, "ringtap", RINGTAP_VERSION,
		"command", command, "time", json_time(rt_now_ns(CLOCK_REALTIME)), "host",
		json_text(host), "applications", applications);
}

static int print(json_t *j, FILE *f, size_t flags)
{
	int ret;

	errno = 0;
	ret = j ? json_dumpf(j, f, flags | JSON_REAL_PRECISION(DIGITS)) : -1;
	json_decref(j);
	fputc('\n', f);
	return ret || fflush(f) || ferror(f) ? -(errno ? errno : EIO) : 0;
}

int json_print(json_t *j, FILE *f)
{
	return print(j, f, JSON_INDENT(2));
}

int json_print_line(json_t *j, FILE *f)
{
	return print(j, f, JSON_COMPACT);
}
