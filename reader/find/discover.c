/* SPDX-License-Identifier: BSD-3-Clause */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/array.h"
#include "common/now.h"
#include "common/proto.h"
#include "apps.h"
#include "reader/text.h"
#include "reader/versions.h"
#include "reader/export.h"
#include "secondary.h"
#include "telemetry.h"

#define FOREIGN_MS  1000 /* all of other users */
#define FOREIGN_MAX 256  /* applications of theirs: their number, and that of folders, is theirs */
#define NOTES_MAX   64

bool rt_apps_is_foreign(uid_t uid)
{
	return uid && uid != geteuid();
}

bool rt_apps_wanted(const struct ringtap_apps *list, uid_t uid)
{
	const struct ringtap_apps_options *o = list->opts;
	bool found = !o->users || !rt_apps_is_foreign(uid);

	for (size_t i = 0; i < o->user_count && !found; i++)
		found = o->users[i] == uid;
	return found;
}

int rt_apps_time(const struct ringtap_apps *list)
{
	return list->foreign && (list->foreign_count >= FOREIGN_MAX ||
					rt_now_ns(CLOCK_MONOTONIC) > list->until_ns)
		       ? -ETIME
		       : 0;
}

static int add_note(const struct rt_place *p, const char *what, const char *why)
{
	struct ringtap_apps *list = p->list;
	char **note;

	if (p->known || list->note_count >= NOTES_MAX)
		return 0;
	note = rt_array_add(list->notes, list->note_count);
	if (note && asprintf(note, "%s%s%s", what, *what ? ": " : "", why) >= 0)
		return 0;
	list->note_count -= note != NULL;
	return -ENOMEM;
}

static void name_socket(char name[RT_SOCKET_NAME_MAX], const char *base, unsigned instance)
{
	snprintf(name, RT_SOCKET_NAME_MAX, instance ? "%s:%u" : "%s", base, instance);
}

/* 1: a process listens there; 0: none does; -EPERM: not trusted. Never waits: a listener with a
 * full backlog counts as one, and so does one that cannot be connected to as its user. */
static int has_probe(struct rt_place *p, unsigned instance, char *err, size_t errlen)
{
	char name[RT_SOCKET_NAME_MAX];
	struct ucred peer;
	socklen_t len = sizeof(peer);
	int fd;

	name_socket(name, RT_SOCKET_NAME, instance);
	fd = rt_folder_connect(&p->folder, name, 0, err, errlen);
	if (fd == -EPERM && err[0])
		return fd;
	if (fd < 0)
		return fd == -EAGAIN || err[0];
	if (!getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) && peer.pid)
		p->pid = peer.pid;
	close(fd);
	return 1;
}

/* The same of telemetry. The only application of a folder that locks its configuration is known by
 * that. */
static int has_telemetry(struct rt_place *p, unsigned instance, char *err, size_t errlen)
{
	char name[RT_SOCKET_NAME_MAX];
	struct stat st;

	name_socket(name, RT_TELEMETRY_SOCKET, instance);
	return p->locked && p->named_count == 1 && !instance &&
			       rt_folder_bound(&p->folder, name, &st) == 1
		       ? 1
		       : rt_telemetry_owner(&p->folder, name, &p->pid, err, errlen);
}

/* Containers may share a folder, by other paths. */
static unsigned folder_number(const struct ringtap_apps *list, const struct stat *folder)
{
	for (size_t i = 0; i < list->count && folder->st_ino; i++)
		if (list->apps[i].dev == folder->st_dev && list->apps[i].ino == folder->st_ino)
			return list->apps[i].folder;
	return list->folder_count;
}

/* For root, names of other users' applications include the user: they cannot imitate one of
 * root's. */
struct rt_app *rt_apps_add(const struct rt_place *p, const struct rt_address *which, pid_t pid)
{
	struct ringtap_apps *list = p->list;
	struct rt_app *more = realloc(list->apps, (list->count + 1) * sizeof(*more)), *a;
	char suffix[32], user[16] = "";

