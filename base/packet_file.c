/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
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

int packet_file_open(const char *path, bool group_read, bool *created)
{
	const mode_t mode = group_read ? 0640 : 0600;
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode), at;

	*created = fd >= 0;
	/* What the umask has taken away. A file system without modes refuses, and has none to set.
	 */
	if (fd >= 0 && group_read)
		(void)fchmod(fd, mode);
	if (fd >= 0 || errno != EEXIST)
		return fd < 0 ? -errno : fd;
	at = open(path, O_PATH | O_CLOEXEC);
	if (at < 0)
		return -errno;
	fd = open_checked(at, mode);
	close(at);
	return fd;
}

const char *packet_file_error(int error)
{
	return error == -EPERM
		       ? "it belongs to another user, or may not be written; choose another file"
		       : strerror(-error);
}
