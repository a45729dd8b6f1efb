/* SPDX-License-Identifier: BSD-3-Clause */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/now.h"
#include "halt.h"
#include "secondary.h"

#define SECONDARIES_MAX 256 /* limit for a folder: its owner may have made any number of files */
#define FOLDER_NS       UINT64_C(250000000) /* limit for a folder of another user or a container */

struct search {
	const struct rt_folder *folder;
	const struct rt_secondary_visitor *v;
	struct rt_secondary known[SECONDARIES_MAX];
	size_t count;
};

/* The inode of the Unix socket with a file of this name, in the network namespace of a process. The
 * path is as the process sees it. 0: there is none. */
static unsigned long inode_of(pid_t pid, const char *name)
{
	char path[64], line[512], *slash;
	unsigned long ino = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/net/unix", (int)pid);
	f = fopen(path, "re");
	while (f && !ino && fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = 0;
		slash = strrchr(line, '/');
		if (slash && !strcmp(slash + 1, name) &&
			sscanf(line, "%*s %*s %*s %*s %*s %*s %lu", &ino) != 1)
			ino = 0;
	}
	if (f)
		fclose(f);
	return ino;
}

/* Another PID namespace may have another process of this number. And names of sockets may contain
 * lines: a user could show another user's process as one of an own folder. */
static bool may_be_in(const struct rt_folder *f, pid_t pid)
{
	struct stat st;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	return !f->uid || (!stat(path, &st) && st.st_uid == f->uid);
}

static bool has_socket(const struct rt_folder *f, pid_t pid, const char *name)
{
	unsigned long ino = may_be_in(f, pid) ? inode_of(pid, name) : 0;
	char path[64], wanted[64], link[64];
	struct dirent *e;
	bool found = false;
	ssize_t n;
	DIR *d;

	snprintf(wanted, sizeof(wanted), "socket:[%lu]", ino);
	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	d = ino ? opendir(path) : NULL;
	while (d && !found && (e = readdir(d))) {
		n = readlinkat(dirfd(d), e->d_name, link, sizeof(link) - 1);
		link[n > 0 ? n : 0] = 0;
		found = !strcmp(link, wanted);
	}
	if (d)
		closedir(d);
	return found;
}

static int take(struct search *s, const struct rt_secondary *new)
{
	if (s->count == SECONDARIES_MAX)
		return 0;
	s->known[s->count++] = *new;
	return s->v->found(new, s->v->arg);
}

static int visit_probe(struct search *s, const char *name)
{
	struct rt_secondary new = {0};
	int instance = rt_socket_secondary(name, &new.own_pid), fd;
	char err[RT_TEXT_LEN];
	struct ucred peer;
	socklen_t len = sizeof(peer);

	if (instance < 0)
		return 0;
	new.instance = (unsigned)instance;
	fd = rt_folder_connect(s->folder, name, 0, err, sizeof(err));
	if (fd == -EPERM && err[0])
		return s->v->refused(err, s->v->arg);
	if (fd < 0 && fd != -EAGAIN) /* with a full backlog it is there as well */
		return 0;
	if (fd == -EAGAIN)
		new.pid = has_socket(s->folder, new.own_pid, name) ? new.own_pid : 0;
	else if (!getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len))
		new.pid = peer.pid;
	if (fd >= 0)
		close(fd);
	return take(s, &new);
}

static int visit_mp(struct search *s, const char *name)
{
	struct rt_secondary new = {.own_pid = rt_socket_mp(name)};
	struct stat st;

	for (size_t i = 0; i < s->count; i++)
		if (s->known[i].own_pid == new.own_pid)
			return 0;
	if (!new.own_pid || rt_folder_bound(s->folder, name, &st))
		return 0;
	new.pid = has_socket(s->folder, new.own_pid, name) ? new.own_pid : 0;
	return take(s, &new);
}

uint64_t rt_folder_until(const struct rt_folder *f, bool by_process)
{
	bool foreign = f->uid && f->uid != geteuid();

	return foreign || by_process ? rt_now_ns(CLOCK_MONOTONIC) + FOLDER_NS : 0;
}

bool rt_is_late(uint64_t until_ns)
{
	return until_ns && rt_now_ns(CLOCK_MONOTONIC) > until_ns;
}

static int each_name(struct search *s, int (*visit)(struct search *s, const char *name))
{
	int fd = openat(s->folder->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), ret = 0;
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;

	while (d && !ret && !rt_is_late(s->v->until_ns) && (e = readdir(d)))
		ret = visit(s, e->d_name);
	if (d)
		closedir(d);
	else if (fd >= 0)
		close(fd);
	return ret;
}

int rt_secondaries_each(const struct rt_folder *f, const struct rt_secondary_visitor *v)
{
	struct search *s = calloc(1, sizeof(*s));
	int ret;

	if (!s)
		return -ENOMEM;
	s->folder = f;
	s->v = v;
	/* First: what they tell of a process is certain. */
	ret = each_name(s, visit_probe);
	if (!ret)
		ret = each_name(s, visit_mp);
	free(s);
	return ret;
}

bool rt_address_is_secondary(const char *app)
{
	struct rt_address a;

	return !rt_address_split(app, &a) && a.secondary;
}

static int is_it(const struct rt_secondary *s, void *arg)
{
	struct rt_secondary *wanted = arg;

	if (s->own_pid != wanted->own_pid || s->instance != wanted->instance)
		return 0;
	wanted->pid = s->pid;
	return 1;
}

static int skip(const char *why, void *arg)
{
	return 0;
}

int rt_secondary_alive(const char *app, char *err, size_t errlen)
{
	struct rt_secondary wanted = {0};
	struct rt_secondary_visitor v = {is_it, skip, &wanted, 0};
	struct rt_address a;
	struct rt_folder f;
	int ret = rt_address_open(app, &a, &f, err, errlen);

	if (ret)
		return ret;
	wanted.own_pid = a.secondary;
	wanted.instance = a.instance;
	v.until_ns = rt_folder_until(&f, false);
	ret = rt_secondaries_each(&f, &v);
	rt_folder_close(&f);
	if (ret <= 0)
		return ret ? ret : -ENOENT;
	return rt_halted(wanted.pid, err, errlen) ? -EHOSTDOWN : 0;
}
