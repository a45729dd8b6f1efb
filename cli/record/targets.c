/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/probe_path.h"
#include "targets.h"
#include "base/util.h"

void target_split(
	const char *spec, const char *const *apps, size_t count, int *app, const char **port)
{
	size_t len = spec ? strcspn(spec, ":") : 0;

	*app = -1;
	*port = spec;
	for (size_t i = 0; spec && i < count; i++) {
		if (strlen(apps[i]) == len && !memcmp(apps[i], spec, len)) {
			*app = (int)i;
			*port = spec[len] && spec[len + 1] ? spec + len + 1 : NULL;
			return;
		}
	}
}

bool target_port_matches(const struct ringtap_port_info *p, const char *port)
{
	char number[8];

	snprintf(number, sizeof(number), "%u", p->port_id);
	return !strcmp(p->name, port) || !strcmp(p->device, port) || !strcmp(number, port);
}

/* Whether an application carries the probe and, if port is not NULL, has that port. */
static bool app_has(const char *dir, const char *port)
{
	struct ringtap_port_info *ports = NULL;
	struct ringtap_session_info *sessions = NULL;
	size_t port_count = 0, session_count = 0;
	struct ringtap_conn *conn;
	char err[256];
	bool found = !port;

	if (ringtap_conn_open(&conn, dir, err, sizeof(err)))
		return false;
	if (port && !ringtap_conn_list(conn, &ports, &port_count, &sessions, &session_count))
		for (size_t i = 0; i < port_count; i++)
			found = found || target_port_matches(&ports[i], port);
	free(ports);
	free(sessions);
	ringtap_conn_close(conn);
	return found;
}

static void say_names(const char *command, const char *what, const char *const *names, size_t count)
{
	char list[512] = "";
	size_t at = 0;

	for (size_t i = 0; i < count && at < sizeof(list); i++)
		at += (size_t)snprintf(
			list + at, sizeof(list) - at, "%s%s", i ? ", " : "", names[i]);
	say("%s: %s: there are several applications (%s); name one, as in %s %s", command, what,
		list, strcmp(command, "record") ? command : "-i", names[0]);
}

int targets_only_app(const char *command, const struct ringtap_apps *apps, const char *const *names,
	const char *port)
{
	size_t count = ringtap_apps_count(apps);
	int found = -1;
	unsigned having = 0;

	if (count == 1)
		return 0;
	for (size_t i = 0; i < count; i++) {
		if (app_has(ringtap_apps_dir(apps, i), port)) {
			found = (int)i;
			having++;
		}
	}
	if (having == 1)
		return found;
	if (having || !port)
		say_names(command, port ? port : "no -i given", names, count);
	else
		say("%s: -i %s: no application has such a port, and none is called so; see "
		    "'ringtap record -D'",
			command, port);
	return -1;
}

/* The target of an application, made at its first mention. */
static struct target *target_of(struct targets *t, const char *name, const char *dir)
{
	struct target *list;

	for (unsigned i = 0; i < t->count; i++)
		if (t->list[i].dir == dir)
			return &t->list[i];
	list = realloc(t->list, (t->count + 1) * sizeof(*list));
	if (!list)
		return NULL;
	t->list = list;
	list[t->count] = (struct target){.name = name, .dir = dir};
	return &list[t->count++];
}

/* The first want that matches a port decides for it: one behind it would silently do nothing. */
static int check_shadowed(const struct target *t, const char *port, const char *spec)
{
	for (unsigned i = 0; i < t->want_count; i++) {
		const char *other = t->wants[i].port;

		if (other && (!port || strcmp(port, other)))
			continue;
		say("record: -i %s: an -i before it covers the same port; leave one out",
			spec ? spec : t->name);
		return -EINVAL;
	}
	return 0;
}

static int add_want(struct target *t, const struct iface_config *i, const char *port)
{
	if (check_shadowed(t, port, i->spec))
		return -EINVAL;
	if (port && strlen(port) >= RINGTAP_NAME_LEN) {
		say("record: -i %s: longer than any port's name; see 'ringtap record -D'", i->spec);
		return -EINVAL;
	}
	t->ifaces[t->want_count] = i;
	t->wants[t->want_count++] = (struct ringtap_want){.port = port,
		.queue = i->queue,
		.directions = i->directions,
		.snaplen = i->snaplen,
		.filter = i->compiled.insns,
		.filter_len = i->compiled.len};
	return 0;
}

static int resolve_one(struct targets *t, const struct iface_config *i, const char *const *names)
{
	struct target *target;
	const char *port;
	int app;

	target_split(i->spec, names, ringtap_apps_count(t->apps), &app, &port);
	if (app < 0)
		app = targets_only_app("record", t->apps, names, port);
	if (app < 0)
		return -ENOENT;
	target = target_of(t, names[app], ringtap_apps_dir(t->apps, (size_t)app));
	return target ? add_want(target, i, port) : -ENOMEM;
}

int targets_resolve(struct targets *t, const struct record_config *cfg)
{
	const char **names;
	size_t count;
	int ret;

	*t = (struct targets){0};
	ret = ringtap_apps_find(&t->apps);
	if (ret) {
		say("record: looking for applications: %s", strerror(-ret));
		return ret;
	}
	count = ringtap_apps_count(t->apps);
	if (!count) {
		say("record: no running DPDK application found; start it with -d %s, and run "
		    "ringtap "
		    "as its user or as root",
			probe_path());
		return -ENOENT;
	}
	names = calloc(count, sizeof(*names));
	if (!names)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		names[i] = ringtap_apps_name(t->apps, i);
	for (unsigned i = 0; i < cfg->iface_count && !ret; i++)
		ret = resolve_one(t, &cfg->ifaces[i], names);
	free(names);
	return ret;
}

void targets_free(struct targets *t)
{
	ringtap_apps_free(t->apps);
	free(t->list);
}
