/* SPDX-License-Identifier: BSD-3-Clause */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "idle.h"
#include "process.h"
#include "processes.h"

#define COMM_MAX 15 /* the kernel cuts names there */

void rt_processes_each(bool (*f)(uint32_t pid, const char *program, void *arg), void *arg)
{
	DIR *d = opendir("/proc");
	struct dirent *e;
	bool more = true;

	while (d && more && (e = readdir(d))) {
		pid_t pid = atoi(e->d_name);
		char path[64], name[64];

		if (pid <= 0 || !rt_has_eal(pid))
			continue;
		snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
		if (rt_read_text(path, name, sizeof(name)) < 0)
			continue;
		name[strcspn(name, "\n")] = 0;
		more = f((uint32_t)pid, name, arg);
	}
	if (d)
		closedir(d);
}

bool rt_process_runs(uint32_t pid, const char *program)
{
	char path[64], name[512];
	const char *file;

	snprintf(path, sizeof(path), "/proc/%u/comm", pid);
	if (rt_read_text(path, name, sizeof(name)) < 0)
		return false;
	name[strcspn(name, "\n")] = 0;
	if (!strcmp(name, program) ||
		(strlen(name) == COMM_MAX && !strncmp(name, program, COMM_MAX)))
		return true;
	snprintf(path, sizeof(path), "/proc/%u/cmdline", pid);
	if (rt_read_text(path, name, sizeof(name)) < 0)
		return false;
	file = strrchr(name, '/');
	return !strcmp(file ? file + 1 : name, program);
}
