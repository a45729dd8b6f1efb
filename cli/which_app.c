/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "probe_path.h"
#include "which_app.h"

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
	struct ringtap_list *list = NULL;
	struct ringtap_conn *conn;
	char err[256];
	bool found = !port;

	if (ringtap_conn_open(&conn, dir, NULL, err, sizeof(err)))
		return false;
	if (port && !ringtap_conn_list(conn, &list))
		for (size_t i = 0; i < list->port_count; i++)
			found = found || target_port_matches(ringtap_list_port(list, i), port);
	ringtap_list_free(list);
	ringtap_conn_close(conn);
	return found;
}

static void print_app_names(
	const char *command, const char *port, const char *const *names, size_t count)
{
	char list[512] = "";
	size_t at = 0;

	for (size_t i = 0; i < count && at < sizeof(list); i++)
		at += (size_t)snprintf(
			list + at, sizeof(list) - at, "%s%s", i ? ", " : "", names[i]);
	message_print(
		"%s: there are several applications (%s); name one, as in 'ringtap %s%s %s%s%s'",
		command, list, command, strcmp(command, "record") ? "" : " -i", names[0],
		port ? ":" : "", port ? port : "");
}

static void print_unknown(const char *command, const char *port)
{
	message_print(
		"%s: no port or application is called '%s'; 'ringtap list' shows what there is",
		command, port);
}

int targets_only_app(const char *command, const struct ringtap_apps *apps, const char *const *names,
	const char *port)
{
	size_t count = ringtap_apps_count(apps);
	int found = -1;
	unsigned having = 0;

	if (count == 1) {
		const char *dir = ringtap_apps_dir(apps, 0);

		/* The error of attaching would name this application, although APP:PORT may name
		 * another one. */
		if (!port || !strchr(port, ':') || app_has(dir, port) || !app_has(dir, NULL))
			return 0;
		print_unknown(command, port);
		return -1;
	}
	for (size_t i = 0; i < count; i++) {
		if (app_has(ringtap_apps_dir(apps, i), port)) {
			found = (int)i;
			having++;
		}
	}
	if (having == 1)
		return found;
	if (having || !port)
		print_app_names(command, port, names, count);
	else
		print_unknown(command, port);
	return -1;
}

/* NULL: the reason is sufficient. */
static const char *advice(int error)
{
	switch (error) {
	case -EHOSTDOWN: return NULL;
	case -EACCES: return "run ringtap as the application's user or as root";
	case -ENOMEM: return "try a smaller --ring-size";
	case -EPROTOTYPE: return "use the ringtap that the probe came with";
	default: return "see 'ringtap list'";
	}
}

void print_not_attached(const char *command, const char *app, int error, const char *why)
{
	const char *then = advice(error);

	if (!why || !*why)
		why = strerror(-error);
	if (error == -EPROTONOSUPPORT)
		message_print(
			"%s: cannot attach to '%s': it runs without the probe; restart it with -d %s",
			command, app, probe_path());
	else
		message_print("%s: cannot attach to '%s': %s%s%s", command, app, why,
			then ? "; " : "", then ? then : "");
}
