/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <poll.h>

#include "common/now.h"
#include "reader/export.h"
#include "reader/tunables.h"
#include "reader/wait.h"
#include "ringtap/apps.h"

EXPORT void ringtap_break_fd(int fd)
{
	rt_reader_limits.break_fd = fd;
}

int rt_wait_readable(int fd, int ms)
{
	struct pollfd p[] = {
		{.fd = fd, .events = POLLIN}, {.fd = rt_reader_limits.break_fd, .events = POLLIN}};
	int ret;

	do
		ret = rt_poll_ns(p, 2, ms < 0 ? RT_WAIT_ENDLESS : (uint64_t)ms * 1000000);
	while (ret < 0 && errno == EINTR);
	if (ret < 0)
		return -errno;
	return p[0].revents ? 0 : p[1].revents ? -ECANCELED : -ETIMEDOUT;
}

int rt_wait_ns(uint64_t ns)
{
	struct pollfd p = {.fd = rt_reader_limits.break_fd, .events = POLLIN};

	return rt_poll_ns(&p, 1, ns) > 0 ? -ECANCELED : 0;
}
