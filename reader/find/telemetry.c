/* SPDX-License-Identifier: BSD-3-Clause */
/* The part of DPDK's telemetry protocol (v2) that wakes a probe: a greeting comes first, then one
 * JSON object per command; the answer to an unregistered command is null.
 *
 * DPDK 23.11.0 and some releases before it do not notice a client that leaves before the greeting:
 * after ten of them telemetry serves none. So the greeting is received before each end of a
 * connection, and what can be found without a connection is. */
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <jansson.h>

#include "common/fail.h"
#include "common/proto.h"
#include "reader/text.h"
#include "reader/export.h"
#include "halt.h"
#include "telemetry.h"
#include "reader/wait.h"
#include "ringtap/reader.h"
#include "reader/tunables.h"

#define ANSWER_MAX 16385 /* bytes of an answer, with its zero */

#define RETRY_MS 10

/* One datagram, zero-terminated. Length or -errno. */
static int receive_within(int ms, int fd, char *buf, size_t size)
{
	int ret = rt_wait_readable(fd, ms);
	ssize_t n;

	if (ret)
		return ret;
	n = recv(fd, buf, size - 1, MSG_DONTWAIT);
	if (n < 0)
		return -errno;
	buf[n] = 0;
	return n ? (int)n : -ECONNRESET;
}

static int receive(int fd, char *buf, size_t size)
{
	return receive_within(rt_reader_limits.telemetry_ms, fd, buf, size);
}

/* While DPDK serves ten clients, it closes the next connection without a greeting. A client counts
 * until its thread has noticed that it left. *fd is replaced. */
static int greet(const char *app, int *fd, char *buf, size_t size)
{
	int ret = receive(*fd, buf, size);

	for (int ms = 0; ret == -ECONNRESET && ms < rt_reader_limits.telemetry_ms; ms += RETRY_MS) {
		if (rt_wait_ns(RETRY_MS * 1000000))
			return -ECANCELED;
		close(*fd);
		*fd = rt_connect(app, RT_TELEMETRY_SOCKET);
		ret = *fd < 0 ? *fd : receive(*fd, buf, size);
	}
	return ret == -ECONNRESET ? -EBUSY : ret;
}

static int ask(const char *app, int *fd, const char *cmd, char *answer, size_t size)
{
	int ret = greet(app, fd, answer, size);

	if (ret < 0)
		return ret;
	if (send(*fd, cmd, strlen(cmd), MSG_NOSIGNAL) < 0)
		return -errno;
	ret = receive(*fd, answer, size);
	return ret < 0 ? ret : 0;
}

static void hang_up(int fd)
{
	if (fd >= 0) /* as greet() left it */
		close(fd);
}

/* Copies the name of the probe's socket out of its answer. */
static bool take_name(const json_t *name, char socket[RT_SOCKET_NAME_MAX])
{
	const char *text = json_string_value(name);

	socket[0] = 0;
	if (!name)
		return true;
	if (!text || rt_socket_instance(text, RT_SOCKET_NAME) < 0)
		return false;
	snprintf(socket, RT_SOCKET_NAME_MAX, "%s", text);
	return true;
}

/* Why a probe cannot start its control thread and socket, and what to do. */
static const char *start_text(int error)
{
	switch (error) {
	case -ESHUTDOWN: return "the application has ended DPDK, or stopped it";
	case -EAGAIN:
		return "the application cannot make a thread; raise its limit of processes "
		       "(ulimit -u, pids.max)";
	case -EMFILE:
		return "the application is at its limit of open files; raise it (prlimit "
		       "--nofile)";
	case -EACCES:
	case -EROFS: return "it cannot make a socket in its runtime folder; make that writable";
	case -ENOSPC: return "there is no space for a socket in its runtime folder; free some";
	case -ENOMEM: return "the application has no memory for it";
	default: return strerror(-error);
	}
}

static int not_started(const json_t *body, json_int_t status, char *err, size_t errlen)
{
	int ret = status < 0 && status > -4096 ? (int)status : -EPROTO;
	const char *reason = json_string_value(json_object_get(body, "reason"));
	char text[RT_TEXT_LEN];

	snprintf(text, sizeof(text), "%s",
		ret != -ESHUTDOWN && reason && reason[0] ? reason : start_text(ret));
	rt_terminate(text, sizeof(text));
	return rt_fail(ret, err, errlen,
		ret == -EUNATCH ? "its probe is detached; 'ringtap attach' wakes it"
				: "the probe cannot start: %s",
		text);
}

static int judge(const char *answer, char socket[RT_SOCKET_NAME_MAX], char *err, size_t errlen)
{
	json_t *root = json_loads(answer, 0, NULL),
	       *body = json_object_get(root, RT_TELEMETRY_ATTACH);
	json_int_t protocol = json_integer_value(json_object_get(body, "protocol"));
	json_int_t status = json_integer_value(json_object_get(body, "status"));
	int ret = 0;

	if (json_is_null(body)) {
		snprintf(err, errlen,
			"the application runs without the ringtap probe; 'ringtap attach' loads it, "
			"or EAL option -d libringtap-probe.so at its start");
		ret = -EPROTONOSUPPORT;
	} else if (!json_is_integer(json_object_get(body, "protocol"))) {
		snprintf(err, errlen, "its telemetry socket sent an invalid answer");
		ret = -EPROTO;
	} else if (protocol != RT_PROTO_VERSION) {
		snprintf(err, errlen, "the probe speaks protocol version %lld, this is version %d",
			(long long)protocol, RT_PROTO_VERSION);
		ret = -EPROTOTYPE;
	} else if (status) {
		ret = not_started(body, status, err, errlen);
	} else if (!take_name(json_object_get(body, "socket"), socket)) {
		snprintf(err, errlen, "its telemetry socket sent an invalid answer");
		ret = -EPROTO;
	}
	json_decref(root);
	return ret;
}

