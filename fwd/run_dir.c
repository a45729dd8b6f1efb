/* SPDX-License-Identifier: BSD-3-Clause */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "run_dir.h"

static void base_path(char out[PATH_MAX])
{
	const char *base = getenv("RUNTIME_DIRECTORY");

	if (!base)
		base = getuid() ? getenv("XDG_RUNTIME_DIR") : "/var/run";
	snprintf(out, PATH_MAX, "%s/dpdk", base ? base : "/tmp");
}

void run_dir_path(char out[PATH_MAX], const char *name)
{
	size_t n;

	base_path(out);
	n = strlen(out);
	snprintf(out + n, PATH_MAX - n, "/%s", name);
}

bool run_dir_exists(const char *dir)
{
	struct stat st;

	return !lstat(dir, &st);
}

static bool known(const char *name)
{
	static const char *const whole[] = {
		"config", "hugepage_info", "hugepage_data", "mp_socket", "ringtap.ids"};
	static const char *const starts[] = {
		"fbarray_", "mp_socket_", "dpdk_telemetry.v2", "ringtap.sock"};

	for (size_t i = 0; i < sizeof(whole) / sizeof(whole[0]); i++)
		if (!strcmp(name, whole[i]))
			return true;
	for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++)
		if (!strncmp(name, starts[i], strlen(starts[i])))
			return true;
	return false;
}

/* EAL locks its config while it runs. F_GETLK does not report locks of this process. */
static bool locked(int dir)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	int fd = openat(dir, "config", O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	bool held;

	if (fd < 0)
		return false;
	held = !fcntl(fd, F_GETLK, &lock) && lock.l_type != F_UNLCK;
	close(fd);
	return held;
}

static bool accepts(int dir, const char *name, int type)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	struct ucred peer = {0};
	socklen_t len = sizeof(peer);
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), ret;
	bool yes;

	if (fd < 0)
		return false;
	/* By the descriptor: the path may be longer than sun_path. */
	ret = snprintf(a.sun_path, sizeof(a.sun_path), "/proc/self/fd/%d/%s", dir, name);
	yes = ret < (int)sizeof(a.sun_path) &&
	      (!connect(fd, (struct sockaddr *)&a, sizeof(a)) || errno == EAGAIN);
	/* rte_eal_cleanup() does not close this process's own telemetry socket. */
	if (yes && !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) && peer.pid == getpid())
		yes = false;
	close(fd);
	return yes;
}

static bool accepts_any(int dir, const char *name)
{
	static const int types[] = {SOCK_SEQPACKET, SOCK_DGRAM, SOCK_STREAM};
	struct stat st;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISSOCK(st.st_mode))
		return false;
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (accepts(dir, name, types[i]))
			return true;
	return false;
}

static DIR *open_dir(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *d = fd >= 0 ? fdopendir(fd) : NULL;

	if (fd >= 0 && !d)
		close(fd);
	return d;
}

static bool used(DIR *d)
{
	bool found = locked(dirfd(d));
	struct dirent *e;

	rewinddir(d);
	while (!found && (e = readdir(d)))
		found = accepts_any(dirfd(d), e->d_name);
	return found;
}

bool run_dir_used(const char *dir)
{
	DIR *d = open_dir(dir);
	bool yes = d && used(d);

	if (d)
		closedir(d);
	return yes;
}

void run_dir_remove(const char *dir)
{
	DIR *d = open_dir(dir);
	struct dirent *e;

	if (!d)
		return;
	if (!used(d)) {
		rewinddir(d);
		while ((e = readdir(d)))
			if (known(e->d_name))
				(void)unlinkat(dirfd(d), e->d_name, 0);
		(void)rmdir(dir);
	}
	closedir(d);
}

/* Whether the name is the prefix and the PID of a process that does not exist. A process of another
 * PID namespace may still run: run_dir_remove() checks the sockets, too. */
static bool left_behind(int base, const char *name, const char *prefix)
{
	size_t n = strlen(prefix);
	struct stat st;
	char *end;
	long pid;

	if (strncmp(name, prefix, n) || name[n] < '1' || name[n] > '9')
		return false;
	pid = strtol(name + n, &end, 10);
	return !*end && pid <= INT_MAX && kill((pid_t)pid, 0) && errno == ESRCH &&
	       !fstatat(base, name, &st, AT_SYMLINK_NOFOLLOW) && S_ISDIR(st.st_mode) &&
	       st.st_uid == geteuid();
}

void run_dir_sweep(const char *prefix)
{
	char base[PATH_MAX], dir[PATH_MAX];
	struct dirent *e;
	DIR *d;

	base_path(base);
	d = open_dir(base);
	while (d && (e = readdir(d)))
		if (left_behind(dirfd(d), e->d_name, prefix)) {
			run_dir_path(dir, e->d_name);
			run_dir_remove(dir);
		}
	if (d)
		closedir(d);
}
