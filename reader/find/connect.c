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
#include <unistd.h>

#include "abstract.h"
#include "as_user.h"
#include "common/fail.h"
#include "common/foreign.h"
#include "connect.h"
#include "reader/wait.h"
#include "halt.h"
#include "views.h"
#include "reader/tunables.h"

#define RETRY_MS  10
#define LINKS_MAX 40
/* EAL writes it at the beginning of the configuration when it is initialised: rte_common.h. */
#define RTE_MAGIC 19820526u

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
	return rt_fail(-EPERM, err, errlen, "%s belongs to user %u, not to user %u", what,
		(unsigned)uid, (unsigned)owner);
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
	if (!is_ours(w->linked_by) && w->linked_by != st.st_uid)
		return rt_fail(-EPERM, err, errlen,
			"%s is reached by a symbolic link of user %u, but belongs to user %u", dir,
			(unsigned)w->linked_by, (unsigned)st.st_uid);
	if (st.st_mode & (S_IWGRP | S_IWOTH))
		return rt_fail(-EPERM, err, errlen, "%s can be written to by others than user %u",
			dir, (unsigned)st.st_uid);
	return 0;
}

static int finish(
	const struct walk *w, const char *dir, struct rt_folder *f, char *err, size_t errlen)
{
	int ret = check_folder(w, dir, f, err, errlen);

	if (ret)
		close(w->at);
	else
		f->fd = w->at;
	return ret;
}

int rt_folder_open(struct rt_folder *f, const char *dir, char *err, size_t errlen)
{
	struct walk w = {.next = w.rest, .at = -1};
	int ret;

	err[0] = 0;
	f->fd = -1;
	w.at = rt_view_open(dir);
	if (w.at != -EINVAL)
		return w.at < 0 ? w.at : finish(&w, dir, f, err, errlen);
	w.at = -1;
	if (snprintf(w.rest, sizeof(w.rest), "%s", dir) >= (int)sizeof(w.rest))
		return -ENAMETOOLONG;
	ret = go_to(&w, open(dir[0] == '/' ? "/" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC));
	while (!ret && *w.next)
		ret = step(&w);
	if (ret == -EPERM)
		snprintf(err, errlen, "%s is reached by symbolic links of different users", dir);
	if (!ret)
		return finish(&w, dir, f, err, errlen);
	if (w.at >= 0)
		close(w.at);
	return ret;
}

void rt_folder_close(struct rt_folder *f)
{
	if (f->fd >= 0)
		close(f->fd);
	f->fd = -1;
}

/* The backlog of telemetry is short. EAGAIN: it is full at the moment. */
int rt_connect_retrying(int fd, const struct sockaddr_un *addr, socklen_t size, int timeout_ms)
{
	for (int ms = 0;; ms += RETRY_MS) {
		if (connect(fd, (const struct sockaddr *)addr, size) == 0)
			return 0;
		if (errno != EAGAIN || ms >= timeout_ms)
			return -errno;
		if (rt_wait_ns(RETRY_MS * 1000000))
			return -ECANCELED;
	}
}

struct attempt {
	int at; /* the socket's file */
	int timeout_ms;
	struct ucred peer;
};

/* The descriptor or -errno. */
static int connect_to(void *arg)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), ret;
	struct attempt *a = arg;
	socklen_t len = sizeof(a->peer);

	if (fd < 0)
		return -errno;
	snprintf(addr.sun_path, sizeof(addr.sun_path), "/proc/self/fd/%d", a->at);
	ret = rt_connect_retrying(fd, &addr, sizeof(addr), a->timeout_ms);
	if (!ret && getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &a->peer, &len))
		ret = -errno;
	if (!ret)
		return fd;
	close(fd);
	return ret;
}

static int connect_as_peer(void *arg)
{
	struct attempt *a = arg;
	int ret = rt_become_user(a->peer.uid);

	return ret ? ret : connect_to(a);
}

/* A probe accepts root and its own user. For one in another user namespace root is neither: it
 * would refuse the first connection. */
static int connect_again(struct attempt *a, int fd, char *err, size_t errlen)
{
	uid_t uid = a->peer.uid;

	if (!uid || !rt_is_nobody_there(a->peer.pid))
		return fd;
	close(fd);
	fd = rt_in_thread(connect_as_peer, a);
	if (fd < 0 && fd != -EAGAIN)
		rt_as_user_failed(uid, fd, err, errlen);
	return fd;
}

int rt_folder_bound(const struct rt_folder *f, const char *name, struct stat *st)
{
	int at = openat(f->fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC),
	    fd = at < 0 ? -1 : socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int ret = fd < 0 ? -errno : 0;

	snprintf(addr.sun_path, sizeof(addr.sun_path), "/proc/self/fd/%d", at);
	if (!ret && fstat(at, st))
		ret = -errno;
	else if (!ret && !S_ISSOCK(st->st_mode))
		ret = -ECONNREFUSED;
	else if (!ret && st->st_uid != f->uid)
		ret = -EPERM;
	else if (!ret && connect(fd, (const struct sockaddr *)&addr, sizeof(addr)))
		ret = errno == EPROTOTYPE ? 1 : -errno;
	if (at >= 0)
		close(at);
	if (fd >= 0)
		close(fd);
	return ret;
}

