/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/array.h"
#include "files.h"

#define DATE_LEN 32
/* dumpcap's numbers have five digits and begin again. */
#define NUMBER_WRAP 100000u

static void date(char buf[DATE_LEN], time_t when)
{
	struct tm tm;

	localtime_r(&when, &tm);
	strftime(buf, DATE_LEN, "%Y%m%d%H%M%S", &tm);
}

static bool ends_with(const char *text, size_t len, const char *end)
{
	size_t n = strlen(end);

	return len > n && !memcmp(text + len - n, end, n);
}

/* Where the extension begins; the end of path if it has none. */
static size_t stem_len(const char *path)
{
	const char *slash = strrchr(path, '/');
	size_t first = slash ? (size_t)(slash - path) + 1 : 0;
	size_t len = strlen(path);
	size_t end = len;

	if (ends_with(path, len, ".zst") || ends_with(path, len, ".lz4"))
		end = len - 4;
	for (size_t i = end; i > first + 1; i--)
		if (path[i - 1] == '.')
			return i - 1;
	return end;
}

char *file_name(const char *path, uint64_t n, time_t when, bool time_first)
{
	size_t stem = stem_len(path);
	char stamp[DATE_LEN];
	char *name = NULL, number[24];
	int len;

	date(stamp, when);
	snprintf(number, sizeof(number), "%05" PRIu64, n % NUMBER_WRAP);
	len = asprintf(&name, "%.*s_%s_%s%s", (int)stem, path, time_first ? stamp : number,
		time_first ? number : stamp, path + stem);
	return len < 0 ? NULL : name;
}

static void without_slashes(char *name)
{
	for (; *name; name++)
		if (*name == '/')
			*name = '_';
}

char *file_name_default(const char *app, const char *extension, time_t when)
{
	char stamp[DATE_LEN];
	char *name = NULL;

	date(stamp, when);
	if (asprintf(&name, "ringtap_%s_%s%s", app, stamp, extension) < 0)
		return NULL;
	without_slashes(name);
	return name;
}

char *file_name_part(const char *path, const char *part)
{
	size_t stem = stem_len(path);
	char *name = NULL;
	int len = asprintf(&name, "%.*s_%s%s", (int)stem, path, part, path + stem);

	if (len < 0)
		return NULL;
	without_slashes(name + stem);
	return name;
}

static int remove_oldest(struct files *f)
{
	int ret = unlink(f->list[0].name) < 0 && errno != ENOENT ? -errno : 0;

	free(f->list[0].name);
	memmove(f->list, f->list + 1, --f->count * sizeof(*f->list));
	return ret;
}

int files_add(struct files *f, const char *name)
{
	struct file *new = rt_array_add(f->list, f->count);

	if (!new)
		return -ENOMEM;
	new->name = strdup(name);
	if (!new->name) {
		f->count--;
		return -ENOMEM;
	}
	f->made++;
	return f->keep && f->count > f->keep ? remove_oldest(f) : 0;
}

struct file *files_last(struct files *f)
{
	return f->count ? &f->list[f->count - 1] : NULL;
}

void files_free(struct files *f)
{
	for (size_t i = 0; i < f->count; i++)
		free(f->list[i].name);
	free(f->list);
	*f = (struct files){0};
}