	if (!more)
		return NULL;
	list->apps = more;
	a = &more[list->count];
	*a = (struct rt_app){.number = (unsigned)list->count,
		.folder = folder_number(list, &p->file),
		.pid = pid,
		.secondary = which->secondary,
		.name_length = strlen(p->prefix),
		.by_process = p->view,
		.dev = p->file.st_dev,
		.ino = p->file.st_ino,
		.foreign = rt_apps_is_foreign(p->folder.uid),
		.instance = which->instance};
	rt_address_suffix(which, suffix, sizeof(suffix));
	if (p->folder.uid && p->folder.uid != geteuid())
		snprintf(user, sizeof(user), "@%u", (unsigned)p->folder.uid);
	/* Its own process lives as long as it. */
	if (p->view && p->path && !p->view->own
			? asprintf(&a->dir, RT_VIEW_ROOT "%s%s", (int)pid, p->path, suffix) < 0
			: asprintf(&a->dir, "%s%s", p->dir, suffix) < 0)
		return NULL;
	if (asprintf(&a->name, "%s%s%s", p->prefix, suffix, user) < 0) {
		free(a->dir);
		return NULL;
	}
	list->count++;
	list->foreign_count += a->foreign;
	return a;
}

static int add_instance(struct ringtap_apps *list, struct rt_place *p, unsigned instance)
{
	const struct rt_address which = {.instance = instance};
	char err[RT_TEXT_LEN];
	struct rt_app *a;
	pid_t pid;
	int ret;

	/* A folder of the host is in each mount namespace: one connection for all of them. */
	if (p->view && rt_apps_listed(p, &which))
		return 0;
	p->pid = 0;
	ret = has_probe(p, instance, err, sizeof(err));
	if (!ret)
		ret = has_telemetry(p, instance, err, sizeof(err));
	if (ret < 0)
		return add_note(p, p->dir, err);
	if (!ret)
		return 0;
	/* A full backlog does not tell the process. */
	pid = p->pid || instance ? p->pid : p->config_pid;
	if (!rt_apps_take(p, &which, pid))
		return 0;
	a = rt_apps_add(p, &which, pid);
	if (!a)
		return -ENOMEM;
	a->primary = p->config_pid ? pid == p->config_pid : !instance;
	p->config_listed |= !instance || a->primary;
	return 0;
}

static int add_secondary(const struct rt_secondary *s, void *arg)
{
	const struct rt_address which = {.secondary = s->own_pid, .instance = s->instance};
	struct rt_place *p = arg;
	pid_t pid = s->pid ? s->pid : p->view ? rt_view_pid(p->view, s->own_pid) : 0;

	return !rt_apps_take(p, &which, pid) || rt_apps_add(p, &which, pid) ? 0 : -ENOMEM;
}

static int note_secondary(const char *why, void *arg)
{
	const struct rt_place *p = arg;

	return add_note(p, p->dir, why);
}

