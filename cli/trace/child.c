/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/signals.h"
#include "trace.h"

#define TICK_NS      (NS_PER_S / 5)
#define RUN_NS       (30 * NS_PER_S)
#define NOT_FOUND    127
#define READ_AT_ONCE 65536

static int text_add(struct trace_text *t, const char *data, size_t len)
{
	size_t room = t->room ? t->room : READ_AT_ONCE;
	char *p;

	if (t->len + len >= TRACE_TEXT_MAX)
		return -EFBIG;
	while (room <= t->len + len)
		room *= 2;
	if (room != t->room) {
		p = realloc(t->data, room);
		if (!p)
			return -ENOMEM;
		t->data = p;
		t->room = room;
	}
	memcpy(t->data + t->len, data, len);
	t->len += len;
	t->data[t->len] = '\0';
	return 0;
}

void text_free(struct trace_text *t)
{
	free(t->data);
	*t = (struct trace_text){0};
}

/* bpftrace reads the tracepoints' formats there, and complains where it is not. Only the child sees
 * the mount, so it is gone with it. */
static void mount_tracefs(void)
{
	if (!access("/sys/kernel/tracing/events", F_OK) ||
		!access("/sys/kernel/debug/tracing/events", F_OK))
		return;
	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		return;
	(void)mount("tracefs", "/sys/kernel/tracing", "tracefs", 0, NULL);
}

