/* SPDX-License-Identifier: BSD-3-Clause */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/array.h"
#include "common/in_root.h"
#include "common/proto.h"
#include "common/status.h"
#include "abstract.h"
#include "connect.h"
#include "halt.h"
#include "owners.h"
#include "views.h"

#define MP_SOCKET "mp_socket" /* EAL's; of secondaries with an id behind it */
#define PARENT    "dpdk"

/* The folders of sockets that are bound in a network namespace. */
struct net {
	ino_t ino;
	char **folders;
	size_t count;
};

struct search {
	struct rt_view own;
	struct rt_view *views; /* views of which one process was met */
	size_t view_count;
	struct net *nets;
	size_t net_count;
	struct rt_owners owners; /* owners of the sockets in the own network namespace */
	bool foreign;            /* searched for: those of other users than root and this one */
};

static int stat_of(pid_t pid, const char *name, struct stat *st)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	return stat(path, st) ? -errno : 0;
}

int rt_view_get(struct rt_view *v, pid_t pid)
{
	struct stat mounts, net, root;
	int ret = stat_of(pid, "ns/mnt", &mounts);

	if (!ret)
		ret = stat_of(pid, "ns/net", &net);
	if (!ret)
		ret = stat_of(pid, "root/", &root);
	if (!ret)
		*v = (struct rt_view){.pid = pid,
			.mounts = mounts.st_ino,
			.net = net.st_ino,
			.root_dev = root.st_dev,
			.root = root.st_ino};
	return ret;
}

bool rt_view_is_same(const struct rt_view *a, const struct rt_view *b)
{
	return a->mounts == b->mounts && a->root_dev == b->root_dev && a->root == b->root;
}

pid_t rt_view_pid(const struct rt_view *v, pid_t own_pid)
{
	DIR *d = opendir("/proc");
	struct dirent *e;
	pid_t found = 0;

	while (d && !found && (e = readdir(d))) {
		pid_t pid = (pid_t)atoi(e->d_name);
		struct rt_view other;

		if (pid > 0 && !rt_view_get(&other, pid) && rt_view_is_same(&other, v) &&
			rt_own_pid(pid) == own_pid)
			found = pid;
	}
	if (d)
		closedir(d);
	return found;
}

static bool is_known(const struct search *s, const struct rt_view *v)
{
	for (size_t i = 0; i < s->view_count; i++)
		if (rt_view_is_same(&s->views[i], v) && s->views[i].net == v->net)
			return true;
	return false;
}

/* ---- sockets of a network namespace */

static bool is_socket_name(const char *name)
{
	return !strncmp(name, RT_TELEMETRY_SOCKET, sizeof(RT_TELEMETRY_SOCKET) - 1) ||
	       !strncmp(name, RT_SOCKET_NAME, sizeof(RT_SOCKET_NAME) - 1) ||
	       !strncmp(name, MP_SOCKET, sizeof(MP_SOCKET) - 1);
}

/* Cuts the path of a socket of DPDK to its folder, and leaves the probe's abstract names as they
 * are. False: it is another one. */
static bool take_folder(char *path)
{
	char *name = strrchr(path, '/'), *prefix, *parent;

	if (!strncmp(path, RT_ABSTRACT_PREFIX, sizeof(RT_ABSTRACT_PREFIX) - 1))
		return true;
	if (*path != '/' || !is_socket_name(name + 1))
		return false;
	*name = '\0';
	prefix = strrchr(path, '/');
	if (!prefix || !prefix[1])
		return false;
	*prefix = '\0';
	parent = strrchr(path, '/');
	*prefix = '/';
	return parent && parent + sizeof(PARENT) == prefix &&
	       !memcmp(parent + 1, PARENT, sizeof(PARENT) - 1);
}