static void read_names(struct rt_place *p, uint64_t until_ns)
{
	int fd = openat(p->folder.fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;

	while (d && !rt_is_late(until_ns) && (e = readdir(d))) {
		int n = rt_socket_instance(e->d_name, RT_SOCKET_NAME);

		if (n < 0)
			n = rt_socket_instance(e->d_name, RT_TELEMETRY_SOCKET);
		if (n < 0)
			continue;
		p->named_count += !p->named[n];
		p->named[n] = true;
	}
	if (d)
		closedir(d);
	else if (fd >= 0)
		close(fd);
}

static int search(struct rt_place *p)
{
	const struct rt_secondary_visitor v = {add_secondary, note_secondary, p,
		rt_folder_until(&p->folder, p->view && !p->view->own)};
	const struct rt_address none = {.secondary = 0};
	struct ringtap_apps *list = p->list;
	struct rt_app *a;
	int ret = 0;

	read_names(p, v.until_ns);
	p->locked = rt_folder_locked(&p->folder, &p->config_pid);
	for (unsigned i = 0; i < RT_INSTANCES_MAX && !ret; i++) {
		if (p->named[i])
			ret = add_instance(list, p, i);
	}
	/* Without telemetry and probe, the lock is all that is visible. */
	if (!ret && p->locked && !p->config_listed && rt_apps_take(p, &none, p->config_pid)) {
		a = rt_apps_add(p, &none, p->config_pid);
		ret = a ? 0 : -ENOMEM;
		if (a)
			a->primary = true;
	}
	/* The caller has listed all applications of a folder that it passes. */
	if (!ret && !p->known)
		ret = rt_secondaries_each(&p->folder, &v);
	return ret || !rt_is_late(v.until_ns) ? ret : add_note(p, p->dir, "it has too many files");
}

static bool was_searched(const struct rt_place *p)
{
	for (size_t i = 0; i < p->list->searched_count; i++)
		if (p->list->searched[i].dev == p->file.st_dev &&
			p->list->searched[i].ino == p->file.st_ino)
			return true;
	return false;
}

static int remember(const struct rt_place *p)
{
	struct ringtap_apps *list = p->list;
	struct rt_searched *new = rt_array_add(list->searched, list->searched_count);

	if (!new)
		return -ENOMEM;
	*new = (struct rt_searched){p->file.st_dev, p->file.st_ino};
	return 0;
}

static int search_once(struct rt_place *p)
{
	int ret = 0;

	if (fstat(p->folder.fd, &p->file))
		return 0;
	p->known = p->view && was_searched(p);
	/* A container's processes may use a folder of the caller by another path. */
	if (p->known && p->view->own)
		return 0;
	if (!p->view || p->view->own)
		ret = remember(p);
	return ret ? ret : search(p);
}

int rt_apps_add_folder(struct rt_place *p)
{
	char err[RT_TEXT_LEN];
	int ret = rt_folder_open(&p->folder, p->dir, err, sizeof(err));

	/* In a view, it may be one that the caller has by another path. */
	if (ret)
		return ret == -EPERM && err[0] && !p->view ? add_note(p, "", err) : 0;
	/* A view may have it for both searches. */
	if (rt_apps_wanted(p->list, p->folder.uid) &&
		(!p->view || rt_apps_is_foreign(p->folder.uid) == p->list->foreign))
		ret = search_once(p);
	rt_folder_close(&p->folder);
	p->list->folder_count++;
	return ret;
}

static int add(struct ringtap_apps *list, const char *parent, const char *name)
{
	struct rt_place p = {.prefix = name, .list = list};
	char shown[NAME_MAX + 1], *dir;
	int ret;

	if (asprintf(&dir, "%s/%s", parent, name) < 0)
		return -ENOMEM;
	p.dir = dir;
	/* Any user may have chosen it, and it may be printed to a terminal. */
	snprintf(shown, sizeof(shown), "%s", name);
	rt_copy_text(shown, shown, sizeof(shown));
	ret = strcmp(shown, name) ? add_note(&p, shown, "its name has control characters")
				  : rt_apps_add_folder(&p);
	free(dir);
	return ret;
}

/* XDG_RUNTIME_DIR may be /var/run or /tmp. */
static bool seen_before(struct ringtap_apps *list, int fd)
{
	struct stat st;

	if (fstat(fd, &st))
		return false;
	for (unsigned i = 0; i < list->seen_count; i++) {
		if (list->seen[i].st_dev == st.st_dev && list->seen[i].st_ino == st.st_ino)
			return true;
	}
	if (list->seen_count < sizeof(list->seen) / sizeof(list->seen[0]))
		list->seen[list->seen_count++] = st;
	return false;
}

/* Whether an entry, a link included, belongs to the users of this search. */
static bool is_of_search(const struct ringtap_apps *list, int parent, const char *name)
{
	struct stat st;

	return !fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) &&
	       rt_apps_is_foreign(st.st_uid) == list->foreign;
}

static int scan(struct ringtap_apps *list, const char *parent)
{
	DIR *d = opendir(parent);
	struct dirent *e;
	int ret = 0;

	if (!d)
		return 0;
	if (seen_before(list, dirfd(d))) {
		closedir(d);
		return 0;
	}
	while (!ret && (e = readdir(d))) {
		if (e->d_name[0] == '.' || !is_of_search(list, dirfd(d), e->d_name))
			continue;
		ret = rt_apps_time(list);
		if (!ret)
			ret = add(list, parent, e->d_name);
	}
	closedir(d);
	return ret;
}

/* Secondary processes follow the others of their prefix, in the order of their ids. */
static int by_name(const void *a, const void *b)
{
	const struct rt_app *x = a, *y = b;
	size_t least = x->name_length < y->name_length ? x->name_length : y->name_length;
	int ret = memcmp(x->name, y->name, least);

	if (!ret)
		ret = (x->name_length > y->name_length) - (x->name_length < y->name_length);
	if (!ret)
		ret = (x->folder > y->folder) - (x->folder < y->folder);
	if (!ret)
		ret = (x->secondary > y->secondary) - (x->secondary < y->secondary);
	if (!ret)
		ret = strcmp(x->name, y->name);
	return ret ? ret : (x->number > y->number) - (x->number < y->number);
}

