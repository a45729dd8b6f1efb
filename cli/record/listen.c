/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/signals.h"
#include "base/util.h"
#include "common/now.h"
#include "listen.h"
#include "serve/address.h"
#include "serve/peer.h"
#include "target/targets.h"

/* Each is a session in the application. */
#define LISTEN_CLIENTS 8
#define UNIX_SCHEME    "unix:"
/* A client that has gone is noticed by a write. While there are no packets, these find it. */
#define IDLE_S      10
#define VANISHED_MS 30000
/* In which a process that is only made closes the server's socket. */
#define CLOSED_NS NS_PER_S

struct recording {
	pid_t pid;
	int pid_fd, fd;
	bool gone; /* its client has */
};

struct listener {
	struct record_config *cfg;
	int (*record)(struct record_config *cfg);
	int fd;
	const char *path; /* the Unix socket's; NULL: TCP */
	struct stat made; /* that socket */
	sigset_t unblocked;
	struct recording list[LISTEN_CLIENTS];
	unsigned count;
	uint64_t refused_ns; /* CLOCK_MONOTONIC: a refusal was printed */
};

int listen_allow(struct record_config *cfg, const char *text)
{
	if (cfg->allowed_count == LISTEN_ALLOWED_MAX)
		return message_fail(-EINVAL, "record: --allow %s: more than %d; give a network",
			text, LISTEN_ALLOWED_MAX);
	if (peer_network_parse(text, &cfg->allowed[cfg->allowed_count]))
		return message_fail(-EINVAL,
			"record: --allow %s: not an address; give one, or a network as "
			"192.0.2.0/24 or 2001:db8::/32",
			text);
	cfg->allowed_count++;
	return 0;
}

static const char *unix_path(const struct record_config *cfg)
{
	size_t n = strlen(UNIX_SCHEME);

	return strncmp(cfg->listen, UNIX_SCHEME, n) ? NULL : cfg->listen + n;
}

int listen_check(const struct record_config *cfg)
{
	const struct {
		bool given;
		const char *option;
	} others[] = {
		{cfg->path, "-w"},
		{cfg->rotating, "-b"},
		{cfg->split, "--split"},
		{cfg->html, "--html"},
		{cfg->statistics, "-S"},
	};

	if (!cfg->listen)
		return !cfg->allowed_count
			       ? 0
			       : message_fail(-EINVAL,
					 "record: --allow: for clients of --listen; add it");
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (others[i].given)
			return message_fail(-EINVAL,
				"record: --listen: each client gets a stream of its own; leave out "
				"%s",
				others[i].option);
	if (unix_path(cfg) && !*unix_path(cfg))
		return message_fail(-EINVAL,
			"record: --listen " UNIX_SCHEME ": no path; give one, as in " UNIX_SCHEME
			"/run/user/1000/ringtap");
	if (unix_path(cfg) && cfg->allowed_count)
		return message_fail(-EINVAL,
			"record: --allow: clients of a Unix socket are on this host; leave it out");
	return 0;
}

/* ---- the socket */

/* Whether a server answers: 0, or errno. A recording's process that was just being made holds the
 * socket of a server that was killed, takes nothing from it, and closes it at once. */
static int try_server(const struct sockaddr_un *a)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), ret = 0;
	struct pollfd p = {.fd = fd, .events = POLLIN};
	char c;

	if (fd < 0)
		return 0;
	if (connect(fd, (const struct sockaddr *)a, sizeof(*a)))
		ret = errno;
	else if (rt_poll_ns(&p, 1, CLOSED_NS) > 0 && recv(fd, &c, 1, MSG_DONTWAIT) <= 0)
		ret = EAGAIN;
	close(fd);
	return ret;
}

/* A socket that nothing listens at is left by a process that was killed. */
static bool is_left(const struct sockaddr_un *a)
{
	struct stat st;
	int ret;

	/* Other files are never removed, nor what other users have made. */
	if (lstat(a->sun_path, &st) || !S_ISSOCK(st.st_mode) || st.st_uid != geteuid())
		return false;
	ret = try_server(a);
	if (ret == EAGAIN)
		ret = try_server(a);
	return ret == ECONNREFUSED;
}

