/* SPDX-License-Identifier: BSD-3-Clause */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "ask.h"
#include "base/util.h"
#include "target/which_app.h"

#define NAME          "ringtap-flight-"
#define NEW           ".ringtap-flight-"
#define RECORDERS_MAX 16     /* for each application */
#define FILES_MAX     65536u /* names that are read of its folder */
#define ANSWER_MAX    (1u << 20)

/* ---- names */

static int open_folder(const char *dir)
{
	return address_open(dir, O_PATH | O_DIRECTORY);
}

/* Paths may be longer than an address has room for. */
static void set_address(struct sockaddr_un *a, int folder, const char *name)
{
	*a = (struct sockaddr_un){.sun_family = AF_UNIX};
	snprintf(a->sun_path, sizeof(a->sun_path), "/proc/self/fd/%d/%.64s", folder, name);
}

/* Trusted are root, this user, and the owner of the application's folder. */
static bool is_trusted(uid_t uid, int folder)
{
	struct stat st;

	return !uid || uid == geteuid() || (!fstat(folder, &st) && uid == st.st_uid);
}

/* 0 or -errno. The folder may be that of a container, which may have put a link there. */
static int check_socket(int at, int folder)
{
	struct stat st;

	if (fstat(at, &st))
		return -errno;
	if (!S_ISSOCK(st.st_mode))
		return -ENOTSOCK;
	return is_trusted(st.st_uid, folder) ? 0 : -EPERM;
}

