/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "uprobe.h"

#define TYPE_FILE     "/sys/bus/event_source/devices/uprobe/type"
#define SEMAPHORE_BIT 32 /* bit of perf_event_attr.config: where the semaphore is in the file */

static int uprobe_type(void)
{
	FILE *f = fopen(TYPE_FILE, "re");
	int type = -ENOTSUP;

	if (f && fscanf(f, "%d", &type) != 1)
		type = -ENOTSUP;
	if (f)
		fclose(f);
	return type;
}

int uprobe_open(
	struct perf_event_attr attr, const char *path, const struct usdt_place *place, pid_t tid)
{
	int type = uprobe_type();
	long fd;

	if (type < 0)
		return type;
	attr.type = (uint32_t)type;
	attr.size = sizeof(attr);
	attr.config = place->semaphore << SEMAPHORE_BIT;
	attr.config1 = (uintptr_t)path;
	attr.config2 = place->offset;
	fd = syscall(SYS_perf_event_open, &attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
	return fd < 0 ? -errno : (int)fd;
}
