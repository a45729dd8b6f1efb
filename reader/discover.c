/* SPDX-License-Identifier: BSD-3-Clause */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/proto.h"
#include "export.h"
#include "ringtap/reader.h"
#include "telemetry.h"

struct app {
	char *dir;
	const char *name; /* in dir */
};

struct ringtap_apps {
	struct app *apps;
	size_t count;
	struct stat seen[2]; /* folders that have been looked into */
	unsigned seen_count;
};

static bool answers(const char *dir, const char *socket)
{
	int fd = rt_connect(dir, socket);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* A primary process holds a write lock on its config file for as long as it lives; runtime folders
 * of dead ones stay behind. */
static bool holds_config(const char *dir)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	char path[4096];
	int fd, ret;

	snprintf(path, sizeof(path), "%s/config", dir);
	fd = open(path,
		O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY); /* anybody may have put it there */
	if (fd < 0)
		return false;
	ret = fcntl(fd, F_GETLK, &lock);
	close(fd);
	return ret == 0 && lock.l_type != F_UNLCK;
}

static int add(struct ringtap_apps *list, const char *parent, const char *name)
{
	struct app *more = realloc(list->apps, (list->count + 1) * sizeof(*more));
	char *dir;

	if (!more)
		return -ENOMEM;
	list->apps = more;
	if (asprintf(&dir, "%s/%s", parent, name) < 0)
		return -ENOMEM;
	if (!answers(dir, RT_SOCKET_NAME) && !answers(dir, RT_TELEMETRY_SOCKET) &&
		!holds_config(dir)) {
		free(dir);
		return 0;
	}
	list->apps[list->count++] = (struct app){.dir = dir, .name = strrchr(dir, '/') + 1};
	return 0;
}

/* XDG_RUNTIME_DIR may be /var/run or /tmp. */
static bool seen_before(struct ringtap_apps *list, int fd)
{
	struct stat st;

	if (fstat(fd, &st))
		return false;
	for (unsigned i = 0; i < list->seen_count; i++) {
		if (list->seen[i].st_dev == st.st_dev && list->seen[i].st_ino == st.st_ino)
			return true;
	}
	if (list->seen_count < sizeof(list->seen) / sizeof(list->seen[0]))
		list->seen[list->seen_count++] = st;
	return false;
}

static int scan(struct ringtap_apps *list, const char *parent)
{
	DIR *d = opendir(parent);
	struct dirent *e;
	int ret = 0;

	if (!d)
		return 0;
	if (seen_before(list, dirfd(d))) {
		closedir(d);
		return 0;
	}
	while (!ret && (e = readdir(d))) {
		if (e->d_name[0] != '.')
			ret = add(list, parent, e->d_name);
	}
	closedir(d);
	return ret;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct app *)a)->name, ((const struct app *)b)->name);
}

EXPORT int ringtap_apps_find(struct ringtap_apps **out)
{
	const char *xdg = getenv("XDG_RUNTIME_DIR");
	struct ringtap_apps *list = calloc(1, sizeof(*list));
	char user[4096];
	int ret;

	*out = NULL;
	if (!list)
		return -ENOMEM;
	ret = scan(list, "/var/run/dpdk");
	if (!ret && xdg) {
		snprintf(user, sizeof(user), "%s/dpdk", xdg);
		ret = scan(list, user);
	}
	if (!ret)
		ret = scan(list, "/tmp/dpdk"); /* EAL without XDG_RUNTIME_DIR, not root */
	if (ret) {
		ringtap_apps_free(list);
		return ret;
	}
	if (list->count)
		qsort(list->apps, list->count, sizeof(*list->apps), by_name);
	*out = list;
	return 0;
}

EXPORT void ringtap_apps_free(struct ringtap_apps *list)
{
	if (!list)
		return;
	for (size_t i = 0; i < list->count; i++)
		free(list->apps[i].dir);
	free(list->apps);
	free(list);
}

EXPORT size_t ringtap_apps_count(const struct ringtap_apps *list)
{
	return list->count;
}

EXPORT const char *ringtap_apps_name(const struct ringtap_apps *list, size_t i)
{
	return i < list->count ? list->apps[i].name : NULL;
}

EXPORT const char *ringtap_apps_dir(const struct ringtap_apps *list, size_t i)
{
	return i < list->count ? list->apps[i].dir : NULL;
}