/* Between fork() and exec(). */
static void become(
	const char *const argv[], unsigned flags, int number, pid_t parent, int out[2], int err[2])
{
	sigset_t none;
	int null;

	/* A terminal's Ctrl-C is for us alone: we end the child in our own time. */
	setpgid(0, 0);
	/* So it is in the background there, and would be stopped where `stty tostop` is set. */
	signal(SIGTTOU, SIG_IGN);
	signal(SIGTTIN, SIG_IGN);
	null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (null >= 0)
		dup2(null, STDIN_FILENO);
	prctl(PR_SET_PDEATHSIG, number);
	if (getppid() != parent)
		_exit(NOT_FOUND);
	signal(SIGPIPE, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (flags & CHILD_TRACEFS)
		mount_tracefs();
	if (flags & CHILD_READ_OUT)
		dup2(out[1], STDOUT_FILENO);
	if (flags & CHILD_READ_ERR)
		dup2(err[1], STDERR_FILENO);
	execvp(argv[0], (char *const *)argv);
	_exit(NOT_FOUND);
}

static int pipe_for(bool wanted, int fd[2])
{
	fd[0] = fd[1] = -1;
	return wanted && pipe2(fd, O_CLOEXEC) ? -errno : 0;
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

int child_start(struct trace_child *c, const char *const argv[], unsigned flags, int number)
{
	pid_t parent = getpid();
	int out[2], err[2] = {-1, -1};
	int ret = pipe_for(flags & CHILD_READ_OUT, out);

	*c = (struct trace_child){.name = argv[0], .flags = flags, .pid_fd = -1, .fd = {-1, -1}};
	if (!ret)
		ret = pipe_for(flags & CHILD_READ_ERR, err);
	c->fd[0] = out[0];
	c->fd[1] = err[0];
	if (!ret) {
		fflush(NULL);
		c->pid = fork();
		ret = c->pid < 0 ? -errno : 0;
	}
	if (!ret && !c->pid)
		become(argv, flags, number, parent, out, err);
	close_fd(&out[1]);
	close_fd(&err[1]);
	if (ret) {
		c->pid = 0;
		return ret;
	}
	c->pid_fd = (int)syscall(SYS_pidfd_open, c->pid, 0);
	return c->pid_fd < 0 ? -errno : 0;
}

/* How much of its messages may go on: whole lines until the notice was among them. */
static size_t passable(struct trace_child *c)
{
	struct trace_text *t = &c->text[1];
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

/* Never waits for who reads ours: a pipe that can be written to has room for as much. */
static void pass(struct trace_child *c)
{
	struct pollfd p = {.fd = STDERR_FILENO, .events = POLLOUT};
	size_t len;

	while (c->flags & CHILD_PASS_ERR && (len = passable(c)) && poll(&p, 1, 0) > 0) {
		struct trace_text *t = &c->text[1];
		ssize_t n = write(STDERR_FILENO, t->data, len < PIPE_BUF ? len : PIPE_BUF);

		n = n < 0 ? (ssize_t)len : n; /* nobody to read it */
		t->len -= (size_t)n;
		memmove(t->data, t->data + n, t->len + 1);
	}
}

/* Reads what is there. */
static void take(struct trace_child *c, unsigned i)
{
	char data[READ_AT_ONCE];
	ssize_t n = read(c->fd[i], data, sizeof(data));

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	/* One that says more than we take finds nobody to listen, and ends. */
	if (n <= 0 || text_add(&c->text[i], data, (size_t)n))
		close_fd(&c->fd[i]);
	pass(c);
}

static bool readable(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return fd >= 0 && poll(&p, 1, 0) > 0;
}

static void reap(struct trace_child *c)
{
	if (waitpid(c->pid, &c->status, WNOHANG) != c->pid)
		return;
	c->ended = true;
	close_fd(&c->pid_fd);
	/* Until the pipe is empty, not until it is closed: what the child started may hold it. */
	for (unsigned i = 0; i < 2; i++)
		while (readable(c->fd[i]))
			take(c, i);
	pass(c);
}

void child_look(struct trace_child *c, int fd1, int fd2, uint64_t ns)
{
	struct pollfd fds[] = {{.fd = fd1, .events = POLLIN}, {.fd = fd2, .events = POLLIN},
		{.fd = c->fd[0], .events = POLLIN}, {.fd = c->fd[1], .events = POLLIN},
		{.fd = c->pid_fd, .events = POLLIN}};
	struct timespec ts = {.tv_sec = (time_t)(ns / NS_PER_S), .tv_nsec = (long)(ns % NS_PER_S)};

	if (c->ended || ppoll(fds, sizeof(fds) / sizeof(fds[0]), &ts, NULL) <= 0)
		return;
	for (unsigned i = 0; i < 2; i++)
		if (fds[2 + i].revents)
			take(c, i);
	pass(c);
	if (fds[4].revents)
		reap(c);
}

bool child_end(struct trace_child *c, int number, uint64_t patience_ns)
{
	uint64_t now = now_ns(CLOCK_MONOTONIC), until = now + patience_ns, again = 0;

	for (; !c->ended && now < until; now = now_ns(CLOCK_MONOTONIC)) {
		if (now >= again) {
			kill(c->pid, number);
			kill(c->pid, SIGCONT); /* somebody may have stopped it */
			again = now + TICK_NS;
		}
		child_look(c, -1, -1, TICK_NS);
	}
	if (c->ended)
		return true;
	kill(c->pid, SIGKILL);
	while (waitpid(c->pid, &c->status, 0) < 0 && errno == EINTR)
		;
	c->ended = true;
	return false;
}

void child_free(struct trace_child *c)
{
	if (c->pid && !c->ended)
		(void)child_end(c, SIGKILL, NS_PER_S);
	close_fd(&c->pid_fd);
	for (unsigned i = 0; i < 2; i++) {
		close_fd(&c->fd[i]);
		text_free(&c->text[i]);
	}
	c->pid = 0;
}

enum trace_end trace_wait(struct trace *t, struct trace_child *c, uint64_t until_ns)
{
	struct trace_child nobody = {.pid_fd = -1, .fd = {-1, -1}};
	int app = t->mon ? ringtap_monitor_fd(t->mon) : -1;
	uint64_t now;

	if (!c)
		c = &nobody;
	for (;;) {
		struct pollfd p = {.fd = app, .events = POLLIN};

		now = now_ns(CLOCK_MONOTONIC);
		if (stop_wait(0))
			return TRACE_BY_SIGNAL;
		if (c->ended)
			return TRACE_BY_ITSELF;
		if (poll(&p, 1, 0) > 0)
			return TRACE_BY_APPLICATION;
		if (now >= until_ns)
			return TRACE_BY_LIMIT;
		child_look(c, stop_fd(), app, until_ns - now < TICK_NS ? until_ns - now : TICK_NS);
	}
}

/* The first line of what it said; len: without the line's end. */
static const char *first_line(const struct trace_text *text, int *len)
{
	const char *p = text->data ? text->data : "";

	p += strspn(p, "\r\n ");
	*len = (int)strcspn(p, "\r\n");
	return p;
}

int child_run(const char *const argv[], struct trace_text *out)
{
	uint64_t until = now_ns(CLOCK_MONOTONIC) + RUN_NS;
	struct trace_child c;
	const char *line;
	int len, ret = child_start(&c, argv, CHILD_READ_OUT | CHILD_READ_ERR, SIGKILL);

	while (!ret && !c.ended && now_ns(CLOCK_MONOTONIC) < until)
		child_look(&c, -1, -1, TICK_NS);
	if (!ret && !c.ended)
		ret = -ETIMEDOUT;
	if (!ret)
		ret = WIFEXITED(c.status) ? WEXITSTATUS(c.status) : -ECHILD;
	if (ret == -ETIMEDOUT) {
		say("trace: %s: takes longer than %d s", argv[0], (int)(RUN_NS / NS_PER_S));
	} else if (ret) {
		line = first_line(&c.text[c.text[1].len ? 1 : 0], &len);
		say("trace: %s: %.*s", argv[0], len ? len : (int)strlen("failed"),
			len ? line : "failed");
	} else if (out) {
		*out = c.text[0];
		c.text[0] = (struct trace_text){0};
	}
	child_free(&c);
	return ret;
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

bool child_needs(const char *program, const char *package)
{
	if (child_found(program))
		return true;
	say("trace: %s is not installed; on Debian: apt install %s", program, package);
	return false;
}
