/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"

json_t *json_text(const char *text)
{
	json_t *j;
	char *copy;

	if (!text)
		return json_null();
	j = json_string(text);
	if (j)
		return j;
	copy = strdup(text);
	if (!copy)
		return NULL;
	for (char *p = copy; *p; p++)
		if (*p & 0x80)
			*p = '?';
	j = json_string(copy);
	free(copy);
	return j;
}

json_t *json_count(uint64_t n)
{
	return json_integer((json_int_t)n);
}

static int print(json_t *j, FILE *f, size_t flags)
{
	int ret;

	errno = 0;
	ret = j ? json_dumpf(j, f, flags) : -1;
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
