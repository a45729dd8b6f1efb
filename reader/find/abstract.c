/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "abstract.h"
#include "as_user.h"
#include "connect.h"

struct attempt {
	pid_t pid; /* a process of the network namespace */
	const char *name;
	int timeout_ms;
	bool only_peer; /* nothing is to be received */
	struct ucred peer;
	uid_t as; /* the user that cannot connect, or 0 */
};

static bool split(const char *address, pid_t *pid, const char **name)
{
	int number, end = 0;

	if (sscanf(address, "/proc/%d/net/%n", &number, &end) != 1 || !end || number <= 0 ||
		strncmp(address + end, RT_ABSTRACT_PREFIX, sizeof(RT_ABSTRACT_PREFIX) - 1))
		return false;
	*pid = number;
	*name = address + end;
	return true;
}

bool rt_is_abstract(const char *address)
{
	const char *name;
	pid_t pid;

	return split(address, &pid, &name);
}

/* Changes the network namespace of this thread. */
static int enter_net_of(pid_t pid)
{
	struct stat own, other;
	char path[64];
	int fd, ret;

	snprintf(path, sizeof(path), "/proc/%d/ns/net", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	ret = fstat(fd, &other) || stat("/proc/thread-self/ns/net", &own) ? -errno : 0;
	if (!ret && own.st_ino != other.st_ino && setns(fd, CLONE_NEWNET))
		ret = -errno;
	close(fd);
	return ret;
}

static int connect_here(struct attempt *a)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	socklen_t size = sizeof(a->peer);
	size_t len = strlen(a->name);
	int fd, ret;

	if (len > sizeof(addr.sun_path))
		return -ENAMETOOLONG;
	memcpy(addr.sun_path + 1, a->name + 1, len - 1);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	ret = rt_connect_retrying(fd, &addr,
		(socklen_t)(offsetof(struct sockaddr_un, sun_path) + len), a->timeout_ms);
	if (!ret && getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &a->peer, &size))
		ret = -errno;
	if (!ret)
		return fd;
	close(fd);
	return ret;
}

static int connect_there(void *arg)
{
	struct attempt *a = arg;
	int ret = enter_net_of(a->pid), fd;

	if (ret)
		return ret;
	fd = connect_here(a);
	if (fd < 0 || a->only_peer || !a->peer.uid || !rt_is_nobody_there(a->peer.pid))
		return fd;
	close(fd);
	a->as = a->peer.uid;
	ret = rt_become_user(a->as);
	return ret ? ret : connect_here(a);
}

int rt_abstract_peer(pid_t in_net_of, const char *name, struct ucred *peer)
{
	struct attempt a = {.pid = in_net_of, .name = name, .only_peer = true};
	int fd = rt_in_thread(connect_there, &a);

	*peer = a.peer;
	if (fd < 0)
		return fd;
	close(fd);
	return 0;
}

int rt_abstract_connect(const char *address, int timeout_ms, char *err, size_t errlen)
{
	struct attempt a = {.timeout_ms = timeout_ms};
	int fd;

	err[0] = 0;
	if (!split(address, &a.pid, &a.name))
		return -EINVAL;
	fd = rt_in_thread(connect_there, &a);
	if (fd < 0 && fd != -EAGAIN && a.as)
		rt_as_user_failed(a.as, fd, err, errlen);
	if (fd < 0 || (a.peer.pid == a.pid && (!geteuid() || a.peer.uid == geteuid())))
		return fd;
	close(fd);
	if (a.peer.pid != a.pid)
		snprintf(err, errlen, "process %d listens on its socket, not process %d",
			(int)a.peer.pid, (int)a.pid);
	else
		snprintf(err, errlen, "its socket belongs to user %u, not to user %u",
			(unsigned)a.peer.uid, (unsigned)geteuid());
	return -EPERM;
}
