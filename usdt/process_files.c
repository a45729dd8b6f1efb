/* SPDX-License-Identifier: BSD-3-Clause */
/* The files with code that a process has mapped. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "process_files.h"

/* The path of a file that may have been deleted since. */
static void path_to(char *path, size_t size, pid_t pid, const char *file, const char *range)
{
	snprintf(path, size, "/proc/%d/root%s", (int)pid, file);
	if (access(path, F_OK))
		snprintf(path, size, "/proc/%d/map_files/%s", (int)pid, range);
}

#define FILES_MAX 4096 /* a process can map 65,530, and have each of them read */

int process_files_each(pid_t pid, process_file_fn take, void *ctx)
{
	char path[4200], line[4352], range[64], rights[8], last[4096] = "";
	FILE *f;
	unsigned files = 0;
	int at, ret = 0;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	f = fopen(path, "re");
	if (!f)
		return -errno;
	while (!ret && fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = '\0';
		if (sscanf(line, "%63s %7s %*s %*s %*s %n", range, rights, &at) < 2 ||
			!strchr(rights, 'x') || line[at] != '/' || !strcmp(last, line + at))
			continue;
		snprintf(last, sizeof(last), "%s", line + at);
		path_to(path, sizeof(path), pid, last, range);
		ret = files++ < FILES_MAX ? take(ctx, path, last) : -E2BIG;
	}
	fclose(f);
	return ret;
}
