/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/array.h"
#include "child.h"
#include "util.h"

#define TICK_NS      (NS_PER_S / 5)
#define NOT_FOUND    127
#define READ_AT_ONCE 65536

static int text_add(struct child_text *t, const char *data, size_t len)
{
	if (t->len + len >= CHILD_TEXT_MAX)
		return -EFBIG;
	if (rt_array_room(t->data, t->room, t->len + len + 1))
		return -ENOMEM;
	memcpy(t->data + t->len, data, len);
	t->len += len;
	t->data[t->len] = '\0';
	return 0;
}

void child_text_free(struct child_text *t)
{
	free(t->data);
	*t = (struct child_text){0};
}

static void run_program(const char *const argv[], const struct child_config *cfg, const int out[2])
{
	sigset_t none;
	int null;

	/* A terminal's Ctrl-C is for the parent alone, which ends the child in its own time. */
	setpgid(0, 0);
	/* So it is in the background there, and would be stopped where `stty tostop` is set. */
	signal(SIGTTOU, SIG_IGN);
	signal(SIGTTIN, SIG_IGN);
	signal(SIGPIPE, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null >= 0)
		dup2(null, STDIN_FILENO);
	if (null >= 0 && cfg->flags & CHILD_STORE_OUT)
		dup2(null, STDERR_FILENO);
	if (cfg->prepare)
		cfg->prepare();
	for (int i = 0; i < 2; i++)
		if (out[i] >= 0)
			dup2(out[i], STDOUT_FILENO + i);
	execvp(argv[0], (char *const *)argv);
}

/* Between fork() and exec(). Reports an error through the pipe failed, which exec() closes. */
static void become(const char *const argv[], const struct child_config *cfg, pid_t parent,
	const int out[2], int failed)
{
	int error = ESRCH;

	prctl(PR_SET_PDEATHSIG, cfg->death_signal ? cfg->death_signal : SIGKILL);
	if (getppid() == parent) {
		run_program(argv, cfg, out);
		error = errno;
	}
	(void)!write(failed, &error, sizeof(error));
	_exit(NOT_FOUND);
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* Where a stream of the child goes: its end, and ours. -1: to our own stream. */
static int open_stream(struct child *c, int i, int *theirs)
{
	bool stored = i == 0 && c->cfg.flags & CHILD_STORE_OUT;
	int fd[2] = {-1, -1}, ret = 0;

	if (stored) {
		fd[0] = memfd_create("output", MFD_CLOEXEC);
		fd[1] = fd[0] < 0 ? -1 : fcntl(fd[0], F_DUPFD_CLOEXEC, 0);
		ret = fd[1] < 0 ? -errno : 0;
	} else if (c->cfg.flags & (i ? CHILD_READ_ERR : CHILD_READ_OUT) && pipe2(fd, O_CLOEXEC)) {
		ret = -errno;
	}
	c->fd[i] = fd[0];
	*theirs = fd[1];
	return ret;
}

/* 0 or -errno, also of what the child met before it became the program. */
static int spawn(struct child *c, const char *const argv[], const int out[2])
{
	pid_t parent = getpid();
	int failed[2], error = 0;

	if (pipe2(failed, O_CLOEXEC))
		return -errno;
	fflush(NULL);
	c->pid = fork();
	if (!c->pid)
		become(argv, &c->cfg, parent, out, failed[1]);
	close(failed[1]);
	if (c->pid < 0)
		error = errno;
	else if (read(failed[0], &error, sizeof(error)) == sizeof(error))
		(void)waitpid(c->pid, NULL, 0);
	close(failed[0]);
	if (error)
		c->pid = 0;
	return -error;
}

int child_start(struct child *c, const char *const argv[], const struct child_config *cfg)
{
	int out[2] = {-1, -1}, ret;

	*c = (struct child)CHILD_NONE;
	c->cfg = *cfg;
	ret = open_stream(c, 0, &out[0]);
	if (!ret)
		ret = open_stream(c, 1, &out[1]);
	if (!ret)
		ret = spawn(c, argv, out);
	close_fd(&out[0]);
	close_fd(&out[1]);
	if (ret)
		return ret;
	c->pid_fd = (int)syscall(SYS_pidfd_open, c->pid, 0);
	return c->pid_fd < 0 ? -errno : 0;
}

/* How much of its output may go on: whole lines until the notice was among them. */
static size_t passable(struct child *c, unsigned i)
{
	struct child_text *t = &c->text[i];
	char *at = c->notice && t->len ? strstr(t->data, c->notice) : NULL;
	const char *end;

	if (at) {
		size_t len = strcspn(at, "\n");

		len += at[len] == '\n';
		t->len -= len;
		memmove(at, at + len, t->len - (size_t)(at - t->data) + 1);
		c->notice = NULL;
	}
	if (!c->notice || c->ended)
		return t->len;
	end = t->len ? memrchr(t->data, '\n', t->len) : NULL;
	return end ? (size_t)(end - t->data) + 1 : 0;
}

/* Writes a part of it. */
static void pass_some(struct child *c, unsigned i, size_t len)
{
	struct child_text *t = &c->text[i];
	ssize_t n =
		write(i ? STDERR_FILENO : STDOUT_FILENO, t->data, len < PIPE_BUF ? len : PIPE_BUF);

	if (n < 0 && errno == EINTR)
		return;
	if (n < 0 && !i)
		close_fd(&c->fd[i]);     /* the child finds it closed as well */
	n = n < 0 ? (ssize_t)t->len : n; /* it has no reader */
	t->len -= (size_t)n;
	memmove(t->data, t->data + n, t->len + 1);
}

/* Never waits for the reader of ours: a pipe that can be written to has room for as much. */
static void pass(struct child *c)
{
	for (unsigned i = 0; i < 2; i++) {
		struct pollfd p = {.fd = i ? STDERR_FILENO : STDOUT_FILENO, .events = POLLOUT};
		size_t len;

		while (c->cfg.flags & (i ? CHILD_PASS_ERR : CHILD_PASS_OUT) &&
			(len = passable(c, i)) && poll(&p, 1, 0) > 0)
			pass_some(c, i, len);
	}
}

/* Standard output that waits for the reader of ours. */
static bool pending(const struct child *c)
{
	return c->cfg.flags & CHILD_PASS_OUT && c->text[0].len >= READ_AT_ONCE;
}

/* Reads what is there. */
static void take(struct child *c, unsigned i)
{
	char data[READ_AT_ONCE];
	ssize_t n = read(c->fd[i], data, sizeof(data));

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n <= 0 || text_add(&c->text[i], data, (size_t)n))
		close_fd(&c->fd[i]);
	pass(c);
}

