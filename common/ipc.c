/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ipc.h"
#include "now.h"

#define FDS_MAX 8 /* more than any message carries */

void rt_msg_init(struct rt_msg_header *h, uint16_t type, uint32_t len)
{
	*h = (struct rt_msg_header){
		.magic = RT_PROTO_MAGIC, .version = RT_PROTO_VERSION, .type = type, .len = len};
}

void rt_str_set(char *dst, size_t size, const char *src)
{
	size_t n = strnlen(src, size - 1);

	memcpy(dst, src, n);
	memset(dst + n, 0, size - n);
}

int rt_msg_send(int sock, const struct rt_msg_header *h, const int *fds, unsigned fd_count)
{
	union {
		char buf[CMSG_SPACE(sizeof(int) * FDS_MAX)];
		struct cmsghdr align;
	} ctl = {0};
	struct iovec iov = {.iov_base = (void *)(uintptr_t)h, .iov_len = h->len};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
	ssize_t n;

	if (fd_count > FDS_MAX)
		return -EINVAL;
	if (fd_count) {
		m.msg_control = ctl.buf;
		m.msg_controllen = CMSG_SPACE(sizeof(int) * fd_count);
		CMSG_FIRSTHDR(&m)->cmsg_level = SOL_SOCKET;
		CMSG_FIRSTHDR(&m)->cmsg_type = SCM_RIGHTS;
		CMSG_FIRSTHDR(&m)->cmsg_len = CMSG_LEN(sizeof(int) * fd_count);
		memcpy(CMSG_DATA(CMSG_FIRSTHDR(&m)), fds, sizeof(int) * fd_count);
	}
	do {
		n = sendmsg(sock, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
	} while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : 0;
}

static void close_all(const int *fds, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		close(fds[i]);
}

/* Takes all descriptors out of a received message; returns their number. */
static unsigned take_fds(struct msghdr *m, int *out)
{
	unsigned n = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < (c->cmsg_len - CMSG_LEN(0)) / sizeof(int); i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
			if (n < FDS_MAX)
				out[n++] = fd;
			else
				close(fd);
		}
	}
	return n;
}

static int check(const void *buf, ssize_t n, int flags)
{
	struct rt_msg_header h;

	if (flags & MSG_TRUNC)
		return -EMSGSIZE;
	if ((size_t)n < sizeof(h))
		return -EPROTO;
	memcpy(&h, buf, sizeof(h));
	if (h.magic != RT_PROTO_MAGIC)
		return -EPROTO;
	if (h.version != RT_PROTO_VERSION)
		return -EPROTOTYPE;
	return h.len == (size_t)n ? 0 : -EPROTO;
}

int rt_msg_recv(int sock, void *buf, size_t size, int *fds, unsigned fd_max, unsigned *fd_count,
	int timeout_ms)
{
	union {
		char buf[CMSG_SPACE(sizeof(int) * FDS_MAX)];
		struct cmsghdr align;
	} ctl;
	struct iovec iov = {.iov_base = buf, .iov_len = size};
	struct msghdr m = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = ctl.buf,
		.msg_controllen = sizeof(ctl.buf)};
	struct pollfd p = {.fd = sock, .events = POLLIN};
	int got[FDS_MAX], ret;
	unsigned n_got;
	ssize_t n;

	if (fd_count)
		*fd_count = 0;
	do {
		ret = rt_poll_ns(
			&p, 1, timeout_ms < 0 ? RT_WAIT_ENDLESS : (uint64_t)timeout_ms * 1000000);
	} while (ret < 0 && errno == EINTR);
	if (ret <= 0)
		return ret < 0 ? -errno : -ETIMEDOUT;
	do {
		n = recvmsg(sock, &m, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	n_got = take_fds(&m, got);
	ret = n == 0 ? 0 : check(buf, n, m.msg_flags);
	if (ret < 0 || n == 0) {
		close_all(got, n_got);
		return ret;
	}
	for (unsigned i = 0; i < n_got; i++) {
		if (fd_count && i < fd_max)
			fds[(*fd_count)++] = got[i];
		else
			close(got[i]);
	}
	return (int)n;
}
