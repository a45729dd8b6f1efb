/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "secondary.h"

#define NUMBERS   "ringtap.ids"
#define NEW_NS    10000000000ull
#define STARTTIME 22 /* its place in /proc/PID/stat, see proc(5) */

/* A byte of the file for each number. The kernel releases the lock with the process. */
static int take_number(int fd)
{
	for (int i = 1; i < RT_PROCESSES_MAX; i++) {
		struct flock lock = {
			.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = i, .l_len = 1};

		if (!fcntl(fd, F_OFD_SETLK, &lock))
			return i;
		if (errno != EAGAIN && errno != EACCES)
			return -errno;
	}
	return -EBUSY;
}

int rt_process_number(void)
{
	static int number;
	const char *dir = rte_eal_get_runtime_dir();
	char path[PATH_MAX];
	int fd, ret;

	if (number || !rt_is_secondary())
		return number;
	if (!dir || snprintf(path, sizeof(path), "%s/" NUMBERS, dir) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return -errno;
	ret = take_number(fd);
	if (ret < 0)
		close(fd);
	else
		number = ret; /* the descriptor holds the lock and stays open */
	return ret;
}

bool rt_process_is_new(void)
{
	int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
	uint64_t hz = (uint64_t)sysconf(_SC_CLK_TCK), start_ns;
	char text[1024], *at;
	ssize_t n;

	if (fd < 0)
		return true;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[n > 0 ? n : 0] = 0;
	at = strrchr(text, ')'); /* end of the name, the second field, which may contain anything */
	for (int i = 2; at && i < STARTTIME; i++)
		at = strchr(at + 1, ' ');
	if (!at || !hz)
		return true;
	start_ns = strtoull(at, NULL, 10) * (1000000000 / hz);
	return rt_time_ns(CLOCK_BOOTTIME) < start_ns + NEW_NS;
}
