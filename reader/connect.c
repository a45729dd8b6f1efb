/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connects to an application's sockets after checking their owners: any user may create a folder
 * such as /tmp/dpdk. Folder and socket are opened with O_PATH, checked, and connected to by
 * descriptor, so that neither can be replaced in between.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "connect.h"
#include "halt.h"
#include "telemetry.h"

#define RETRY_MS  10
#define LINKS_MAX 40

/* A path that is being resolved. */
struct walk {
	char rest[PATH_MAX]; /* from next on */
	char *next;
	int at;
	unsigned links;
	uid_t linked_by; /* another user: owner of a link that was followed; ours: none */
};

static bool is_ours(uid_t uid)
{
	return uid == 0 || uid == geteuid();
}

static int refuse(char *err, size_t errlen, const char *what, uid_t uid, uid_t owner)
{
	snprintf(err, errlen, "%s belongs to user %u, not to user %u", what, (unsigned)uid,
		(unsigned)owner);
	return -EPERM;
}

static int go_to(struct walk *w, int fd)
{
	if (fd < 0)
		return -errno;
	if (w->at >= 0)
		close(w->at);
	w->at = fd;
	return 0;
}

static int follow(struct walk *w, int link, uid_t uid)
{
	char to[PATH_MAX];
	ssize_t n = readlinkat(link, "", to, sizeof(to) - 1);
	size_t left = strlen(w->next);

	if (n < 0)
		return -errno;
	if (++w->links > LINKS_MAX)
		return -ELOOP;
	if ((size_t)n + 1 + left >= sizeof(w->rest))
		return -ENAMETOOLONG;
	if (!is_ours(uid)) {
		if (!is_ours(w->linked_by) && w->linked_by != uid)
			return -EPERM;
		w->linked_by = uid;
	}
	memmove(w->rest + n + 1, w->next, left + 1);
	memcpy(w->rest, to, (size_t)n);
	w->rest[n] = '/';
	w->next = w->rest;
	return to[0] == '/' ? go_to(w, open("/", O_PATH | O_DIRECTORY | O_CLOEXEC)) : 0;
}

static int step(struct walk *w)
{
	size_t len = strcspn(w->next, "/");
	char *name = w->next;
	struct stat st;
	int fd, ret;

	w->next += len + (name[len] == '/');
	if (!len)
		return 0;
	name[len] = 0;
	fd = openat(w->at, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st)) {
		ret = -errno;
		close(fd);
		return ret;
	}
	if (!S_ISLNK(st.st_mode))
		return go_to(w, fd);
	ret = follow(w, fd, st.st_uid);
	close(fd);
	return ret;
}

static int check_folder(
	const struct walk *w, const char *dir, struct rt_folder *f, char *err, size_t errlen)
{
	struct stat st;

	if (fstat(w->at, &st))
		return -errno;
	if (!S_ISDIR(st.st_mode))
		return -ENOTDIR;
	f->uid = st.st_uid;
	if (geteuid() && !is_ours(st.st_uid))
		return refuse(err, errlen, dir, st.st_uid, geteuid());
	if (!is_ours(w->linked_by) && w->linked_by != st.st_uid) {
		snprintf(err, errlen,
			"%s is reached by a symbolic link of user %u, but belongs to user %u", dir,
			(unsigned)w->linked_by, (unsigned)st.st_uid);
		return -EPERM;
	}
	if (st.st_mode & (S_IWGRP | S_IWOTH)) {
		snprintf(err, errlen, "%s can be written to by others than user %u", dir,
			(unsigned)st.st_uid);
		return -EPERM;
	}
	return 0;
}

int rt_folder_open(struct rt_folder *f, const char *dir, char *err, size_t errlen)
{
	struct walk w = {.next = w.rest, .at = -1};
	int ret;

	err[0] = 0;
	f->fd = -1;
	if (snprintf(w.rest, sizeof(w.rest), "%s", dir) >= (int)sizeof(w.rest))
		return -ENAMETOOLONG;
	ret = go_to(&w, open(dir[0] == '/' ? "/" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC));
	while (!ret && *w.next)
		ret = step(&w);
	if (ret == -EPERM)
		snprintf(err, errlen, "%s is reached by symbolic links of different users", dir);
	if (!ret)
		ret = check_folder(&w, dir, f, err, errlen);
	if (ret) {
		if (w.at >= 0)
			close(w.at);
		return ret;
	}
	f->fd = w.at;
	return 0;
}

