/* SPDX-License-Identifier: BSD-3-Clause */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/proto.h"
#include "conn.h"
#include "export.h"
#include "ringtap/reader.h"
#include "telemetry.h"

struct app {
	char *name, *dir;
	unsigned number; /* in the order found */
	pid_t pid;       /* 0: unknown */
};

struct ringtap_apps {
	struct app *apps;
	size_t count;
	char **notes;
	size_t note_count;
	struct stat seen[2]; /* folders that were searched */
	unsigned seen_count;
};

/* A runtime folder and the applications in it. */
struct place {
	const char *dir, *prefix;
	struct rt_folder folder;
	bool named[RT_INSTANCES_MAX]; /* a socket with this number exists */
	pid_t pid;                    /* of the last one that answered; 0: unknown */
	pid_t config_pid;             /* of the process that locks the config file; 0: unknown */
	bool config_listed;
};

static int add_note(struct ringtap_apps *list, const char *what, const char *why)
{
	char **more = realloc(list->notes, (list->note_count + 1) * sizeof(*more));

	if (!more)
		return -ENOMEM;
	list->notes = more;
	if (asprintf(&more[list->note_count], "%s%s%s", what, *what ? ": " : "", why) < 0)
		return -ENOMEM;
	list->note_count++;
	return 0;
}

/* 1: a process listens there; 0: none does; -EPERM: not trusted. Never waits: a listener with a
 * full backlog counts as one. */
static int answers(struct place *p, const char *base, unsigned instance, char *err, size_t errlen)
{
	char name[RT_SOCKET_NAME_MAX];
	struct ucred peer;
	socklen_t len = sizeof(peer);
	int fd;

	snprintf(name, sizeof(name), instance ? "%s:%u" : "%s", base, instance);
	fd = rt_folder_connect(&p->folder, name, 0, err, errlen);
	if (fd < 0)
		return fd == -EAGAIN ? 1 : fd == -EPERM && err[0] ? fd : 0;
	if (!getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) && peer.pid)
		p->pid = peer.pid;
	close(fd);
	return 1;
}

/* A primary process holds a write lock on its config file until it ends; the folder remains after
 * that. */
static bool holds_config(struct place *p)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	int fd, ret;

	/* It may be a file of any type: do not block, do not follow links. */
	fd = openat(
		p->folder.fd, "config", O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW);
	if (fd < 0)
		return false;
	ret = fcntl(fd, F_GETLK, &lock);
	close(fd);
	p->config_pid = lock.l_pid > 0 ? lock.l_pid : 0;
	return ret == 0 && lock.l_type != F_UNLCK;
}

/* For root, names of other users' applications include the user: they cannot imitate one of
 * root's. */
static int add_app(struct ringtap_apps *list, const struct place *p, unsigned instance, pid_t pid)
{
	struct app *more = realloc(list->apps, (list->count + 1) * sizeof(*more)), *a;
	char number[16] = "", user[16] = "";

	if (!more)
		return -ENOMEM;
	list->apps = more;
	a = &more[list->count];
	*a = (struct app){.number = (unsigned)list->count, .pid = pid};
	if (instance)
		snprintf(number, sizeof(number), "#%u", instance);
	if (p->folder.uid && p->folder.uid != geteuid())
		snprintf(user, sizeof(user), "@%u", (unsigned)p->folder.uid);
	if (asprintf(&a->dir, "%s%s", p->dir, number) < 0)
		return -ENOMEM;
	if (asprintf(&a->name, "%s%s%s", p->prefix, number, user) < 0) {
		free(a->dir);
		return -ENOMEM;
	}
	list->count++;
	return 0;
}

static int add_instance(struct ringtap_apps *list, struct place *p, unsigned instance)
{
	char err[RT_TEXT_LEN];
	int ret;

	p->pid = 0;
	ret = answers(p, RT_SOCKET_NAME, instance, err, sizeof(err));
	if (!ret)
		ret = answers(p, RT_TELEMETRY_SOCKET, instance, err, sizeof(err));
	if (ret < 0)
		return add_note(list, p->dir, err);
	if (!ret)
		return 0;
	p->config_listed |= !instance || (p->config_pid && p->pid == p->config_pid);
	/* A full backlog does not tell the process. */
	return add_app(list, p, instance, p->pid || instance ? p->pid : p->config_pid);
}

static void read_names(struct place *p)
{
	int fd = openat(p->folder.fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;

	while (d && (e = readdir(d))) {
		int n = rt_socket_instance(e->d_name, RT_SOCKET_NAME);

		if (n < 0)
			n = rt_socket_instance(e->d_name, RT_TELEMETRY_SOCKET);
		if (n >= 0)
			p->named[n] = true;
	}
	if (d)
		closedir(d);
	else if (fd >= 0)
		close(fd);
}

static int add_folder(struct ringtap_apps *list, struct place *p)
{
	char err[RT_TEXT_LEN];
	int ret = rt_folder_open(&p->folder, p->dir, err, sizeof(err));
	bool held;

	if (ret)
		return ret == -EPERM && err[0] ? add_note(list, "", err) : 0;
	read_names(p);
	held = holds_config(p);
	for (unsigned i = 0; i < RT_INSTANCES_MAX && !ret; i++) {
		if (p->named[i])
			ret = add_instance(list, p, i);
	}
	/* Without telemetry and probe, the lock is all that is visible. */
	if (!ret && held && !p->config_listed)
		ret = add_app(list, p, 0, p->config_pid);
	rt_folder_close(&p->folder);
	return ret;
}

static int add(struct ringtap_apps *list, const char *parent, const char *name)
{
	struct place p = {.prefix = name};
	char shown[NAME_MAX + 1], *dir;
	int ret;

	if (asprintf(&dir, "%s/%s", parent, name) < 0)
		return -ENOMEM;
	p.dir = dir;
	/* Any user may have chosen it, and it may be printed to a terminal. */
	snprintf(shown, sizeof(shown), "%s", name);
	rt_copy_text(shown, shown, sizeof(shown));
	ret = strcmp(shown, name) ? add_note(list, shown, "its name has control characters")
				  : add_folder(list, &p);
	free(dir);
	return ret;
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
	const struct app *x = a, *y = b;
	int ret = strcmp(x->name, y->name);

	return ret ? ret : (x->number > y->number) - (x->number < y->number);
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
		ret = scan(list, "/tmp/dpdk"); /* EAL's default if not root */
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
	for (size_t i = 0; i < list->count; i++) {
		free(list->apps[i].dir);
		free(list->apps[i].name);
	}
	for (size_t i = 0; i < list->note_count; i++)
		free(list->notes[i]);
	free(list->notes);
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

EXPORT uint32_t ringtap_apps_pid(const struct ringtap_apps *list, size_t i)
{
	return i < list->count ? (uint32_t)list->apps[i].pid : 0;
}

EXPORT size_t ringtap_apps_notes(const struct ringtap_apps *list)
{
	return list->note_count;
}

EXPORT const char *ringtap_apps_note(const struct ringtap_apps *list, size_t i)
{
	return i < list->note_count ? list->notes[i] : NULL;
}
