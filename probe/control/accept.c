/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "accept.h"
#include "common/ipc.h"

int rt_accept_reserve(void)
{
	return eventfd(0, EFD_CLOEXEC);
}

static int take(int listen_fd)
{
	int fd;

	do {
		fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	} while (fd < 0 && (errno == EINTR || errno == ECONNABORTED));
	return fd >= 0 ? fd : -errno;
}

void rt_accept_refuse(int fd, int why, const char *text)
{
	struct rt_msg_error m = {.code = why};
	char greeting[256];

	/* Unread bytes would turn the close into a reset, and the peer would lose the answer. */
	(void)!recv(fd, greeting, sizeof(greeting), MSG_DONTWAIT);
	rt_msg_init(&m.h, RT_MSG_ERROR, sizeof(m));
	rt_str_set(m.text, sizeof(m.text), text);
	(void)rt_msg_send(fd, &m.h, NULL, 0);
	close(fd);
}

static void refuse(int fd, int why)
{
	char text[RT_TEXT_LEN];

	snprintf(text, sizeof(text), "the application cannot accept a connection: %s%s",
		strerror(-why),
		why == -EMFILE ? "; raise its limit of open files (prlimit --nofile)" : "");
	rt_accept_refuse(fd, why, text);
}

int rt_accept(int listen_fd, int *reserve)
{
	int fd = take(listen_fd), why = fd;

	if (fd >= 0 || fd == -EAGAIN)
		return fd;
	/* Another thread may take the descriptor that is closed here: try again. */
	if (*reserve >= 0) {
		close(*reserve);
		fd = take(listen_fd);
		if (fd >= 0)
			refuse(fd, why);
	}
	*reserve = rt_accept_reserve();
	return why;
}

/* Whether this user id stands for all that the process's user namespace does not map. */
static bool is_overflow(uid_t uid)
{
	unsigned long overflow = 65534, first, outside, count, mapped = 0;
	FILE *f = fopen("/proc/sys/kernel/overflowuid", "re");

	if (f) {
		(void)!fscanf(f, "%lu", &overflow);
		fclose(f);
	}
	if (uid != overflow)
		return false;
	f = fopen("/proc/self/uid_map", "re");
	while (f && fscanf(f, "%lu %lu %lu", &first, &outside, &count) == 3)
		mapped += count;
	if (f)
		fclose(f);
	return mapped < UINT32_MAX;
}

/* The permissions of a file keep other users off, an abstract name does not. */
static bool has_file(int fd)
{
	struct sockaddr_un addr = {0};
	socklen_t len = sizeof(addr);

	return !getsockname(fd, (struct sockaddr *)&addr, &len) && addr.sun_path[0];
}

bool rt_accept_allows(int fd)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len))
		return false;
	return (cred.uid == 0 || cred.uid == geteuid()) && (has_file(fd) || !is_overflow(cred.uid));
}