/* The descriptor or -errno. Only the user can connect. */
static int open_unix(const char *path)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	mode_t mask;
	int fd, ret;

	if (strlen(path) >= sizeof(a.sun_path))
		return -ENAMETOOLONG;
	memcpy(a.sun_path, path, strlen(path));
	if (is_left(&a))
		unlink(path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	mask = umask(0177);
	ret = bind(fd, (const struct sockaddr *)&a, sizeof(a)) ? -errno : 0;
	umask(mask);
	if (!ret && listen(fd, LISTEN_CLIENTS)) {
		ret = -errno;
		unlink(path);
	}
	if (!ret)
		return fd;
	close(fd);
	return ret;
}

/* Why there can be no socket at the path, and what to do; NULL: as strerror() says. */
static const char *why_no_socket(const char *path, int error)
{
	struct stat st;

	switch (error) {
	case -EADDRINUSE:
		if (lstat(path, &st))
			break; /* it has gone just now */
		if (!S_ISSOCK(st.st_mode))
			return "it is a file that is not a socket, and stays as it is; choose "
			       "another path";
		if (st.st_uid != geteuid())
			return "it is a socket of another user; choose another path";
		return "another program listens there; end it, or choose another path";
	case -ENOENT: return "its folder does not exist; make that, or choose another path";
	case -ENOTDIR: return "its folder is a file; choose another path";
	case -EACCES:
	case -EPERM: return "this user may not make files in its folder; choose another path";
	case -EROFS: return "its file system is read-only; choose another path";
	case -ENAMETOOLONG: return "it is longer than 107 bytes; choose another path";
	default: break;
	}
	return NULL;
}

/* 0, or -errno after a message. */
static int open_listener(struct listener *l)
{
	const char *why;
	char url[128];

	l->path = unix_path(l->cfg);
	l->fd = l->path ? open_unix(l->path)
			: address_listen("record", l->cfg->listen, LISTEN_CLIENTS);
	if (l->fd < 0 && !l->path)
		return l->fd;
	if (l->fd < 0) {
		why = why_no_socket(l->path, l->fd);
		return message_fail(l->fd, "record: --listen %s: %s%s", l->cfg->listen,
			why ? why : strerror(-l->fd), why ? "" : "; choose another path");
	}
	if (l->path && lstat(l->path, &l->made))
		l->made = (struct stat){.st_ino = 0};
	if (l->cfg->quiet)
		return 0;
	if (!l->path)
		address_url(l->fd, url, sizeof(url));
	fprintf(stderr, "Listening on %s\n", l->path ? l->cfg->listen : strstr(url, "//") + 2);
	return 0;
}

/* Another file may be at the path by now. */
static void close_listener(struct listener *l)
{
	struct stat st;

	if (l->path && !lstat(l->path, &st) && st.st_dev == l->made.st_dev &&
		st.st_ino == l->made.st_ino)
		unlink(l->path);
	close(l->fd);
}

/* ---- clients */

/* NULL, or why not. */
static const char *refuse(const struct listener *l, const struct peer *p)
{
	if (p->here)
		return p->uid == geteuid() ? NULL : "it belongs to another user";
	for (unsigned i = 0; i < l->cfg->allowed_count; i++)
		if (peer_is_in(p, &l->cfg->allowed[i]))
			return NULL;
	return "it is on another host; name that with --allow";
}

/* Once a second at most, whatever tries to connect. */
static void print_refusal(struct listener *l, const struct peer *p, const char *why)
{
	uint64_t now = now_ns(CLOCK_MONOTONIC);

	if (l->refused_ns && now - l->refused_ns < NS_PER_S)
		return;
	l->refused_ns = now;
	message_print("record: --listen: client %s is refused: %s", p->name, why);
}

static void watch_connection(int fd)
{
	const int on = 1, idle = IDLE_S, tries = 2, vanished = VANISHED_MS;

	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &idle, sizeof(idle));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &tries, sizeof(tries));
	setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &vanished, sizeof(vanished));
}

/* In a process of its own: a client that reads slowly makes only its own recording lose packets. */
static void serve_client(struct listener *l, int fd, const char *client, pid_t parent)
{
	char command[PEER_NAME_LEN + 32];
	int status;

	prctl(PR_SET_PDEATHSIG, SIGTERM);
	sigprocmask(SIG_SETMASK, &l->unblocked, NULL);
	if (getppid() != parent || dup2(fd, STDOUT_FILENO) < 0)
		_exit(STATUS_FAILED);
	close(fd);
	close(l->fd);
	for (unsigned i = 0; i < l->count; i++) {
		close(l->list[i].fd);
		close(l->list[i].pid_fd);
	}
	snprintf(command, sizeof(command), "record: --listen: client %s", client);
	l->cfg->path = "-";
	l->cfg->client = client;
	l->cfg->capture.command = command;
	status = l->record(l->cfg);
	fflush(NULL);
	_exit(status);
}