/* A descriptor, or -errno; -ECONNREFUSED: nothing listens there any more. */
static int connect_to(int folder, const char *name)
{
	int at = openat(folder, name, O_PATH | O_NOFOLLOW | O_CLOEXEC), fd, ret;
	struct sockaddr_un a = {.sun_family = AF_UNIX};

	if (at < 0)
		return -errno;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	ret = fd < 0 ? -errno : check_socket(at, folder);
	snprintf(a.sun_path, sizeof(a.sun_path), "/proc/self/fd/%d", at);
	if (!ret && connect(fd, (struct sockaddr *)&a, sizeof(a)))
		ret = -errno;
	close(at);
	if (ret && fd >= 0)
		close(fd);
	return ret ? ret : fd;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* Calls visit() for each name. The folder's owner may have made any number of files. */
static void each(int folder, void (*visit)(void *ctx, int folder, const char *name), void *ctx)
{
	char names[RECORDERS_MAX][NAME_MAX + 1];
	int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;
	size_t n = 0;

	for (unsigned i = 0; d && i < FILES_MAX && n < RECORDERS_MAX && (e = readdir(d)); i++)
		if (!strncmp(e->d_name, NAME, strlen(NAME)))
			strcpy(names[n++], e->d_name);
	if (d)
		closedir(d);
	else if (fd >= 0)
		close(fd);
	qsort(names, n, sizeof(names[0]), by_name);
	for (size_t i = 0; i < n; i++)
		visit(ctx, folder, names[i]);
}

/* ---- the recorder's end */

static void remove_dead(void *ctx, int folder, const char *name)
{
	int fd = connect_to(folder, name);

	if (fd == -ECONNREFUSED)
		unlinkat(folder, name, 0);
	if (fd >= 0)
		close(fd);
}

/* It has its name when it listens: one that refuses connections is dead. */
static int listen_in(int fd, int folder)
{
	char name[64], fresh[64];
	struct sockaddr_un a;

	snprintf(name, sizeof(name), NAME "%d", getpid());
	snprintf(fresh, sizeof(fresh), NEW "%d", getpid());
	unlinkat(folder, fresh, 0);
	set_address(&a, folder, fresh);
	/* The mode of the file that bind() makes. */
	if (fchmod(fd, 0600) || bind(fd, (struct sockaddr *)&a, sizeof(a)))
		return -errno;
	if (listen(fd, RECORDERS_MAX) || renameat(folder, fresh, folder, name)) {
		int error = errno;

		unlinkat(folder, fresh, 0);
		return -error;
	}
	return 0;
}

int ask_listen(const char *dir)
{
	int folder = open_folder(dir), fd, ret;

	if (folder < 0)
		return folder;
	each(folder, remove_dead, NULL);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	ret = fd < 0 ? -errno : listen_in(fd, folder);
	close(folder);
	if (ret && fd >= 0)
		close(fd);
	return ret ? ret : fd;
}

int ask_is_waiting(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return fd >= 0 && poll(&p, 1, 0) > 0;
}

int ask_answer(int fd, const char *document)
{
	int client, room = ANSWER_MAX;

	while ((client = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0) {
		/* Bytes that do not fit into the socket are lost: the client finds half a document.
		 */
		setsockopt(client, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
		(void)!send(client, document, strlen(document), MSG_NOSIGNAL | MSG_DONTWAIT);
		close(client);
	}
	return errno == EAGAIN || errno == EINTR || errno == ECONNABORTED ? 0 : -errno;
}

void ask_close(int fd, const char *dir)
{
	char name[64];
	int folder = fd >= 0 ? open_folder(dir) : -1;

	if (fd >= 0)
		close(fd);
	if (folder < 0)
		return;
	snprintf(name, sizeof(name), NAME "%d", getpid());
	unlinkat(folder, name, 0);
	close(folder);
}

/* ---- the other end */

/* A recorder that has been connected to, and what has come of its document. */
struct asked {
	int fd; /* -1: its document is here, or it has failed */
	char *text;
	size_t len;
	bool whole;
};

struct asking {
	struct asked list[RECORDERS_MAX];
	nfds_t count;
};

static bool is_peer_trusted(int fd, int folder)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) &&
	       is_trusted(peer.uid, folder);
}

static void ask(void *ctx, int folder, const char *name)
{
	struct asking *a = ctx;
	int fd = connect_to(folder, name);

	if (fd >= 0 && is_peer_trusted(fd, folder))
		a->list[a->count++] = (struct asked){.fd = fd, .text = malloc(ANSWER_MAX + 1)};
	else if (fd >= 0)
		close(fd);
}

static void hang_up(struct asked *r)
{
	if (r->fd >= 0)
		close(r->fd);
	r->fd = -1;
}

static void receive(struct asked *r)
{
	ssize_t n = r->text && r->len < ANSWER_MAX
			    ? recv(r->fd, r->text + r->len, ANSWER_MAX - r->len, MSG_DONTWAIT)
			    : -1;

	if (n < 0 && r->text && r->len < ANSWER_MAX && (errno == EINTR || errno == EAGAIN))
		return;
	r->whole = !n;
	if (n > 0)
		r->len += (size_t)n;
	else
		hang_up(r);
}

/* Until the end of all documents. False: some did not come in time. */
static bool receive_all(struct asking *a, int timeout_ms)
{
	uint64_t until = now_ns(CLOCK_MONOTONIC) + (uint64_t)timeout_ms * 1000000;

	for (;;) {
		struct pollfd p[RECORDERS_MAX];
		uint64_t now = now_ns(CLOCK_MONOTONIC);
		bool more = false;

		for (nfds_t i = 0; i < a->count; i++) {
			p[i] = (struct pollfd){.fd = a->list[i].fd, .events = POLLIN};
			more |= a->list[i].fd >= 0;
		}
		if (!more)
			return true;
		if (now >= until || rt_poll_ns(p, a->count, until - now) <= 0)
			return false;
		for (nfds_t i = 0; i < a->count; i++)
			if (p[i].revents)
				receive(&a->list[i]);
	}
}

/* Whether it is of this application, with no more conditions than a recorder has: the application's
 * owner can answer anything, and an exporter compares them. */
static bool is_answer(const json_t *j, const char *app)
{
	const json_t *application = json_object_get(j, "application");
	const char *of = json_string_value(json_object_get(application, "name"));

	return of && !strcmp(of, app) &&
	       json_array_size(json_object_get(j, "conditions")) <= ASK_CONDITIONS_MAX;
}

bool ask_recorders(json_t *list, const char *dir, const char *app, int timeout_ms)
{
	struct asking a = {.count = 0};
	int folder = open_folder(dir);
	bool all;

	if (folder < 0)
		return true;
	each(folder, ask, &a);
	close(folder);
	all = receive_all(&a, timeout_ms);
	for (nfds_t i = 0; i < a.count; i++) {
		struct asked *r = &a.list[i];
		json_t *j = r->whole ? json_loadb(r->text, r->len, 0, NULL) : NULL;

		if (j && is_answer(j, app))
			json_array_append(list, j);
		json_decref(j);
		hang_up(r);
		free(r->text);
	}
	return all;
}