static int search_folders(struct ringtap_apps *list)
{
	const char *xdg = getenv("XDG_RUNTIME_DIR");
	char user[4096];
	int ret;

	list->seen_count = 0;
	ret = scan(list, "/var/run/dpdk");
	if (!ret && xdg) {
		snprintf(user, sizeof(user), "%s/dpdk", xdg);
		ret = scan(list, user);
	}
	if (!ret)
		ret = scan(list, "/tmp/dpdk"); /* EAL's default if not root */
	return ret ? ret : rt_apps_add_by_process(list);
}

static int search_all(struct ringtap_apps *list, int timeout_ms)
{
	const struct rt_place nowhere = {.list = list};
	int ret = search_folders(list);

	if (ret || (list->opts->users && !list->opts->user_count))
		return ret;
	list->foreign = true;
	list->until_ns = rt_now_ns(CLOCK_MONOTONIC) + (uint64_t)timeout_ms * 1000000;
	ret = search_folders(list);
	return ret != -ETIME ? ret
			     : add_note(&nowhere, "",
				       "some applications of other users, who have too many "
				       "folders or sockets");
}

EXPORT int ringtap_apps_search(struct ringtap_apps **out, const struct ringtap_apps_options *opts)
{
	struct ringtap_apps_options o;
	struct ringtap_apps *list;
	char err[RT_TEXT_LEN];
	int ret = rt_options_in(&o, sizeof(o), RT_END_OF(struct ringtap_apps_options, timeout_ms),
		opts, err, sizeof(err));

	*out = NULL;
	if (ret || o.timeout_ms < 0)
		return ret ? ret : -EINVAL;
	list = calloc(1, sizeof(*list));
	if (!list)
		return -ENOMEM;
	list->opts = &o;
	ret = search_all(list, o.timeout_ms ? o.timeout_ms : FOREIGN_MS);
	list->opts = NULL;
	if (!ret && list->count) {
		qsort(list->apps, list->count, sizeof(*list->apps), by_name);
		ret = rt_apps_tell_apart(list);
	}
	if (ret) {
		ringtap_apps_free(list);
		return ret;
	}
	*out = list;
	return 0;
}

EXPORT int ringtap_apps_find(struct ringtap_apps **out)
{
	return ringtap_apps_search(out, NULL);
}

EXPORT void ringtap_apps_free(struct ringtap_apps *list)
{
	if (!list)
		return;
	for (size_t i = 0; i < list->count; i++) {
		free(list->apps[i].dir);
		free(list->apps[i].name);
	}
	for (size_t i = 0; i < list->note_count; i++)
		free(list->notes[i]);
	free(list->notes);
	free(list->searched);
	free(list->apps);
	free(list);
}

EXPORT size_t ringtap_apps_count(const struct ringtap_apps *list)
{
	return list->count;
}

EXPORT const char *ringtap_apps_name(const struct ringtap_apps *list, size_t i)
{
	return i < list->count ? list->apps[i].name : NULL;
}

EXPORT const char *ringtap_apps_dir(const struct ringtap_apps *list, size_t i)
{
	return i < list->count ? list->apps[i].dir : NULL;
}

EXPORT uint32_t ringtap_apps_pid(const struct ringtap_apps *list, size_t i)
{
	return i < list->count ? (uint32_t)list->apps[i].pid : 0;
}

EXPORT bool ringtap_apps_foreign(const struct ringtap_apps *list, size_t i)
{
	return i < list->count && list->apps[i].foreign;
}

EXPORT bool ringtap_apps_secondary(const struct ringtap_apps *list, size_t i)
{
	return i < list->count && list->apps[i].secondary;
}

EXPORT size_t ringtap_apps_primary(const struct ringtap_apps *list, size_t i)
{
	for (size_t k = 0; ringtap_apps_secondary(list, i) && k < list->count; k++)
		if (list->apps[k].primary && list->apps[k].folder == list->apps[i].folder)
			return k;
	return i;
}

EXPORT size_t ringtap_apps_notes(const struct ringtap_apps *list)
{
	return list->note_count;
}

EXPORT const char *ringtap_apps_note(const struct ringtap_apps *list, size_t i)
{
	return i < list->note_count ? list->notes[i] : NULL;
}