/* 0 or -errno. */
static int start(struct listener *l, int fd, const char *client)
{
	pid_t parent = getpid(), pid = fork();
	int pid_fd;

	if (!pid)
		serve_client(l, fd, client, parent);
	if (pid < 0)
		return -errno;
	pid_fd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (pid_fd < 0) {
		int error = errno;

		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		return -error;
	}
	l->list[l->count++] = (struct recording){.pid = pid, .pid_fd = pid_fd, .fd = fd};
	return 0;
}

static void take_client(struct listener *l)
{
	int fd = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC), ret;
	const char *why;
	struct peer p;

	if (fd < 0)
		return;
	ret = peer_find(fd, &p);
	why = ret ? strerror(-ret) : refuse(l, &p);
	if (!why && l->count == LISTEN_CLIENTS)
		why = "there are 8 clients, which is the limit";
	if (why) {
		print_refusal(l, &p, why);
		close(fd);
		return;
	}
	if (!l->path)
		watch_connection(fd);
	if (!l->cfg->quiet)
		fprintf(stderr, "Client %s\n", p.name);
	ret = start(l, fd, p.name);
	if (!ret)
		return;
	message_print("record: --listen: client %s: its recording cannot start: %s", p.name,
		start_error(ret));
	close(fd);
}

static void end_recording(struct listener *l, unsigned i)
{
	struct recording *r = &l->list[i];

	waitpid(r->pid, NULL, 0);
	close(r->pid_fd);
	close(r->fd);
	*r = l->list[--l->count];
}

static void take_events(struct listener *l, const struct pollfd *p)
{
	/* From the last: end_recording() moves that one. */
	for (unsigned i = l->count; i-- > 0;) {
		struct recording *r = &l->list[i];

		if (!r->gone && p[2 * i + 1].revents & (POLLHUP | POLLERR)) {
			r->gone = true;
			kill(r->pid, SIGINT);
		}
		if (p[2 * i].revents)
			end_recording(l, i);
	}
}

static void listen_loop(struct listener *l)
{
	struct pollfd p[2 * LISTEN_CLIENTS + 2];

	for (;;) {
		unsigned n = 2 * l->count;

		for (unsigned i = 0; i < l->count; i++) {
			p[2 * i] = (struct pollfd){.fd = l->list[i].pid_fd, .events = POLLIN};
			p[2 * i + 1] = (struct pollfd){.fd = l->list[i].gone ? -1 : l->list[i].fd};
		}
		p[n] = (struct pollfd){.fd = l->fd, .events = POLLIN};
		p[n + 1] = (struct pollfd){.fd = stop_fd(), .events = POLLIN};
		if (rt_poll_ns(p, n + 2, RT_WAIT_ENDLESS) < 0)
			continue;
		if (p[n + 1].revents && stop_wait(0))
			return;
		take_events(l, p);
		if (p[n].revents)
			take_client(l);
	}
}

/* A name that does not exist is an error now, not of each client. */
static int check_targets(const struct record_config *cfg)
{
	struct targets t = {0};
	int ret = targets_resolve(&t, &cfg->capture);

	targets_free(&t);
	if (!ret)
		return STATUS_OK;
	return ret == -EINVAL ? STATUS_USAGE : STATUS_FAILED;
}

int listen_run(struct record_config *cfg, int (*record)(struct record_config *cfg))
{
	struct listener l = {.cfg = cfg, .record = record};
	int status = check_targets(cfg), ret;

	if (status)
		return status;
	sigprocmask(SIG_SETMASK, NULL, &l.unblocked);
	if (stop_catch())
		return message_fail(STATUS_FAILED, "record: --listen: no memory for signals");
	ret = open_listener(&l);
	if (ret)
		return ret == -EINVAL ? STATUS_USAGE : STATUS_FAILED;
	listen_loop(&l);
	close_listener(&l);
	for (unsigned i = 0; i < l.count; i++)
		kill(l.list[i].pid, SIGINT);
	while (l.count)
		end_recording(&l, l.count - 1);
	return STATUS_OK;
}
