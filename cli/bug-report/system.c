/* SPDX-License-Identifier: BSD-3-Clause */
#include <ctype.h>
#include <gnu/libc-version.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/json.h"
#include "common/pages.h"
#include "system.h"

#define VALUE_LEN 256

/* The value of the first line that begins with key; key "": the first line. False: none. */
static bool read_value(const char *path, const char *key, char value[VALUE_LEN])
{
	char name[512], line[1024];
	bool found = false;
	FILE *f;

	snprintf(name, sizeof(name), "%s%s", rt_pages_root, path);
	f = fopen(name, "re");
	while (f && !found && fgets(line, sizeof(line), f)) {
		const char *p = line + strlen(key);

		found = !strncmp(line, key, strlen(key));
		if (!found)
			continue;
		p += strspn(p, " \t:=\"");
		snprintf(value, VALUE_LEN, "%.*s", (int)strcspn(p, "\"\n"), p);
	}
	if (f)
		fclose(f);
	return found;
}

static void put_text(json_t *j, const char *name, const char *path, const char *key)
{
	char value[VALUE_LEN];

	json_put(j, name, read_value(path, key, value) ? json_text(value) : json_null());
}

/* A number, of units. */
static void put_count(json_t *j, const char *name, const char *path, const char *key, uint64_t unit)
{
	char value[VALUE_LEN];

	json_put(j, name,
		read_value(path, key, value) && isdigit((unsigned char)*value)
			? json_count(strtoull(value, NULL, 10) * unit)
			: json_null());
}

json_t *system_json(void)
{
	json_t *j = json_object();
	struct utsname machine = {0};

	(void)uname(&machine);
	put_text(j, "kernel", "/proc/sys/kernel/osrelease", "");
	json_put(j, "machine", json_text(machine.machine));
	put_text(j, "distribution", "/etc/os-release", "PRETTY_NAME");
	json_put(j, "libc", json_sprintf("glibc %s", gnu_get_libc_version()));
	put_text(j, "cpu", "/proc/cpuinfo", "model name");
	json_put(j, "cpus", json_count((uint64_t)get_nprocs()));
	put_count(j, "memory_bytes", "/proc/meminfo", "MemTotal", 1024);
	put_count(j, "available_bytes", "/proc/meminfo", "MemAvailable", 1024);
	put_count(j, "huge_page_bytes", "/proc/meminfo", "Hugepagesize", 1024);
	put_count(j, "huge_pages", "/proc/meminfo", "HugePages_Total", 1);
	put_count(j, "free_huge_pages", "/proc/meminfo", "HugePages_Free", 1);
	put_text(j, "shared_memory_huge_pages", "/sys/kernel/mm/transparent_hugepage/shmem_enabled",
		"");
	put_text(j, "ptrace_scope", "/proc/sys/kernel/yama/ptrace_scope", "");
	put_text(j, "perf_event_paranoid", "/proc/sys/kernel/perf_event_paranoid", "");
	put_text(j, "lockdown", "/sys/kernel/security/lockdown", "");
	json_put(j, "root", json_boolean(!geteuid()));
	return j;
}