static bool readable(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return fd >= 0 && poll(&p, 1, 0) > 0;
}

static void reap(struct child *c)
{
	c->ended = true;
	close_fd(&c->pid_fd);
	if (c->cfg.flags & CHILD_STORE_OUT)
		(void)lseek(c->fd[0], 0, SEEK_SET);
	/* Until the pipe is empty, not until it is closed: what the child started may hold it. */
	for (unsigned i = 0; i < 2; i++)
		while (readable(c->fd[i]))
			take(c, i);
	pass(c);
	while (c->cfg.flags & CHILD_PASS_OUT && c->text[0].len)
		pass_some(c, 0, c->text[0].len);
}

void child_watch(struct child *c, int fd1, int fd2, uint64_t ns)
{
	int out = c->cfg.flags & CHILD_STORE_OUT || pending(c) ? -1 : c->fd[0];
	struct pollfd fds[] = {{.fd = fd1, .events = POLLIN}, {.fd = fd2, .events = POLLIN},
		{.fd = out, .events = POLLIN}, {.fd = c->fd[1], .events = POLLIN},
		{.fd = c->pid_fd, .events = POLLIN},
		{.fd = pending(c) ? STDOUT_FILENO : -1, .events = POLLOUT}};

	if (c->ended || rt_poll_ns(fds, sizeof(fds) / sizeof(fds[0]), ns) <= 0)
		return;
	for (unsigned i = 0; i < 2; i++)
		if (fds[2 + i].revents)
			take(c, i);
	pass(c);
	if (fds[4].revents && waitpid(c->pid, &c->status, WNOHANG) == c->pid)
		reap(c);
}

bool child_stop(struct child *c, int number, uint64_t patience_ns)
{
	uint64_t now = now_ns(CLOCK_MONOTONIC), until = now + patience_ns, next = 0;

	for (; !c->ended && now < until; now = now_ns(CLOCK_MONOTONIC)) {
		if (now >= next) {
			kill(c->pid, number);
			kill(c->pid, SIGCONT); /* it may have been stopped */
			next = c->cfg.flags & CHILD_REPEAT_STOP ? now + TICK_NS : UINT64_MAX;
		}
		child_watch(c, -1, -1, TICK_NS);
	}
	if (c->ended)
		return true;
	kill(c->pid, SIGKILL);
	while (waitpid(c->pid, &c->status, 0) < 0 && errno == EINTR)
		;
	reap(c);
	return false;
}

void child_free(struct child *c)
{
	if (c->pid && !c->ended)
		(void)child_stop(c, SIGKILL, NS_PER_S);
	close_fd(&c->pid_fd);
	for (unsigned i = 0; i < 2; i++) {
		close_fd(&c->fd[i]);
		child_text_free(&c->text[i]);
	}
	c->pid = 0;
}

const char *child_end(const struct child *c, char buf[CHILD_END_LEN])
{
	int number = WTERMSIG(c->status);

	if (WIFSIGNALED(c->status))
		snprintf(buf, CHILD_END_LEN, "signal %d (%s)", number, strsignal(number));
	else
		snprintf(buf, CHILD_END_LEN, "status %d", WEXITSTATUS(c->status));
	return buf;
}

bool child_found(const char *program)
{
	const char *path = getenv("PATH");
	char file[4096];

	for (path = path ? path : "/usr/bin:/bin"; *path; path += path[0] == ':') {
		size_t len = strcspn(path, ":");

		snprintf(file, sizeof(file), "%.*s/%s", (int)len, path, program);
		if (len && !access(file, X_OK))
			return true;
		path += len;
	}
	return false;
}