void rt_folder_close(struct rt_folder *f)
{
	if (f->fd >= 0)
		close(f->fd);
	f->fd = -1;
}

/* The backlog of telemetry is short. EAGAIN: it is full at the moment. */
static int connect_retrying(int fd, const struct sockaddr_un *addr, int timeout_ms)
{
	const struct timespec pause = {.tv_nsec = RETRY_MS * 1000000};

	for (int ms = 0;; ms += RETRY_MS) {
		if (connect(fd, (const struct sockaddr *)addr, sizeof(*addr)) == 0)
			return 0;
		if (errno != EAGAIN || ms >= timeout_ms)
			return -errno;
		nanosleep(&pause, NULL);
	}
}

/* Connects to the socket that at refers to. */
static int connect_to(int at, int timeout_ms, struct ucred *peer)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), ret;
	socklen_t len = sizeof(*peer);

	if (fd < 0)
		return -errno;
	snprintf(addr.sun_path, sizeof(addr.sun_path), "/proc/self/fd/%d", at);
	ret = connect_retrying(fd, &addr, timeout_ms);
	if (!ret && getsockopt(fd, SOL_SOCKET, SO_PEERCRED, peer, &len))
		ret = -errno;
	if (!ret)
		return fd;
	close(fd);
	return ret;
}

int rt_folder_connect(
	const struct rt_folder *f, const char *name, int timeout_ms, char *err, size_t errlen)
{
	int at = openat(f->fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC), fd = at;
	struct ucred peer;
	struct stat st;

	err[0] = 0;
	if (at < 0)
		return -errno;
	if (fstat(at, &st))
		fd = -errno;
	else if (!S_ISSOCK(st.st_mode))
		fd = -ECONNREFUSED; /* as connect() returns */
	else if (st.st_uid != f->uid)
		fd = refuse(err, errlen, "its socket", st.st_uid, f->uid);
	else
		fd = connect_to(at, timeout_ms, &peer);
	close(at);
	if (fd >= 0 && peer.uid != f->uid) {
		close(fd);
		fd = refuse(
			err, errlen, "the process that listens on its socket", peer.uid, f->uid);
	}
	return fd;
}

int rt_socket_instance(const char *name, const char *base)
{
	size_t len = strlen(base), digits;
	unsigned long n;

	if (strncmp(name, base, len))
		return -1;
	name += len;
	if (!*name)
		return 0;
	digits = strspn(name + 1, "0123456789");
	if (*name != ':' || !digits || digits > 3 || name[1] == '0' || name[1 + digits])
		return -1;
	n = strtoul(name + 1, NULL, 10);
	return n < RT_INSTANCES_MAX ? (int)n : -1;
}

int rt_address_split(const char *app, char *dir, size_t size, unsigned *instance)
{
	const char *mark = strrchr(app, '#');
	char suffix[8];
	struct stat st;
	int n = -1;

	if (mark && stat(app, &st)) {
		snprintf(suffix, sizeof(suffix), ":%.6s", mark + 1);
		n = rt_socket_instance(suffix, "");
	}
	*instance = n > 0 ? (unsigned)n : 0;
	n = snprintf(dir, size, "%.*s", n > 0 ? (int)(mark - app) : (int)strlen(app), app);
	return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}

int rt_connect_name(const char *app, const char *name, char *err, size_t errlen)
{
	char dir[PATH_MAX];
	struct rt_folder f;
	unsigned instance;
	int ret = rt_address_split(app, dir, sizeof(dir), &instance);

	err[0] = 0;
	if (!ret)
		ret = rt_folder_open(&f, dir, err, errlen);
	if (ret)
		return ret == -ENOTDIR ? -ENOENT : ret;
	ret = rt_folder_connect(&f, name, rt_telemetry_ms, err, errlen);
	if (ret == -EAGAIN && rt_folder_halted(f.fd, err, errlen))
		ret = -EHOSTDOWN;
	rt_folder_close(&f);
	return ret;
}

int rt_connect_why(const char *app, const char *base, char *err, size_t errlen)
{
	char dir[PATH_MAX], name[RT_SOCKET_NAME_MAX];
	unsigned instance;
	int ret = rt_address_split(app, dir, sizeof(dir), &instance);

	err[0] = 0;
	if (ret)
		return ret;
	snprintf(name, sizeof(name), instance ? "%s:%u" : "%s", base, instance);
	return rt_connect_name(app, name, err, errlen);
}

int rt_connect(const char *app, const char *base)
{
	char err[256];

	return rt_connect_why(app, base, err, sizeof(err));
}
