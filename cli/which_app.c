/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"
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

bool target_port_matches(const char *name, const char *device, uint32_t id, const char *port)
{
	char number[12];

	snprintf(number, sizeof(number), "%u", id);
	return !strcmp(name, port) || !strcmp(device, port) || !strcmp(number, port);
}

struct ringtap_list *target_ports(const char *dir)
{
	struct ringtap_list *list = NULL;
	struct ringtap_conn *conn;

	if (ringtap_conn_open(&conn, dir, NULL, NULL, 0))
		return NULL;
	if (ringtap_conn_list(conn, &list))
		list = NULL;
	ringtap_conn_close(conn);
	return list;
}

bool target_has_port(const struct ringtap_list *list, const char *port)
{
	for (size_t i = 0; i < list->port_count; i++) {
		const struct ringtap_port_info *p = ringtap_list_port(list, i);

		if (target_port_matches(p->name, p->device, p->port_id, port))
			return true;
	}
	return false;
}

/* Whether an application carries the probe and, if port is not NULL, has that port. */
static bool app_has(const char *dir, const char *port)
{
	struct ringtap_list *list = target_ports(dir);
	bool found = list && (!port || target_has_port(list, port));

	ringtap_list_free(list);
	return found;
}

static void print_app_names(
	const char *command, const char *port, const char *const *names, size_t count)
{
	char list[512] = "";

	for (size_t i = 0; i < count; i++)
		text_list_add(list, sizeof(list), names[i]);
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

void print_no_port(
	const char *command, const char *app, const char *port, const struct ringtap_list *list)
{
	char ports[1024] = "";

	for (size_t i = 0; list && i < list->port_count; i++)
		text_list_add(ports, sizeof(ports), ringtap_list_port(list, i)->name);
	if (list)
		message_print("%s: application '%s' has no port '%s'; there is %s", command, app,
			port, *ports ? ports : "none");
	else
		message_print(
			"%s: application '%s' has no port '%s'; 'ringtap list' shows what there is",
			command, app, port);
}

/* NULL: the reason says it already. */
static const char *advice(int error)
{
	switch (error) {
	case -EHOSTDOWN:
	case -EUNATCH: return NULL;
	case -EACCES: return "run ringtap as the application's user or as root";
	case -ENOMEM: return "try a smaller --buffer";
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
			"%s: cannot attach to '%s': it runs without the probe; 'ringtap attach %s' "
			"loads it",
			command, app, app);
	else
		message_print("%s: cannot attach to '%s': %s%s%s", command, app, why,
			then ? "; " : "", then ? then : "");
}
