/* SPDX-License-Identifier: BSD-3-Clause */
/* Applications that are found by their processes: in containers, below other roots, or with
 * another XDG_RUNTIME_DIR. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "abstract.h"
#include "apps.h"
#include "common/in_root.h"
#include "reader/text.h"

bool rt_apps_listed(const struct rt_place *p, const struct rt_address *which)
{
	for (size_t i = 0; i < p->list->count; i++) {
		const struct rt_app *a = &p->list->apps[i];

		if (p->file.st_ino && a->dev == p->file.st_dev && a->ino == p->file.st_ino &&
			a->instance == which->instance && a->secondary == which->secondary)
			return true;
	}
	return false;
}

/* Any user may make a view in which another user's folder has another name: of an application, only
 * that of its own process counts. */
bool rt_apps_take(const struct rt_place *p, const struct rt_address *which, pid_t pid)
{
	struct rt_view v;

	return !p->view || (pid && !rt_apps_listed(p, which) && !rt_view_get(&v, pid) &&
				   rt_view_is_same(&v, p->view));
}

/* The folder's path in the view, without links: they lead within that. False: there is none. */
static bool find_plain(const struct rt_view *v, const char *folder, char *plain, size_t size)
{
	char root[64];
	int fd, ret;

	snprintf(root, sizeof(root), RT_VIEW_ROOT, (int)v->pid);
	fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return false;
	ret = rt_plain_in_root(fd, folder, plain, size);
	close(fd);
	return !ret;
}

/* Any process may have chosen it, and it may be printed to a terminal. */
static bool is_printable(const char *path)
{
	char shown[PATH_MAX];

	snprintf(shown, sizeof(shown), "%s", path);
	rt_copy_text(shown, shown, sizeof(shown));
	return !strcmp(shown, path);
}

/* "@ringtap.sock/PREFIX/PID" */
static int add_abstract(struct rt_place *p, const char *name)
{
	const char *prefix = name + sizeof(RT_ABSTRACT_PREFIX) - 1;
	const struct rt_address which = {.instance = 0};
	char dir[256], only[128];
	struct ucred peer;

	if (!is_printable(name) || rt_abstract_peer(p->view->pid, name, &peer) ||
		(geteuid() && peer.uid != geteuid()) || !rt_apps_wanted(p->list, peer.uid) ||
		rt_apps_is_foreign(peer.uid) != p->list->foreign ||
		!rt_apps_take(p, &which, peer.pid))
		return 0;
	snprintf(only, sizeof(only), "%.*s", (int)strcspn(prefix, "/"), prefix);
	snprintf(dir, sizeof(dir), "/proc/%d/net/%s", (int)peer.pid, name);
	p->prefix = only;
	p->dir = dir;
	p->folder.uid = peer.uid;
	if (!rt_apps_add(p, &which, peer.pid))
		return -ENOMEM;
	p->list->folder_count++;
	return 0;
}

static int add(void *arg, const struct rt_view *v, const char *folder)
{
	char plain[PATH_MAX], dir[PATH_MAX + 64] = "";
	struct rt_place p = {.list = arg, .view = v};
	int ret = rt_apps_time(p.list);

	if (ret)
		return ret;
	if (*folder == '@')
		return add_abstract(&p, folder);
	if (!find_plain(v, folder, plain, sizeof(plain)) || !strrchr(plain, '/') ||
		!is_printable(plain))
		return 0;
	if (!v->own)
		snprintf(dir, sizeof(dir), RT_VIEW_ROOT, (int)v->pid);
	strcat(dir, plain);
	p.path = plain;
	p.prefix = strrchr(plain, '/') + 1;
	p.dir = dir;
	return rt_apps_add_folder(&p);
}

int rt_apps_add_by_process(struct ringtap_apps *list)
{
	return rt_views_each(list->foreign, add, list);
}

static bool has_namesake(const struct ringtap_apps *list, size_t app)
{
	for (size_t i = 0; i < list->count; i++)
		if (i != app && !strcmp(list->apps[i].name, list->apps[app].name))
			return true;
	return false;
}

/* Applications in the folders of the caller keep their names. */
static bool needs_another_name(const struct ringtap_apps *list, size_t i)
{
	return list->apps[i].by_process && has_namesake(list, i);
}

int rt_apps_tell_apart(struct ringtap_apps *list)
{
	bool *needs = calloc(list->count, sizeof(*needs));
	int ret = needs ? 0 : -ENOMEM;

	for (size_t i = 0; !ret && i < list->count; i++)
		needs[i] = needs_another_name(list, i);
	for (size_t i = 0; !ret && i < list->count; i++) {
		struct rt_app *a = &list->apps[i];
		char *name;

		if (!needs[i])
			continue;
		if (asprintf(&name, "%s" RT_NAMESAKE "%d", a->name, (int)a->pid) < 0) {
			ret = -ENOMEM;
			break;
		}
		free(a->name);
		a->name = name;
	}
	free(needs);
	return ret;
}
