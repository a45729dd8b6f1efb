/* SPDX-License-Identifier: BSD-3-Clause */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "status.h"

bool rt_file_value(const char *path, const char *key, char *value, size_t size)
{
	char line[PATH_MAX];
	FILE *f = fopen(path, "re");
	bool found = false;

	while (f && !found && fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = 0;
		found = !strncmp(line, key, strlen(key));
	}
	if (f)
		fclose(f);
	if (found)
		snprintf(value, size, "%s", line + strlen(key));
	return found;
}

void rt_process_status(pid_t pid, const char *key, char *value, size_t size)
{
	char path[64], begin[64];

	value[0] = 0;
	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	snprintf(begin, sizeof(begin), "%s:\t", key);
	(void)rt_file_value(path, begin, value, size);
}

pid_t rt_own_pid(pid_t pid)
{
	char numbers[256];
	const char *last;

	rt_process_status(pid, "NSpid", numbers, sizeof(numbers));
	last = strrchr(numbers, '\t');
	return atoi(last ? last + 1 : numbers);
}
