/* SPDX-License-Identifier: BSD-3-Clause */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/calls.h"
#include "tracers.h"
#include "undo.h"

#define LOOK_NS (NS_PER_S / 100)

/* Waits for the end of the pipe, which the kernel closes with the parent. Signals stay blocked, as
 * in the parent: Ctrl-C does not end it. It closes all other descriptors: connections to
 * applications and the output pipe must not stay open. */
static void guard(int fd, int (*undo)(void *ctx), void *ctx)
{
	int null;
	char byte;

	setpgid(0, 0);
	fd = fcntl(fd, F_DUPFD, STDERR_FILENO + 2);
	null = open("/dev/null", O_RDWR);
	for (int i = STDIN_FILENO; i <= STDERR_FILENO; i++)
		if (dup2(null, i) < 0)
			_exit(1);
	if (dup2(fd, STDERR_FILENO + 1) < 0 ||
		syscall(SYS_close_range, STDERR_FILENO + 2, UINT_MAX, 0))
		_exit(1);
	while (read(STDERR_FILENO + 1, &byte, 1) < 0 && errno == EINTR)
		;
	_exit(undo(ctx) ? 1 : 0);
}

int trace_undo_start(struct trace_undo *u, int (*undo)(void *ctx), void *ctx)
{
	int fd[2], ret = 0;

	*u = (struct trace_undo){.fd = -1};
	if (pipe2(fd, O_CLOEXEC))
		ret = -errno;
	if (!ret) {
		fflush(NULL);
		u->pid = fork();
		ret = u->pid < 0 ? -errno : 0;
		if (!u->pid) {
			close(fd[1]);
			guard(fd[0], undo, ctx);
		}
		close(fd[0]);
		u->fd = fd[1];
	}
	if (!ret)
		return 0;
	if (u->fd >= 0)
		close(u->fd);
	u->fd = -1;
	return message_fail(ret, "trace: cannot start a process: %s", start_error(ret));
}

int trace_undo_now(struct trace_undo *u, uint64_t patience_ns)
{
	uint64_t until = now_ns(CLOCK_MONOTONIC) + patience_ns;
	int status = 0;
	pid_t ended;

	if (u->fd < 0)
		return 0;
	close(u->fd);
	u->fd = -1;
	while (!(ended = waitpid(u->pid, &status, WNOHANG)) && now_ns(CLOCK_MONOTONIC) < until)
		rt_sleep_ns(LOOK_NS);
	if (!ended)
		return -ETIMEDOUT;
	return ended == u->pid && !status ? 0 : -EIO;
}

static bool is_empty(const char *path)
{
	DIR *d = opendir(path);
	struct dirent *e;
	unsigned n = 0;

	if (!d)
		return false;
	while ((e = readdir(d)))
		n += strcmp(e->d_name, ".") && strcmp(e->d_name, "..");
	closedir(d);
	return !n;
}

int trace_folder(const char *name, char path[4096])
{
	char *real;

	if (mkdir(name, 0755) && (errno != EEXIST || !is_empty(name)))
		return message_fail(-EEXIST, "trace: -w %s: %s", name,
			errno == EEXIST ? "exists; give a new or empty folder" : strerror(errno));
	real = realpath(name, NULL);
	if (!real)
		return message_fail(-errno, "trace: -w %s: %s", name, strerror(errno));
	snprintf(path, 4096, "%s", real);
	free(real);
	return 0;
}