static int add_folder(struct net *n, const char *folder)
{
	char **new = rt_array_add(n->folders, n->count);

	if (new && (*new = strdup(folder)))
		return 0;
	n->count -= new != NULL;
	return -ENOMEM;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* A folder has several sockets. */
static void sort_folders(struct net *n)
{
	size_t left = 0;

	if (n->count)
		qsort(n->folders, n->count, sizeof(*n->folders), by_text);
	for (size_t i = 0; i < n->count; i++) {
		if (left && !strcmp(n->folders[left - 1], n->folders[i]))
			free(n->folders[i]);
		else
			n->folders[left++] = n->folders[i];
	}
	n->count = left;
}

/* /proc/PID/net/unix: address, uses, protocol, flags, type, state, inode, path. */
static int read_sockets(const struct search *s, struct net *n, pid_t pid)
{
	/* Another user may have any number of them, here. */
	const struct rt_owners *owners = !s->foreign && n->ino == s->own.net ? &s->owners : NULL;
	char path[64], *line = NULL;
	size_t size = 0;
	int ret = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/net/unix", (int)pid);
	f = fopen(path, "re");
	while (f && !ret && getline(&line, &size, f) > 0) {
		unsigned long ino = 0;
		int at = 0;

		line[strcspn(line, "\n")] = '\0';
		/* 0: a connection that is not accepted yet has the name of its listener. */
		if (sscanf(line, "%*s %*s %*s %*s %*s %*s %lu %n", &ino, &at) == 1 && at && ino &&
			!(owners && rt_owners_foreign(owners, ino)) && take_folder(line + at))
			ret = add_folder(n, line + at);
	}
	sort_folders(n);
	free(line);
	if (f)
		fclose(f);
	return ret;
}

static int net_of(struct search *s, const struct rt_view *v, size_t *found)
{
	struct net *new;

	for (*found = 0; *found < s->net_count; ++*found)
		if (s->nets[*found].ino == v->net)
			return 0;
	new = rt_array_add(s->nets, s->net_count);
	if (!new)
		return -ENOMEM;
	new->ino = v->net;
	return read_sockets(s, new, v->pid);
}

/* ---- views */

static int take_view(struct search *s, struct rt_view *v, rt_view_take take, void *arg)
{
	struct rt_view *new = rt_array_add(s->views, s->view_count);
	size_t net;
	int ret;

	if (!new)
		return -ENOMEM;
	*new = *v;
	v->own = rt_view_is_same(v, &s->own);
	ret = net_of(s, v, &net);
	for (size_t i = 0; !ret && i < s->nets[net].count; i++)
		ret = take(arg, v, s->nets[net].folders[i]);
	return ret;
}

static void clear(struct search *s)
{
	for (size_t i = 0; i < s->net_count; i++) {
		for (size_t k = 0; k < s->nets[i].count; k++)
			free(s->nets[i].folders[k]);
		free(s->nets[i].folders);
	}
	free(s->nets);
	free(s->views);
	free(s->owners.foreign);
}

/* Other users may have any number of processes. */
static bool is_of_search(const struct search *s, pid_t pid)
{
	struct stat st;

	return s->foreign || (!stat_of(pid, "", &st) && (!st.st_uid || st.st_uid == geteuid()));
}

int rt_views_each(bool foreign, rt_view_take take, void *arg)
{
	const char *wanted = secure_getenv(RT_VIEWS_VARIABLE);
	struct search s = {.foreign = foreign};
	struct dirent *e;
	int ret = 0;
	DIR *d;

	/* A peer's process id means nothing in a /proc of another PID namespace. */
	if ((wanted && !strcmp(wanted, "no")) || !rt_proc_is_ours() ||
		rt_view_get(&s.own, getpid()))
		return 0;
	if (!foreign)
		rt_owners_read(&s.owners);
	d = opendir("/proc");
	while (d && !ret && (e = readdir(d))) {
		struct rt_view v;

		if (!isdigit((unsigned char)e->d_name[0]) || !is_of_search(&s, atoi(e->d_name)) ||
			rt_view_get(&v, atoi(e->d_name)) || is_known(&s, &v))
			continue;
		ret = take_view(&s, &v, take, arg);
	}
	if (d)
		closedir(d);
	clear(&s);
	return ret;
}

/* ---- addresses */

bool rt_view_address(const char *address, pid_t *pid, const char **folder)
{
	int number, end = 0;

	if (sscanf(address, RT_VIEW_ROOT "%n", &number, &end) != 1 || !end || address[end] != '/' ||
		number <= 0)
		return false;
	*pid = number;
	*folder = address + end;
	return true;
}

int rt_view_open(const char *address)
{
	const char *folder;
	char path[64];
	int root, ret;
	pid_t pid;

	if (!rt_view_address(address, &pid, &folder))
		return -EINVAL;
	snprintf(path, sizeof(path), RT_VIEW_ROOT, (int)pid);
	root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return -errno;
	ret = rt_open_plain(root, folder, O_PATH | O_DIRECTORY);
	close(root);
	return ret;
}
