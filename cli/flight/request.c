/* SPDX-License-Identifier: BSD-3-Clause */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
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
#include "cli/monitor/rates.h"
#include "common/foreign.h"
#include "request.h"

#define LOCK    ".recorder" /* locked while a recorder writes here; holds its process id */
#define COMMENT ".comment"  /* of the last request, until the recorder has taken it */

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

/* Of the file that a recorder has locked, and its process id; -ESRCH: none writes there. */
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
	/* Of a recorder with capabilities only privileged ones see what it has open. */
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

/* Whole or not at all: the recorder may be reading the one before. */
static int put_comment(int folder, const char *text, const struct stat *lock)
{
	char own[32];
	int ret;

	snprintf(own, sizeof(own), COMMENT ".%d", getpid());
	ret = put_text(folder, own, text, lock);
	if (!ret && renameat(folder, own, folder, COMMENT))
		ret = -errno;
	if (ret)
		unlinkat(folder, own, 0);
	return ret;
}

static int send_to(int folder, const char *comment)
{
	struct stat lock;
	pid_t pid;
	int ret = recorder_of(folder, &lock, &pid), process;

	if (ret)
		return ret;
	/* First: of a process that ends, the id may be another one's at once. */
	process = (int)syscall(SYS_pidfd_open, pid, 0);
	if (process < 0)
		return -errno;
	ret = check_recorder(folder, pid, &lock);
	if (!ret && comment && *comment)
		ret = put_comment(folder, comment, &lock);
	if (!ret && syscall(SYS_pidfd_send_signal, process, SIGUSR1, NULL, 0)) {
		ret = -errno;
		if (comment && *comment)
			unlinkat(folder, COMMENT, 0);
	}
	close(process);
	return ret;
}

int request_send(const char *folder, const char *comment)
{
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC), ret;

	if (fd < 0)
		return errno == ENOENT || errno == ENOTDIR ? -ESRCH : -errno;
	ret = send_to(fd, comment);
	close(fd);
	return ret;
}

void request_take(const char *folder, char comment[REQUEST_COMMENT_MAX])
{
	int dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char text[REQUEST_COMMENT_MAX] = "";
	struct stat st;
	int fd = dir >= 0 ? rt_foreign_open(dir, COMMENT, O_NOFOLLOW, &st) : -1;

	if (fd >= 0) {
		if (read(fd, text, sizeof(text) - 1) < 0)
			*text = '\0';
		close(fd);
	}
	if (dir >= 0) {
		unlinkat(dir, COMMENT, 0);
		close(dir);
	}
	printable(comment, REQUEST_COMMENT_MAX, text);
}
