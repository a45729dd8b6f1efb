/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "one_app.h"
#include "target/attach_app.h"
#include "target/probe_path.h"
#include "target/which_app.h"
#include "base/util.h"

static int index_of(const char *name, const struct ringtap_apps *apps, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (attach_is_meant(apps, i, name))
			return (int)i;
	return -1;
}

/* The application becomes the one that the spec means. */
static int take(
	struct one_app *a, const char *command, int app, const char *const *names, const char *port)
{
	if (app < 0)
		app = targets_only_app(command, a->apps, names, port);
	if (app < 0)
		return -ENOENT;
	if (a->name && a->name != ringtap_apps_name(a->apps, (size_t)app)) {
		message_print("%s: %s and %s: give ports of one application only", command, a->name,
			names[app]);
		return -EINVAL;
	}
	if (!a->name && attach_missing(command, a->apps, (size_t)app, a->attach))
		return -ENOENT;
	if (port && a->port_count == ONE_APP_PORTS) {
		message_print(
			"%s: -i %s: too many ports; give at most %d", command, port, ONE_APP_PORTS);
		return -EINVAL;
	}
	a->name = ringtap_apps_name(a->apps, (size_t)app);
	a->dir = ringtap_apps_dir(a->apps, (size_t)app);
	a->secondary = ringtap_apps_secondary(a->apps, (size_t)app);
	if (port && !a->all)
		a->ports[a->port_count++] = port;
	return 0;
}

static int take_all(struct one_app *a, const char *command, const char *name,
	const char *const *specs, unsigned count, const char *const *names, size_t name_count)
{
	const char *port = NULL;
	struct nearest near;
	int app = -1, ret = 0;

	if (name) {
		app = index_of(name, a->apps, name_count);
		if (app < 0)
			target_split(name, names, name_count, &app, &port);
		if (app < 0)
			attach_split_pid(a->apps, name, &app, &port);
		if (app < 0 && !strchr(name, ':')) {
			if (!print_namesakes(command, a->apps, name))
				message_print("%s: no application is called '%s'; %s", command,
					name, app_advice(&near, a->apps, name));
			return -ENOENT;
		}
		ret = take(a, command, app, names, port);
	}
	for (unsigned i = 0; i < count && !ret; i++) {
		target_split(specs[i], names, name_count, &app, &port);
		if (app < 0)
			attach_split_pid(a->apps, specs[i], &app, &port);
		/* A port alone belongs to the application that was named before. */
		if (app < 0 && a->name)
			app = index_of(a->name, a->apps, name_count);
		if (!port) {
			a->all = true;
			a->port_count = 0;
		}
		ret = take(a, command, app, names, port);
	}
	if (!name && !count)
		ret = take(a, command, -1, names, NULL);
	return ret;
}

int one_app_resolve(struct one_app *a, const char *command, const char *name,
	const char *const *specs, unsigned count)
{
	const char **names;
	size_t n;
	int ret;

	*a = (struct one_app){.attach = a->attach};
	ret = ringtap_apps_find(&a->apps);
	if (ret) {
		message_print("%s: cannot find applications: %s", command, strerror(-ret));
		return ret;
	}
	n = ringtap_apps_count(a->apps);
	if (!n) {
		message_print(
			"%s: no running DPDK application found; start it with -d %s, and run ringtap "
			"as its user or as root",
			command, probe_path());
		return -ENOENT;
	}
	names = calloc(n, sizeof(*names));
	if (!names)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		names[i] = ringtap_apps_name(a->apps, i);
	ret = take_all(a, command, name, specs, count, names, n);
	free(names);
	return ret;
}

void one_app_free(struct one_app *a)
{
	ringtap_apps_free(a->apps);
}

static bool matches(const struct ringtap_port_stats *p, const char *port)
{
	return target_port_matches(p->name, p->device, p->port_id, port);
}

bool one_app_includes(const struct one_app *a, const struct ringtap_snapshot *f, uint32_t port)
{
	for (unsigned i = 0; i < a->port_count && port != RINGTAP_NO_INDEX; i++)
		if (matches(ringtap_snapshot_port(f, port), a->ports[i]))
			return true;
	return !a->port_count;
}

const char *one_app_missing(const struct one_app *a, const struct ringtap_snapshot *f)
{
	for (unsigned i = 0; i < a->port_count; i++) {
		bool found = false;

		for (uint32_t p = 0; p < f->port_count && !found; p++)
			found = !ringtap_snapshot_port(f, p)->gone &&
				matches(ringtap_snapshot_port(f, p), a->ports[i]);
		if (!found)
			return a->ports[i];
	}
	return NULL;
}
