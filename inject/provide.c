/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "provide.h"

/* Whether the process finds the same file under its name. */
static bool is_visible(pid_t pid, const char *path)
{
	char there[PATH_MAX];
	struct stat a, b;

	if (snprintf(there, sizeof(there), "/proc/%d/root%s", (int)pid, path) >= (int)sizeof(there))
		return false;
	return !stat(path, &a) && !stat(there, &b) && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

int rt_provide(struct rt_provided *f, const struct rt_process *p, const char *probe, char *err,
	size_t errlen)
{
	*f = (struct rt_provided){0};
	if (!realpath(probe, f->path)) {
		snprintf(err, errlen, "%s: %s", probe, strerror(errno));
		return -errno;
	}
	if (is_visible(p->pid, f->path))
		return 0;
	f->path[0] = 0;
	snprintf(err, errlen, "it does not see %s: it has another file system; mount that there",
		probe);
	return -ENOENT;
}

void rt_provided_remove(struct rt_provided *f)
{
	f->folder[0] = 0;
}