int rt_folder_connect(
	const struct rt_folder *f, const char *name, int timeout_ms, char *err, size_t errlen)
{
	struct attempt a = {.at = openat(f->fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC),
		.timeout_ms = timeout_ms};
	struct stat st;
	int fd;

	err[0] = 0;
	if (a.at < 0)
		return -errno;
	if (fstat(a.at, &st))
		fd = -errno;
	else if (!S_ISSOCK(st.st_mode))
		fd = -ECONNREFUSED; /* as connect() returns */
	else if (st.st_uid != f->uid)
		fd = refuse(err, errlen, "its socket", st.st_uid, f->uid);
	else
		fd = connect_to(&a);
	if (fd >= 0 && a.peer.uid != f->uid) {
		close(fd);
		fd = refuse(
			err, errlen, "the process that listens on its socket", a.peer.uid, f->uid);
	}
	/* DPDK's telemetry accepts every user. */
	if (fd >= 0 && rt_socket_instance(name, RT_TELEMETRY_SOCKET) < 0)
		fd = connect_again(&a, fd, err, errlen);
	close(a.at);
	return fd;
}

/* A file of the folder's owner to read, or -errno. */
static int open_file(const struct rt_folder *f, const char *name)
{
	struct stat st;
	int fd = rt_foreign_open(f->fd, name, O_NOFOLLOW, &st);

	if (fd < 0 || st.st_uid == f->uid)
		return fd;
	close(fd);
	return -EPERM;
}

bool rt_folder_locked(const struct rt_folder *f, pid_t *pid)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	int fd = open_file(f, "config"), ret;

	*pid = 0;
	if (fd < 0)
		return false;
	ret = fcntl(fd, F_GETLK, &lock);
	close(fd);
	if (ret || lock.l_type == F_UNLCK)
		return false;
	*pid = lock.l_pid > 0 ? lock.l_pid : 0;
	return true;
}

bool rt_folder_starts(const struct rt_folder *f)
{
	uint32_t magic = 0;
	pid_t pid;
	int fd = rt_folder_locked(f, &pid) ? open_file(f, "config") : -1;
	bool starts = fd >= 0 && pread(fd, &magic, sizeof(magic), 0) == sizeof(magic) &&
		      magic != RTE_MAGIC;

	if (fd >= 0)
		close(fd);
	return starts;
}

int rt_address_open(
	const char *app, struct rt_address *a, struct rt_folder *f, char *err, size_t errlen)
{
	int ret = rt_address_split(app, a);

	err[0] = 0;
	if (!ret)
		ret = rt_folder_open(f, a->dir, err, errlen);
	return ret == -ENOTDIR ? -ENOENT : ret;
}

int rt_connect_name(const char *app, const char *name, char *err, size_t errlen)
{
	struct rt_address a;
	struct rt_folder f;
	int ret = rt_address_open(app, &a, &f, err, errlen);

	if (ret)
		return ret;
	/* Its telemetry is not to find a connection that has ended, see telemetry.c. */
	if (!rt_socket_instance(name, RT_TELEMETRY_SOCKET) && rt_folder_halted(&f, err, errlen))
		ret = -EHOSTDOWN;
	else
		ret = rt_folder_connect(&f, name, rt_reader_limits.telemetry_ms, err, errlen);
	/* The folder shows the state of its primary process only. */
	if (ret == -EAGAIN && !a.secondary && rt_folder_halted(&f, err, errlen))
		ret = -EHOSTDOWN;
	rt_folder_close(&f);
	return ret;
}

int rt_connect_why(const char *app, const char *base, char *err, size_t errlen)
{
	char name[RT_SOCKET_NAME_MAX];
	struct rt_address a;
	int ret = rt_address_split(app, &a);

	err[0] = 0;
	if (rt_is_abstract(app))
		return strcmp(base, RT_SOCKET_NAME)
			       ? -ENOENT
			       : rt_abstract_connect(
					 app, rt_reader_limits.telemetry_ms, err, errlen);
	if (!ret)
		ret = rt_address_socket(&a, base, name);
	return ret ? ret : rt_connect_name(app, name, err, errlen);
}

int rt_connect(const char *app, const char *base)
{
	char err[256];

	return rt_connect_why(app, base, err, sizeof(err));
}

static bool starts(const char *app)
{
	char err[RT_TEXT_LEN];
	struct rt_address a;
	struct rt_folder f;
	bool is;

	if (rt_is_abstract(app) || rt_address_open(app, &a, &f, err, sizeof(err)))
		return false;
	is = !a.secondary && !a.instance && rt_folder_starts(&f);
	rt_folder_close(&f);
	return is;
}

int rt_connect_failed(const char *app, const char *name, int error, char *err, size_t errlen)
{
	if (err[0])
		return error;
	if ((error == -ENOENT || error == -ECONNREFUSED || error == -EAGAIN) && starts(app))
		return rt_fail(
			-EAGAIN, err, errlen, "it is starting: DPDK is not initialised in it yet");
	return rt_fail(error, err, errlen, "cannot connect to %s/%s: %s", app, name,
		error == -EAGAIN ? "it accepts no connection; its control threads may get no CPU"
				 : strerror(-error));
}
