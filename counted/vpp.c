/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * VPP's counters, of each node and reason and of interfaces, from the statistics segment: a file of
 * shared memory, whose descriptor VPP sends to everybody who connects to its socket. Threads count
 * there directly. The layout is that of version 2, of VPP 22.10 to 26.06.
 */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/now.h"
#include "common/peer_json.h"
#include "counted.h"

#define PATH_LEN    108
#define SOCKETS_MAX 4096 /* that are looked at, in its namespace */
#define PAUSE_NS    1000000

/* ---- the socket */

/* Whether a process has this socket open: it may have been bound by another one. 0; -ENOENT;
 * -ETIMEDOUT: it has very many files; -errno. */
static int has_socket(pid_t pid, unsigned long inode, uint64_t end_ns)
{
	char path[64], link[64], want[64];
	const struct dirent *e;
	int ret = -ENOENT;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	snprintf(want, sizeof(want), "socket:[%lu]", inode);
	d = opendir(path);
	if (!d)
		return -errno;
	while (ret == -ENOENT && (e = readdir(d))) {
		ssize_t n = readlinkat(dirfd(d), e->d_name, link, sizeof(link) - 1);

		link[n > 0 ? n : 0] = 0;
		if (!strcmp(link, want))
			ret = 0;
		else if (rt_now_ns(CLOCK_MONOTONIC) >= end_ns)
			ret = -ETIMEDOUT;
	}
	closedir(d);
	return ret;
}

/* Path in a line of /proc/PID/net/unix, if the socket is a SOCK_SEQPACKET one that listens and is
 * named as VPP names it; else NULL. */
static const char *stats_path(char *line, unsigned long *inode)
{
	unsigned flags, type;
	int at = 0;

	line[strcspn(line, "\n")] = 0;
	if (sscanf(line, "%*x: %*x %*x %x %x %*x %lu %n", &flags, &type, inode, &at) < 3 || !at)
		return NULL;
	if (type != SOCK_SEQPACKET || !(flags & 1 << 16) || line[at] != '/')
		return NULL;
	return strstr(line + at, "stats") ? line + at : NULL;
}

/* Where the process listens with its statistics. 0, or -errno after writing why. */
static int find_socket(struct counted *c, char path[PATH_LEN], uint64_t end_ns)
{
	char line[512], name[64];
	unsigned long inode;
	int ret = -ENOENT;
	FILE *f;

	snprintf(name, sizeof(name), "/proc/%d/net/unix", (int)c->pid);
	f = fopen(name, "re");
	for (unsigned i = 0; f && ret == -ENOENT && i < SOCKETS_MAX && fgets(line, sizeof(line), f);
		i++) {
		const char *found = stats_path(line, &inode);

		if (!found || strlen(found) >= PATH_LEN)
			continue;
		strcpy(path, found);
		ret = has_socket(c->pid, inode, end_ns);
	}
	if (f)
		fclose(f);
	if (ret == -ENOENT)
		snprintf(c->why, sizeof(c->why), "it has no socket of statistics (statseg)");
	else if (ret)
		snprintf(c->why, sizeof(c->why), "its open files: %s",
			ret == -ETIMEDOUT ? "there are too many" : strerror(-ret));
	return ret;
}

/* The descriptor of the only message. */
static int receive_fd(int sock, int within_ms)
{
	struct pollfd p = {.fd = sock, .events = POLLIN};
	char data[64], control[CMSG_SPACE(sizeof(int))];
	struct iovec iov = {data, sizeof(data)};
	struct msghdr m = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control)};
	const struct cmsghdr *h;
	int fd;

	if (rt_poll_ns(&p, 1, (uint64_t)within_ms * 1000000) <= 0)
		return -ETIMEDOUT;
	if (recvmsg(sock, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) < 0)
		return -errno;
	h = CMSG_FIRSTHDR(&m);
	if (!h || h->cmsg_level != SOL_SOCKET || h->cmsg_type != SCM_RIGHTS)
		return -EPROTO;
	memcpy(&fd, CMSG_DATA(h), sizeof(fd));
	return fd;
}

int counted_read_segment(
	struct counted *c, int within_ms, int (*take)(void *ctx, int fd), void *ctx)
{
	uint64_t end_ns = rt_now_ns(CLOCK_MONOTONIC) + (uint64_t)within_ms * 1000000;
	char path[PATH_LEN];
	int ret = find_socket(c, path, end_ns), sock, fd;
	uid_t uid;

	if (ret)
		return ret;
	ret = counted_uid(c, &uid);
	sock = ret ? ret : rt_peer_connect(c->pid, uid, path, SOCK_SEQPACKET);
	fd = sock < 0 ? sock : receive_fd(sock, within_ms);
	if (sock >= 0)
		close(sock);
	ret = fd < 0 ? fd : take(ctx, fd);
	while (ret == -EAGAIN && rt_now_ns(CLOCK_MONOTONIC) < end_ns) {
		rt_sleep_ns(PAUSE_NS);
		ret = take(ctx, fd);
	}
	if (fd >= 0)
		close(fd);
	return ret ? counted_failed(c, path, ret == -EAGAIN ? -ETIMEDOUT : ret, within_ms) : 0;
}

static int read_counters(struct counted *c, int within_ms)
{
	return counted_read_segment(c, within_ms, counted_take_segment, c);
}

const struct counted_source counted_vpp = {
	.name = "VPP",
	.program = "vpp",
	.frees_unseen = true,
	.has_others = true,
	.note = "These are all that VPP's nodes count, as 'vppctl show errors' has them: some are "
		"no drops, and some are packets of interfaces that ringtap does not see. Those of "
		"interfaces ('show interface') are not compared with packets.",
	.read = read_counters,
};
