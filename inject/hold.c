/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The lock is on /proc/PID/mem: to take it needs the right to trace the process, it is bound to
 * this process and not to a number that another one gets later, and nothing is left behind by a
 * tool that is killed. Tools with different mounts of /proc do not exclude each other.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "hold.h"

#define POLL_MS 5

int rt_hold(pid_t pid, int timeout_ms)
{
	char path[64];
	int fd, ret;

	snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	for (int ms = 0; flock(fd, LOCK_EX | LOCK_NB); ms += POLL_MS) {
		ret = errno == EWOULDBLOCK ? -ETIMEDOUT : -errno;
		if (ret != -ETIMEDOUT || ms >= timeout_ms) {
			close(fd);
			return ret;
		}
		nanosleep(&(struct timespec){.tv_nsec = POLL_MS * 1000000}, NULL);
	}
	return fd;
}

bool rt_hold_is_same(int hold)
{
	char none;

	/* The descriptor is that of the memory at the time of open(), which is gone after exec() or
	 * the end: nothing is read then. Of memory that exists, address 0 is an error. */
	return pread(hold, &none, sizeof(none), 0) != 0;
}
