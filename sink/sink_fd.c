/* SPDX-License-Identifier: BSD-3-Clause */
/* Plain writes. */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <unistd.h>

#include "sink_impl.h"

static bool given_up(const struct sink_patience *p)
{
	return p && p->give_up;
}

static int wait_writable(int fd, const struct sink_patience *patience)
{
	struct pollfd p = {.fd = fd, .events = POLLOUT};

	if (given_up(patience))
		return -ECANCELED;
	return poll(&p, 1, -1) < 0 && errno != EINTR ? -errno : 0;
}

/* Takes len written bytes off the front of iov. */
static void advance(struct iovec **iov, unsigned *count, uint64_t len)
{
	while (*count && len >= (*iov)->iov_len) {
		len -= (*iov)->iov_len;
		(*iov)++;
		(*count)--;
	}
	if (*count && len) {
		(*iov)->iov_base = (uint8_t *)(*iov)->iov_base + len;
		(*iov)->iov_len -= len;
	}
}

int fd_write(
	int fd, struct iovec *iov, unsigned count, uint64_t *done, struct sink_patience *patience)
{
	int ret = 0;

	while (count && !ret) {
		ssize_t n = writev(fd, iov, count < IOV_MAX ? (int)count : IOV_MAX);

		if (n >= 0) {
			*done += (uint64_t)n;
			advance(&iov, &count, (uint64_t)n);
			if (patience)
				patience->stalled = 0;
			if (count && given_up(patience))
				ret = -ECANCELED;
		} else if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) {
			ret = wait_writable(fd, patience);
		} else { /* ECONNRESET: the reader of a socket has closed it */
			ret = errno == ECONNRESET ? -EPIPE : -errno;
		}
	}
	return ret;
}

int fd_pwrite(int fd, const uint8_t *data, uint64_t len, uint64_t offset, uint64_t *done)
{
	while (*done < len) {
		ssize_t n = pwrite(fd, data + *done, len - *done, (off_t)(offset + *done));

		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0)
			*done += (uint64_t)n;
	}
	return 0;
}
