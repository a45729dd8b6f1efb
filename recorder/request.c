/* SPDX-License-Identifier: BSD-3-Clause */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/util.h"
#include "measure/rates.h"
#include "common/foreign.h"
#include "request.h"

#define LOCK ".recorder" /* locked while a recorder writes here; holds its process id */
/* A request and its comment, until the recorder has taken it; why there is no incident of it, until
 * its sender has read it. Behind each name stands the sender's process id. */
#define REQUEST ".request-"
#define REFUSED ".refused-"
#define FRESH   ".new-" /* becomes REQUEST */
#define POLL_MS 10

static char *path_in(const char *folder, const char *name)
{
	char *path;

	return asprintf(&path, "%s/%s", folder, name) < 0 ? NULL : path;
}

int folder_lock(const char *path)
{
	char *lock = NULL, pid[16];
	int fd = -1, ret;

	if ((mkdir(path, 0700) && errno != EEXIST) || !(lock = path_in(path, LOCK)) ||
		(fd = open(lock, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600)) < 0) {
		ret = -errno;
		message_print("flight: -w %s: %s; choose another folder", path, strerror(-ret));
		free(lock);
		return ret;
	}
	free(lock);
	if (flock(fd, LOCK_EX | LOCK_NB)) {
		message_print("flight: -w %s: another recorder writes there; choose another folder",
			path);
		close(fd);
		return -EBUSY;
	}
	snprintf(pid, sizeof(pid), "%d\n", getpid());
	if (ftruncate(fd, 0) || pwrite(fd, pid, strlen(pid), 0) != (ssize_t)strlen(pid)) {
		message_print("flight: -w %s: %s; choose another folder", path, strerror(errno));
		close(fd);
		return -EIO;
	}
	return fd;
}

/* ---- the recorder, for other processes: the owner of the folder may be an attacker */

/* Status of the file that a recorder has locked, and its process id; -ESRCH: none writes there. */
static int recorder_of(int folder, struct stat *lock, pid_t *pid)
{
	char text[16] = "";
	int fd = rt_foreign_open(folder, LOCK, O_NOFOLLOW, lock);

	if (fd < 0)
		return fd == -ENOENT ? -ESRCH : fd;
	*pid = 0;
	if (flock(fd, LOCK_SH | LOCK_NB) && read(fd, text, sizeof(text) - 1) > 0)
		*pid = atoi(text);
	close(fd);
	return *pid > 0 ? 0 : -ESRCH;
}

/* Whether all its user ids are this one. Its folder in /proc is root's if it has capabilities. */
static bool is_of(int process, uid_t uid)
{
	unsigned real, effective, saved;
	char line[128];
	bool is = false;
	int fd = openat(process, "status", O_RDONLY | O_CLOEXEC);
	FILE *f = fd >= 0 ? fdopen(fd, "r") : NULL;

	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "Uid: %u %u %u", &real, &effective, &saved) != 3)
			continue;
		is = real == uid && effective == uid && saved == uid;
		break;
	}
	if (f)
		fclose(f);
	else if (fd >= 0)
		close(fd);
	return is;
}

/* 1: the process has the file open; 0; -EACCES: only more privileged ones see that; -errno. */
static int has_open(int process, const struct stat *file)
{
	int fd = openat(process, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC), found = 0;
	DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *e;
	struct stat st;

	if (!d) {
		int error = errno;

		if (fd >= 0)
			close(fd);
		return -error;
	}
	while (found < 1 && (e = readdir(d))) {
		if (fstatat(dirfd(d), e->d_name, &st, 0))
			found = errno == EACCES ? -EACCES : found;
		else if (st.st_dev == file->st_dev && st.st_ino == file->st_ino)
			found = 1;
	}
	closedir(d);
	return found;
}

/* 0, if the process is the recorder that has the lock; -EPERM: it need not be. The owner of the
 * folder writes what process that is. */
static int check_recorder(int folder, pid_t pid, const struct stat *lock)
{
	char path[32];
	struct stat dir;
	int process, open_there, ret = -EPERM;

	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	process = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (process < 0)
		return -ESRCH;
	open_there = has_open(process, lock);
	/* Only privileged processes see the open files of a recorder with capabilities. */
	if (open_there == -EACCES && !fstat(folder, &dir) && dir.st_uid == lock->st_uid)
		open_there = 1;
	if (open_there > 0 && lock->st_nlink == 1 && is_of(process, lock->st_uid))
		ret = 0;
	close(process);
	return ret;
}

/* ---- requests */

static int put_text(int folder, const char *name, const char *text, const struct stat *lock)
{
	size_t len = strlen(text);
	int fd, ret = 0;

	unlinkat(folder, name, 0);
	fd = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return -errno;
	/* The recorder is to read what root has written; an incident without it is better than
	 * none. */
	if (geteuid() != lock->st_uid)
		(void)!fchown(fd, lock->st_uid, lock->st_gid);
	if (write(fd, text, len) != (ssize_t)len)
		ret = errno ? -errno : -EIO;
	close(fd);
	return ret;
}

