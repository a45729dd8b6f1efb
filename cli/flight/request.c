/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/util.h"
#include "cli/monitor/rates.h"
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

/* The process that writes there; 0: none. */
static pid_t recorder_of(const char *folder)
{
	char *lock = path_in(folder, LOCK), text[16] = "";
	int fd = lock ? open(lock, O_RDONLY | O_CLOEXEC) : -1;
	pid_t pid = 0;

	free(lock);
	if (fd < 0)
		return 0;
	if (flock(fd, LOCK_SH | LOCK_NB) && read(fd, text, sizeof(text) - 1) > 0)
		pid = atoi(text);
	close(fd);
	return pid;
}

static int put_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600), ret = 0;
	size_t len = strlen(text);

	if (fd < 0)
		return -errno;
	if (write(fd, text, len) != (ssize_t)len)
		ret = errno ? -errno : -EIO;
	close(fd);
	return ret;
}

/* Whole or not at all: the recorder may be reading the one before. */
static int put_comment(const char *folder, const char *text)
{
	char own[32], *path = path_in(folder, COMMENT), *from;
	int ret;

	snprintf(own, sizeof(own), COMMENT ".%d", getpid());
	from = path_in(folder, own);
	ret = path && from ? put_text(from, text) : -ENOMEM;
	if (!ret && rename(from, path))
		ret = -errno;
	if (ret && from)
		unlink(from);
	free(path);
	free(from);
	return ret;
}

int request_send(const char *folder, const char *comment)
{
	pid_t pid = recorder_of(folder);
	int ret = pid <= 0 ? -ESRCH : comment && *comment ? put_comment(folder, comment) : 0;

	if (!ret && kill(pid, SIGUSR1))
		ret = -errno;
	return ret;
}

void request_take(const char *folder, char comment[REQUEST_COMMENT_MAX])
{
	char text[REQUEST_COMMENT_MAX] = "", *path = path_in(folder, COMMENT);
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK) : -1;

	if (fd >= 0) {
		if (read(fd, text, sizeof(text) - 1) < 0)
			*text = '\0';
		close(fd);
		unlink(path);
	}
	free(path);
	printable(comment, REQUEST_COMMENT_MAX, text);
}
