/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "foreign.h"

int rt_foreign_reopen(int at, struct stat *st)
{
	char path[64];
	int fd = -EPERM;

	if (at < 0)
		return at;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", at);
	if (fstat(at, st))
		fd = -errno;
	else if (S_ISREG(st->st_mode) && (fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)) < 0)
		fd = -errno;
	close(at);
	return fd;
}

int rt_foreign_open(int folder, const char *name, int flags, struct stat *st)
{
	int at = openat(folder, name, O_PATH | O_CLOEXEC | flags);

	return at < 0 ? -errno : rt_foreign_reopen(at, st);
}

/* The size of a file may change, and that of a file in /proc is 0: read until the end. */
static ssize_t read_all(int fd, char *data, size_t max)
{
	size_t len = 0;
	ssize_t n;

	while (len < max && (n = read(fd, data + len, max - len))) {
		if (n < 0)
			return -errno;
		len += (size_t)n;
	}
	return len < max ? (ssize_t)len : -EFBIG;
}

ssize_t rt_foreign_read(int folder, const char *name, int flags, size_t max, char **data)
{
	struct stat st;
	ssize_t n = -ENOMEM;
	int fd = rt_foreign_open(folder, name, flags, &st);

	*data = NULL;
	if (fd < 0)
		return fd;
	*data = malloc(max);
	if (*data)
		n = read_all(fd, *data, max);
	close(fd);
	if (n >= 0) {
		(*data)[n] = '\0';
		return n;
	}
	free(*data);
	*data = NULL;
	return n;
}