static char *name_of(char name[32], const char *before)
{
	snprintf(name, 32, "%s%d", before, getpid());
	return name;
}

/* Whole or not at all: the recorder may be reading requests. */
static int put_request(int folder, const char *text, const struct stat *lock)
{
	char fresh[32], name[32], refused[32];
	int ret = put_text(folder, name_of(fresh, FRESH), text, lock);

	unlinkat(folder, name_of(refused, REFUSED), 0);
	if (!ret && renameat(folder, fresh, folder, name_of(name, REQUEST)))
		ret = -errno;
	if (ret)
		unlinkat(folder, fresh, 0);
	return ret;
}

static int read_refusal(int folder, char why[REQUEST_WHY_MAX])
{
	char name[32], *text;
	ssize_t n =
		rt_foreign_read(folder, name_of(name, REFUSED), O_NOFOLLOW, REQUEST_WHY_MAX, &text);

	if (n < 0)
		return 0;
	memcpy(why, text, (size_t)n + 1);
	free(text);
	unlinkat(folder, name, 0);
	return -ECANCELED;
}

/* Until the recorder has taken the request, or does so no more. */
static int await_answer(int folder, int process, int timeout_ms, char why[REQUEST_WHY_MAX])
{
	struct pollfd p = {.fd = process, .events = POLLIN};
	char name[32];

	name_of(name, REQUEST);
	for (int ms = 0; !faccessat(folder, name, F_OK, AT_SYMLINK_NOFOLLOW); ms += POLL_MS) {
		bool ended = rt_poll_ns(&p, 1, POLL_MS * 1000000) > 0;

		if ((ended || ms >= timeout_ms) && !unlinkat(folder, name, 0))
			return ended ? -ESRCH : -ETIMEDOUT;
	}
	return read_refusal(folder, why);
}

static int send_signal(int process)
{
	siginfo_t info = {.si_signo = SIGUSR1,
		.si_code = SI_QUEUE,
		.si_pid = getpid(),
		.si_uid = getuid(),
		.si_value.sival_int = REQUEST_VALUE};

	return syscall(SYS_pidfd_send_signal, process, SIGUSR1, &info, 0) ? -errno : 0;
}

static int send_to(int folder, const char *comment, int timeout_ms, char why[REQUEST_WHY_MAX])
{
	struct stat lock;
	char name[32];
	pid_t pid;
	int ret = recorder_of(folder, &lock, &pid), process;

	if (ret)
		return ret;
	/* First: of a process that ends, the id may be another one's at once. */
	process = (int)syscall(SYS_pidfd_open, pid, 0);
	if (process < 0)
		return -errno;
	ret = check_recorder(folder, pid, &lock);
	if (!ret)
		ret = put_request(folder, comment ? comment : "", &lock);
	if (!ret && (ret = send_signal(process)))
		unlinkat(folder, name_of(name, REQUEST), 0);
	if (!ret && timeout_ms)
		ret = await_answer(folder, process, timeout_ms, why);
	close(process);
	return ret;
}

int request_send(const char *folder, const char *comment)
{
	return request_send_within(folder, comment, 0, NULL);
}

int request_send_within(
	const char *folder, const char *comment, int timeout_ms, char why[REQUEST_WHY_MAX])
{
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC), ret;

	if (fd < 0)
		return errno == ENOENT || errno == ENOTDIR ? -ESRCH : -errno;
	ret = send_to(fd, comment, timeout_ms, why);
	close(fd);
	return ret;
}

/* ---- the recorder's end */

static int is_request(const struct dirent *e)
{
	size_t n = strlen(REQUEST);

	return !strncmp(e->d_name, REQUEST, n) && e->d_name[n] &&
	       !e->d_name[n + strspn(e->d_name + n, "0123456789")];
}

static void take(int folder, const char *name, request_fn begin, void *ctx)
{
	char comment[REQUEST_COMMENT_MAX] = "", refused[300], *text;
	struct stat st = {.st_uid = geteuid()};
	ssize_t n = rt_foreign_read(folder, name, O_NOFOLLOW, sizeof(comment), &text);

	if (n >= 0)
		printable(comment, sizeof(comment), text);
	free(text);
	snprintf(refused, sizeof(refused), "%s%s", REFUSED, name + strlen(REQUEST));
	/* Before the request is gone, which the sender waits for. */
	if (begin(ctx, comment))
		(void)put_text(folder, refused, message_last(), &st);
	unlinkat(folder, name, 0);
}

unsigned requests_take(const char *path, request_fn begin, void *ctx)
{
	int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), n;
	struct dirent **list;

	if (folder < 0)
		return 0;
	n = scandir(path, &list, is_request, alphasort);
	for (int i = 0; i < n; i++) {
		take(folder, list[i]->d_name, begin, ctx);
		free(list[i]);
	}
	if (n >= 0)
		free(list);
	close(folder);
	return n > 0 ? (unsigned)n : 0;
}
