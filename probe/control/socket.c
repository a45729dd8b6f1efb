/* SPDX-License-Identifier: BSD-3-Clause */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "probe/dpdk/prefix.h"
#include "socket.h"

#define TELEMETRY  "dpdk_telemetry.v2"
#define BACKLOG    32
#define LOCK_TRIES 100
#define BIND_TRIES 3

/* So that no process takes another's socket, between its bind() and its listen(), for a stale
 * one. EAL locks the same folder while it cleans up. Returns the descriptor; -1: go on without
 * the lock. */
static int lock_folder(const char *dir)
{
	const struct timespec pause = {.tv_nsec = 1000000};
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	for (int i = 0; fd >= 0 && i < LOCK_TRIES; i++) {
		if (!flock(fd, LOCK_EX | LOCK_NB))
			return fd;
		nanosleep(&pause, NULL);
	}
	if (fd >= 0)
		close(fd);
	return -1;
}

static void unlock_folder(int fd)
{
	if (fd < 0)
		return;
	/* A child forked meanwhile may hold a copy of the descriptor: closing would not unlock. */
	flock(fd, LOCK_UN);
	close(fd);
}

static int make_addr(struct sockaddr_un *addr, const char *dir, const char *base, int n)
{
	char number[16] = "";
	int len;

	*addr = (struct sockaddr_un){.sun_family = AF_UNIX};
	if (n)
		snprintf(number, sizeof(number), ":%d", n);
	len = snprintf(addr->sun_path, sizeof(addr->sun_path), "%s/%s%s", dir, base, number);
	return len >= (int)sizeof(addr->sun_path) ? -ENAMETOOLONG : 0;
}

/* -ECONNREFUSED: stale, no process listens any more; -ENOENT; 0: in use, or possibly in use. */
static int look_at(const struct sockaddr_un *addr)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), ret = 0;

	if (fd < 0)
		return 0;
	if (connect(fd, (const struct sockaddr *)addr, sizeof(*addr)) &&
		(errno == ECONNREFUSED || errno == ENOENT))
		ret = -errno;
	close(fd);
	return ret;
}

/* replace: a socket on which no process listens. */
static int bind_to(struct rt_listener *l, const char *dir, const char *base, int n, bool replace)
{
	int ret = make_addr(&l->addr, dir, base, n);

	for (int i = 0; !ret && i < BIND_TRIES; i++) {
		if (!bind(l->fd, (struct sockaddr *)&l->addr, sizeof(l->addr)))
			return 0;
		if (errno != EADDRINUSE)
			return -errno;
		ret = look_at(&l->addr);
		if (!ret || (ret == -ECONNREFUSED && !replace))
			return -EADDRINUSE;
		if (ret == -ECONNREFUSED && unlink(l->addr.sun_path) && errno != ENOENT)
			return -errno;
		ret = 0;
	}
	return ret ? ret : -EADDRINUSE;
}

/* The number of the telemetry socket that a descriptor listens on; -1: it is none. */
static int telemetry_number(int fd, const char *base)
{
	struct sockaddr_un addr = {0};
	socklen_t len = sizeof(addr) - 1, on_len = sizeof(int);
	const char *rest = addr.sun_path + strlen(base);
	unsigned long n;
	char *end;
	int on = 0;

	if (getsockname(fd, (struct sockaddr *)&addr, &len) || addr.sun_family != AF_UNIX ||
		strncmp(addr.sun_path, base, strlen(base)) ||
		getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &on, &on_len) || !on)
		return -1;
	if (!*rest)
		return 0;
	n = *rest == ':' ? strtoul(rest + 1, &end, 10) : 0;
	return n && !*end && n < RT_INSTANCES_MAX ? (int)n : -1;
}

/* DPDK's telemetry.c chooses the number, and no function returns it. -1: unknown, or no
 * telemetry. */
static int find_telemetry(const char *dir)
{
	struct sockaddr_un base;
	struct dirent *e;
	DIR *d;
	int n = -1;

	if (make_addr(&base, dir, TELEMETRY, 0))
		return -1;
	d = opendir("/proc/self/fd");
	while (d && n < 0 && (e = readdir(d))) {
		if (e->d_name[0] != '.')
			n = telemetry_number(atoi(e->d_name), base.sun_path);
	}
	if (d)
		closedir(d);
	return n;
}

/* Readers pair sockets of the same number: they belong to one application. */
static bool telemetry_lives(const char *dir, int n)
{
	struct sockaddr_un addr;

	return !make_addr(&addr, dir, TELEMETRY, n) && !look_at(&addr);
}

static int choose(struct rt_listener *l, const char *dir, bool locked)
{
	int own = find_telemetry(dir), n = own < 0 ? 0 : own, ret = -EADDRINUSE;

	if (own >= 0) /* no other process starts with this number */
		ret = bind_to(l, dir, RT_SOCKET_NAME, own, true);
	for (int i = 0; ret == -EADDRINUSE && i < RT_INSTANCES_MAX; i++) {
		n = i;
		if (i != own && !telemetry_lives(dir, i))
			ret = bind_to(l, dir, RT_SOCKET_NAME, i, locked);
	}
	snprintf(l->name, sizeof(l->name), n ? RT_SOCKET_NAME ":%d" : RT_SOCKET_NAME, n);
	return ret;
}