int rt_telemetry_wake(const char *app, char socket[RT_SOCKET_NAME_MAX], char *err, size_t errlen)
{
	char answer[ANSWER_MAX];
	int fd = rt_connect_why(app, RT_TELEMETRY_SOCKET, err, errlen), ret;

	if (fd < 0)
		return rt_connect_failed(app, RT_TELEMETRY_SOCKET, fd, err, errlen);
	ret = ask(app, &fd, RT_TELEMETRY_ATTACH, answer, sizeof(answer));
	if (ret == -ETIMEDOUT && rt_peer_halted(fd, err, errlen))
		ret = -EHOSTDOWN;
	hang_up(fd);
	if (ret == -EHOSTDOWN)
		return ret;
	if (ret == -ECANCELED)
		return rt_fail(ret, err, errlen, RT_INTERRUPTED);
	if (ret)
		return rt_fail(ret, err, errlen, "its telemetry socket does not answer: %s",
			ret == -EBUSY ? "it serves ten clients already; end one of them"
				      : strerror(-ret));
	return judge(answer, socket, err, errlen);
}

static uint32_t peer_of(int fd)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) ? 0 : (uint32_t)peer.pid;
}

/* The answer in allocated memory, for the caller to free. */
static int request(const char *dir, const char *command, char **answer, uint32_t *pid)
{
	int fd = rt_connect(dir, RT_TELEMETRY_SOCKET), ret;
	char greeting[RT_TEXT_LEN];

	if (fd < 0)
		return fd;
	if (pid)
		*pid = peer_of(fd);
	if (!answer) {
		ret = greet(dir, &fd, greeting, sizeof(greeting));
		ret = ret < 0 ? ret : 0;
	} else {
		*answer = malloc(ANSWER_MAX);
		ret = *answer ? ask(dir, &fd, command, *answer, ANSWER_MAX) : -ENOMEM;
	}
	hang_up(fd);
	return ret;
}

/* ---- the process behind a socket, which stays the same: it is asked once */

#define MET_MAX 64

static struct met {
	dev_t dev;
	ino_t ino;
	struct timespec bound;
	pid_t pid;
} met[MET_MAX]; /* the last ones, for as long as this process runs */
static unsigned met_count;
static pthread_mutex_t met_lock = PTHREAD_MUTEX_INITIALIZER;

static bool recall(const struct stat *st, pid_t *pid)
{
	bool found = false;

	pthread_mutex_lock(&met_lock);
	for (unsigned i = 0; i < MET_MAX && i < met_count && !found; i++) {
		const struct met *m = &met[i];

		found = m->dev == st->st_dev && m->ino == st->st_ino &&
			m->bound.tv_sec == st->st_ctim.tv_sec &&
			m->bound.tv_nsec == st->st_ctim.tv_nsec;
		if (found)
			*pid = m->pid;
	}
	pthread_mutex_unlock(&met_lock);
	return found;
}

static void remember(const struct stat *st, pid_t pid)
{
	pthread_mutex_lock(&met_lock);
	met[met_count++ % MET_MAX] = (struct met){st->st_dev, st->st_ino, st->st_ctim, pid};
	pthread_mutex_unlock(&met_lock);
}

int rt_telemetry_owner(
	const struct rt_folder *f, const char *name, pid_t *pid, char *err, size_t errlen)
{
	char greeting[RT_TEXT_LEN];
	struct stat st;
	int ret = rt_folder_bound(f, name, &st), fd;

	err[0] = 0;
	if (ret != 1 && ret != -EPERM)
		return 0;
	if (ret == 1 && recall(&st, pid))
		return 1;
	fd = rt_folder_connect(f, name, 0, err, errlen);
	if (fd == -EAGAIN)
		return 1;
	if (fd < 0)
		return fd == -EPERM && err[0] ? fd : 0;
	*pid = (pid_t)peer_of(fd);
	remember(&st, *pid);
	(void)receive_within(RT_GREETING_MS, fd, greeting, sizeof(greeting));
	close(fd);
	return 1;
}

EXPORT int ringtap_telemetry(
	const char *dir, const char *command, int timeout_ms, char **answer, uint32_t *pid)
{
	int saved = rt_reader_limits.telemetry_ms, ret;

	if (answer)
		*answer = NULL;
	if (pid)
		*pid = 0;
	if (timeout_ms < 0 || (answer && !command))
		return -EINVAL;
	if (timeout_ms)
		rt_reader_limits.telemetry_ms = timeout_ms;
	ret = request(dir, command, answer, pid);
	rt_reader_limits.telemetry_ms = saved;
	if (ret && answer) {
		free(*answer);
		*answer = NULL;
	}
	return ret;
}
