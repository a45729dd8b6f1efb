/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdbool.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "atomics.h"
#include "calls.h"
#include "pages.h"

int rt_pages_populate(void *p, size_t size)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), begin = (uintptr_t)p & ~(page - 1);
	uintptr_t end = ((uintptr_t)p + size + page - 1) & ~(page - 1);

	if (!madvise((void *)begin, end - begin, MADV_POPULATE_WRITE))
		return 0;
	if (errno != EINVAL)
		return -errno;
	/* A kernel before 5.14. */
	for (uintptr_t at = begin; at < end; at += page)
		rt_fetch_or((uint8_t *)at, 0);
	return 0;
}

/* ---- available memory ---- */

const char *rt_pages_root = "";

static FILE *open_in(const char *dir, const char *name)
{
	char path[PATH_MAX + 128];

	snprintf(path, sizeof(path), "%s%s/%s", rt_pages_root, dir, name);
	return fopen(path, "re");
}

/* The number after key in a file, or its only one if key is empty. UINT64_MAX: none, or "max". */
static uint64_t number_in(const char *dir, const char *name, const char *key)
{
	FILE *f = open_in(dir, name);
	size_t len = strlen(key);
	uint64_t v = UINT64_MAX;
	char line[256];

	while (f && v == UINT64_MAX && fgets(line, sizeof(line), f)) {
		char *end;

		if (strncmp(line, key, len))
			continue;
		v = strtoull(line + len, &end, 10);
		if (end == line + len)
			v = UINT64_MAX;
	}
	if (f)
		fclose(f);
	return v;
}

struct files {
	const char *root, *limit, *usage, *active, *inactive;
};

static const struct files v1 = {"/sys/fs/cgroup/memory", "memory.limit_in_bytes",
	"memory.usage_in_bytes", "total_active_file ", "total_inactive_file "};
static const struct files v2 = {
	"/sys/fs/cgroup", "memory.max", "memory.current", "active_file ", "inactive_file "};

/* Remainder of one cgroup's limit, or the limit; its page cache can be dropped. */
static uint64_t left_in(const struct files *c, const char *dir, bool whole)
{
	uint64_t limit = number_in(dir, c->limit, ""), usage = number_in(dir, c->usage, "");
	uint64_t active = number_in(dir, "memory.stat", c->active);
	uint64_t inactive = number_in(dir, "memory.stat", c->inactive), cache = 0;

	if (whole || limit == UINT64_MAX)
		return limit;
	if (usage == UINT64_MAX)
		return UINT64_MAX;
	if (active != UINT64_MAX && inactive != UINT64_MAX)
		cache = active + inactive;
	usage -= cache < usage ? cache : usage;
	return limit > usage ? limit - usage : 0;
}

/* A limit holds for all cgroups below, so every parent counts. In a container the root may be
 * its own cgroup, while the path is the outer one: missing folders are skipped. */
static uint64_t left_below(const struct files *c, const char *path, bool whole)
{
	size_t root = strlen(c->root);
	uint64_t least = UINT64_MAX;
	char dir[PATH_MAX];

	snprintf(dir, sizeof(dir), "%s%s", c->root, path);
	while (strlen(dir) >= root) {
		uint64_t left = left_in(c, dir, whole);
		char *slash = strrchr(dir, '/');

		if (left < least)
			least = left;
		*slash = 0;
	}
	return least;
}

/* proc(5): hierarchy, controllers, path. Version 2 has no controllers there. */
static uint64_t left_in_cgroup(bool whole)
{
	FILE *f = open_in("/proc/self", "cgroup");
	uint64_t least = UINT64_MAX;
	char line[PATH_MAX];

	while (f && fgets(line, sizeof(line), f)) {
		char *controllers = strchr(line, ':'), *path, *rest = NULL, *name;
		uint64_t left = UINT64_MAX;

		path = controllers ? strchr(controllers + 1, ':') : NULL;
		if (!path)
			continue;
		*path++ = 0;
		path[strcspn(path, "\n")] = 0;
		if (!controllers[1])
			left = left_below(&v2, path, whole);
		for (name = strtok_r(controllers + 1, ",", &rest); name;
			name = strtok_r(NULL, ",", &rest)) {
			if (strcmp(name, "memory") == 0)
				left = left_below(&v1, path, whole);
		}
		if (left < least)
			least = left;
	}
	if (f)
		fclose(f);
	return least;
}

uint64_t rt_pages_available(void)
{
	uint64_t kib = number_in("/proc", "meminfo", "MemAvailable:"),
		 group = left_in_cgroup(false);
	uint64_t machine = kib == UINT64_MAX ? kib : kib << 10;

	return group < machine ? group : machine;
}

uint64_t rt_pages_limit(void)
{
	return left_in_cgroup(true);
}