static bool is_abstract(const struct rt_listener *l)
{
	return !l->addr.sun_path[0];
}

/* With --in-memory or --no-shconf, EAL goes on without the folder: the file system of a container
 * may be read-only. */
static bool is_unusable(int error)
{
	return error == -ENOENT || error == -ENOTDIR || error == -EROFS || error == -EACCES ||
	       error == -EPERM;
}

/* The name is unique in a PID namespace, but others may have the same network namespace. */
static int bind_abstract(struct rt_listener *l)
{
	char prefix[RT_NAME_LEN];
	const size_t most = sizeof(l->addr.sun_path) - 1;

	rt_prefix(prefix);
	for (int n = 0; n < RT_INSTANCES_MAX; n++) {
		char number[16] = "";
		int len;

		l->addr = (struct sockaddr_un){.sun_family = AF_UNIX};
		if (n)
			snprintf(number, sizeof(number), ":%d", n);
		len = snprintf(l->addr.sun_path + 1, most, RT_ABSTRACT_NAME "%s/%d%s", prefix,
			(int)getpid(), number);
		if ((size_t)len >= most)
			return -ENAMETOOLONG;
		if (!bind(l->fd, (struct sockaddr *)&l->addr,
			    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)len)))
			return 0;
		if (errno != EADDRINUSE)
			return -errno;
	}
	return -EADDRINUSE;
}

/* The process id is that in its own PID namespace: two secondaries may have the same. */
static int choose_secondary(struct rt_listener *l, const char *dir, pid_t pid, bool locked)
{
	char base[RT_SOCKET_NAME_MAX];
	int ret = -EADDRINUSE;

	snprintf(base, sizeof(base), RT_SOCKET_SECONDARY "%d", (int)pid);
	for (int i = 0; ret == -EADDRINUSE && i < RT_INSTANCES_MAX; i++) {
		ret = bind_to(l, dir, base, i, locked);
		snprintf(l->name, sizeof(l->name), i ? "%.24s:%d" : "%.24s", base, i);
	}
	return ret;
}

/* Sockets of secondaries that were killed: their names contain process ids, so that no later
 * process would replace them. */
static void remove_stale(const char *dir)
{
	struct sockaddr_un addr;
	struct dirent *e;
	DIR *d = opendir(dir);

	while (d && (e = readdir(d))) {
		if (!strncmp(e->d_name, RT_SOCKET_SECONDARY, strlen(RT_SOCKET_SECONDARY)) &&
			!make_addr(&addr, dir, e->d_name, 0) && look_at(&addr) == -ECONNREFUSED)
			unlink(addr.sun_path);
	}
	if (d)
		closedir(d);
}

static int bind_somewhere(struct rt_listener *l, const char *dir, pid_t secondary, bool locked)
{
	int ret = -ENOENT;

	if (secondary)
		ret = choose_secondary(l, dir, secondary, locked);
	else if (*dir)
		ret = choose(l, dir, locked);

	/* A socket of telemetry of its own shows that there is a folder: the process may have given
	 * up its rights on it since then, and readers come by telemetry. */
	if (secondary || !is_unusable(ret) || find_telemetry(dir) >= 0)
		return ret;
	l->name[0] = '\0';
	return bind_abstract(l);
}

int rt_listener_open(struct rt_listener *l, const char *dir, pid_t secondary)
{
	int lock, ret;

	l->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (l->fd < 0)
		return -errno;
	lock = lock_folder(dir);
	/* Without the lock, a socket may be one that is not listened on yet. */
	if (lock >= 0)
		remove_stale(dir);
	/* On Linux bind() gives the socket's own mode to the file. */
	ret = fchmod(l->fd, 0600) ? -errno : bind_somewhere(l, dir, secondary, lock >= 0);
	if (!ret &&
		(listen(l->fd, BACKLOG) || (!is_abstract(l) && stat(l->addr.sun_path, &l->file)))) {
		ret = -errno;
		if (!is_abstract(l))
			unlink(l->addr.sun_path);
	}
	unlock_folder(lock);
	if (ret)
		close(l->fd);
	return ret;
}

void rt_listener_close(struct rt_listener *l)
{
	char dir[sizeof(l->addr.sun_path)];
	struct stat now;
	int lock;

	if (is_abstract(l)) {
		close(l->fd);
		return;
	}
	memcpy(dir, l->addr.sun_path, sizeof(dir));
	*strrchr(dir, '/') = 0;
	lock = lock_folder(dir);
	/* Before the socket is closed: afterwards the file could be another process's. */
	if (!stat(l->addr.sun_path, &now) && now.st_dev == l->file.st_dev &&
		now.st_ino == l->file.st_ino)
		unlink(l->addr.sun_path);
	close(l->fd);
	unlock_folder(lock);
}
