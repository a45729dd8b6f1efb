/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "packet_file.h"

/* Pipes of a shell belong to the user that started it, which may have become root since. */
static bool is_shells(int fd)
{
	struct statfs fs;

	return !fstatfs(fd, &fs) && fs.f_type == PIPEFS_MAGIC;
}

/* The sysctls fs.protected_regular and fs.protected_fifos refuse a part of this, where they are
 * set. */
static bool is_foreign(int fd, const struct stat *st)
{
	return st->st_uid != geteuid() &&
	       (S_ISREG(st->st_mode) || (S_ISFIFO(st->st_mode) && !is_shells(fd)));
}

/* at: with O_PATH, as opening a pipe waits for its reader. */
static int open_checked(int at, mode_t mode)
{
	struct stat st;
	char path[64];
	int fd;

	if (fstat(at, &st))
		return -errno;
	if (is_foreign(at, &st))
		return -EPERM;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", at);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (S_ISREG(st.st_mode) && (st.st_mode & 07777) != mode && fchmod(fd, mode)) {
		int error = errno;

		close(fd);
		return -error;
	}
	return fd;
}

/* Names a file that is still to be made, by a link of another user's it would be that one's choice.
 */
static int open_by_link(const char *path, mode_t mode)
{
	struct stat st;
	int fd;

	if (lstat(path, &st) || !S_ISLNK(st.st_mode))
		return -EAGAIN; /* it has gone, or been replaced, just now */
	if (st.st_uid && st.st_uid != geteuid())
		return -EPERM;
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, mode);
	return fd < 0 ? -errno : fd;
}

static int open_once(const char *path, mode_t mode, bool *created)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode), at;

	*created = fd >= 0;
	if (fd >= 0 || errno != EEXIST)
		return fd < 0 ? -errno : fd;
	at = open(path, O_PATH | O_CLOEXEC);
	if (at < 0 && errno == ENOENT) {
		fd = open_by_link(path, mode);
		*created = fd >= 0;
		return fd;
	}
	if (at < 0)
		return -errno;
	fd = open_checked(at, mode);
	close(at);
	return fd;
}

/* Two programs in one file would leave neither's packets. The lock ends with the descriptor. 0, or
 * -EBUSY; -EAGAIN: who had it has removed the file. Some file systems have no locks. */
static int lock(int fd)
{
	struct stat st;

	if (fstat(fd, &st) || !S_ISREG(st.st_mode))
		return 0;
	if (flock(fd, LOCK_EX | LOCK_NB))
		return errno == EWOULDBLOCK ? -EBUSY : 0;
	return !fstat(fd, &st) && !st.st_nlink ? -EAGAIN : 0;
}

int packet_file_open(const char *path, bool group_read, bool *created)
{
	int fd, ret;

	do {
		fd = open_once(path, group_read ? 0640 : 0600, created);
		ret = fd < 0 ? fd : lock(fd);
		/* Sets the group's bit, which the umask may have cleared. A file system
		 * without modes refuses. */
		if (fd >= 0 && *created && group_read)
			(void)fchmod(fd, 0640);
		if (fd >= 0 && ret)
			close(fd);
	} while (ret == -EAGAIN);
	return ret ? ret : fd;
}

const char *packet_file_error(int error)
{
	switch (error) {
	case -EPERM:
		return "it belongs to another user, or may not be written; choose another file";
	case -EBUSY: return "another program writes to it; choose another file";
	case -ENOENT: return "No such file or directory; make its folder first";
	case -EACCES: return "Permission denied; choose a file that this user may write";
	case -EISDIR: return "Is a directory; give the name of a file in it";
	case -ENOSPC: return "No space left on device; free some, or choose another disk";
	case -EROFS: return "Read-only file system; choose another one";
	default: return strerror(-error);
	}
}
