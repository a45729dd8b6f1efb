/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "in_root.h"
#include "now.h"
#include "peer_json.h"

#define ANSWER_MAX (4u << 20)   /* bytes */
#define ENV_MAX    (128u << 10) /* a variable behind them is not found */

size_t rt_peer_args(pid_t pid, char args[RT_PEER_ARGS_MAX])
{
	char path[64];
	size_t len;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)pid);
	f = fopen(path, "re");
	len = f ? fread(args, 1, RT_PEER_ARGS_MAX - 1, f) : 0;
	if (f)
		fclose(f);
	args[len] = 0;
	return len;
}

bool rt_peer_env(pid_t pid, const char *name, const char *fallback, char *value, size_t size)
{
	size_t want = strlen(name), len;
	char path[64], *all = malloc(ENV_MAX);
	int n = snprintf(value, size, "%s", fallback);
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
	f = all ? fopen(path, "re") : NULL;
	len = f ? fread(all, 1, ENV_MAX - 1, f) : 0;
	if (f)
		fclose(f);
	if (len)
		all[len] = 0;
	for (size_t at = 0; at < len; at += strlen(all + at) + 1)
		if (!strncmp(all + at, name, want) && all[at + want] == '=') {
			n = snprintf(value, size, "%s", all + at + want + 1);
			break;
		}
	free(all);
	return n < (int)size;
}

static bool trusted(uid_t uid, uid_t app_uid)
{
	if (app_uid && app_uid != geteuid())
		return uid == app_uid;
	return !uid || uid == geteuid();
}

/* Opens the path as the process would: in a container, the path is one of its own files. A user
 * without the right to see its root connects by own rights. */
static int open_there(pid_t pid, const char *path)
{
	char root[64];
	int at, fd;

	snprintf(root, sizeof(root), "/proc/%d/root", (int)pid);
	at = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (at < 0 && errno == EACCES && geteuid())
		at = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (at < 0)
		return -errno;
	fd = rt_open_in_root(at, path, O_PATH);
	close(at);
	return fd;
}

/* 0 or -errno. */
static int connect_to(int fd, int file, uid_t app_uid)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	struct ucred peer;
	socklen_t len = sizeof(peer);
	struct stat st;

	/* By descriptor, as the path may change meanwhile. */
	snprintf(addr.sun_path, sizeof(addr.sun_path), "/proc/self/fd/%d", file);
	if (fstat(file, &st))
		return -errno;
	if (!S_ISSOCK(st.st_mode))
		return -ENOTSOCK;
	if (!trusted(st.st_uid, app_uid))
		return -EPERM;
	if (connect(fd, (struct sockaddr *)&addr, sizeof(addr)) ||
		getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len))
		return -errno;
	return trusted(peer.uid, app_uid) ? 0 : -EPERM;
}

/* Receives the answer to the question. 0 or -errno. */
static int receive(int fd, int within_ms, json_t **answer)
{
	uint64_t end_ns = rt_now_ns(CLOCK_MONOTONIC) + (uint64_t)within_ms * 1000000;
	size_t len = 0, size = 65536;
	char *buf = malloc(size), *more;
	int ret = buf ? 0 : -ENOMEM;

	while (!ret && !*answer) {
		struct pollfd p = {.fd = fd, .events = POLLIN};
		int64_t left_ns = (int64_t)(end_ns - rt_now_ns(CLOCK_MONOTONIC));
		ssize_t n;

		if (left_ns <= 0 || rt_poll_ns(&p, 1, (uint64_t)left_ns) <= 0) {
			ret = -ETIMEDOUT;
			break;
		}
		n = recv(fd, buf + len, size - len, MSG_DONTWAIT);
		if (n <= 0 || (len += (size_t)n) >= ANSWER_MAX) {
			ret = -EPROTO;
			break;
		}
		/* A message can only end with a brace: do not parse earlier. */
		if (buf[len - 1] == '}' || buf[len - 1] == '\n')
			*answer = json_loadb(buf, len, 0, NULL);
		if (len < size)
			continue;
		more = realloc(buf, size *= 2);
		if (!more)
			ret = -ENOMEM;
		else
			buf = more;
	}
	free(buf);
	return *answer ? 0 : ret;
}

int rt_peer_connect(pid_t pid, uid_t uid, const char *path, int type)
{
	int file = open_there(pid, path), fd, ret;

	if (file < 0)
		return file;
	fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	ret = fd < 0 ? -errno : connect_to(fd, file, uid);
	close(file);
	if (!ret)
		return fd;
	if (fd >= 0)
		close(fd);
	return ret;
}

int rt_peer_json(pid_t pid, uid_t uid, const char *path, const char *question, int within_ms,
	json_t **answer)
{
	int fd = rt_peer_connect(pid, uid, path, SOCK_STREAM), ret = -EPIPE;
	size_t len = strlen(question);

	*answer = NULL;
	if (fd < 0)
		return fd;
	if (send(fd, question, len, MSG_NOSIGNAL) == (ssize_t)len)
		ret = receive(fd, within_ms, answer);
	close(fd);
	return ret;
}
