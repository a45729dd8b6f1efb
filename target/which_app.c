/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/nearest.h"
#include "base/util.h"
#include "common/in_root.h"
#include "hidden_vhost.h"
#include "inject/processes.h"
#include "which_app.h"

void target_split(
	const char *spec, const char *const *apps, size_t count, int *app, const char **port)
{
	size_t len = SIZE_MAX;

	*app = -1;
	*port = spec;
	for (size_t i = 0; spec && i < count; i++) {
		size_t n = strlen(apps[i]);

		if (n >= len || strncmp(apps[i], spec, n) || (spec[n] && spec[n] != ':'))
			continue;
		len = n;
		*app = (int)i;
		*port = spec[n] && spec[n + 1] ? spec + n + 1 : NULL;
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

/* Secondary processes are meant where they are named only. */
static bool is_candidate(const struct ringtap_apps *apps, size_t i)
{
	return ringtap_apps_primary(apps, i) == i;
}

static void print_app_names(const char *command, const char *port, const struct ringtap_apps *apps)
{
	const char *first = NULL;
	char list[512] = "";

	for (size_t i = 0; i < ringtap_apps_count(apps); i++) {
		if (!is_candidate(apps, i))
			continue;
		text_list_add(list, sizeof(list), ringtap_apps_name(apps, i));
		first = first ? first : ringtap_apps_name(apps, i);
	}
	message_print(
		"%s: there are several applications (%s); name one, as in 'ringtap %s %s%s%s'",
		command, list, command, first, port ? ":" : "", port ? port : "");
}

/* Several applications may have the name that a word begins with, up to its end or a colon: theirs
 * is "NAME~PID". False: none has. */
static bool print_namesakes(const char *command, const struct ringtap_apps *apps, const char *word)
{
	size_t len = strcspn(word, ":");
	char list[512] = "";

	for (size_t i = 0; i < ringtap_apps_count(apps); i++) {
		const char *name = ringtap_apps_name(apps, i);

		if (!strncmp(name, word, len) && name[len] == '~')
			text_list_add(list, sizeof(list), name);
	}
	if (*list)
		message_print(
			"%s: '%.*s' may be several applications (%s); name one by its process id",
			command, (int)len, word, list);
	return *list;
}

struct offer {
	struct nearest *n;
	const struct ringtap_apps *apps;
};

/* The programs of the applications are words, too. */
static bool offer_program(uint32_t pid, const char *program, void *arg)
{
	const struct offer *o = arg;

	for (size_t i = 0; i < ringtap_apps_count(o->apps); i++)
		if (ringtap_apps_pid(o->apps, i) == pid)
			nearest_offer(o->n, program, strlen(program));
	return true;
}

const char *target_advice(struct nearest *n, const struct ringtap_apps *apps, const char *word)
{
	nearest_begin(n, word, strcspn(word, ":"));
	for (size_t i = 0; i < ringtap_apps_count(apps); i++) {
		const char *name = ringtap_apps_name(apps, i);

		nearest_offer(n, name, strlen(name));
	}
	rt_processes_each(offer_program, &(struct offer){n, apps});
	return nearest_advice(n, "'ringtap list' shows what there is");
}

static int by_name(const struct ringtap_apps *apps, const char *word)
{
	uint64_t pid;
	bool number = !parse_number(word, INT32_MAX, &pid) && pid;

	for (size_t i = 0; i < ringtap_apps_count(apps); i++)
		if (!strcmp(ringtap_apps_name(apps, i), word) ||
			(number && ringtap_apps_pid(apps, i) == pid))
			return (int)i;
	return -ENOENT;
}

/* Where the name of the application ends, which may have colons, as those of ports. The shortest is
 * meant: an application of another user that is called "my-app:0" does not get in the way. */
static size_t name_len(const struct ringtap_apps *apps, const char *text)
{
	size_t first = strcspn(text, ":");
	char name[256];

	for (size_t len = first; len < sizeof(name); len += 1 + strcspn(text + len + 1, ":")) {
		snprintf(name, sizeof(name), "%.*s", (int)len, text);
		if (by_name(apps, name) >= 0)
			return len;
		if (!text[len])
			break;
	}
	return first;
}

static bool runs(const struct ringtap_apps *apps, size_t i, const char *program)
{
	size_t primary = ringtap_apps_primary(apps, i);

	return rt_process_runs(ringtap_apps_pid(apps, i), program) &&
	       (primary == i || !rt_process_runs(ringtap_apps_pid(apps, primary), program));
}

int target_app(const struct ringtap_apps *apps, const char *word, size_t len,
	struct target_candidates *others)
{
	struct target_candidates own, *c = others ? others : &own;
	char text[256], one[320];
	int found;

	*c = (struct target_candidates){0};
	if (!len || len >= sizeof(text))
		return -ENOENT;
	snprintf(text, sizeof(text), "%.*s", (int)len, word);
	found = by_name(apps, text);
	if (found >= 0)
		return found;
	for (size_t i = 0; i < ringtap_apps_count(apps); i++) {
		if (!runs(apps, i, text))
			continue;
		snprintf(one, sizeof(one), "%s (pid %u)", ringtap_apps_name(apps, i),
			ringtap_apps_pid(apps, i));
		text_list_add(c->names, sizeof(c->names), one);
		found = c->count++ ? -ENOTUNIQ : (int)i;
	}
	return found;
}

int target_word(const struct ringtap_apps *apps, const char *word, const char **port,
	struct target_candidates *others)
{
	size_t len = name_len(apps, word);
	int only = -ENOENT;

	*port = word[len] && word[len + 1] ? word + len + 1 : NULL;
	if (len)
		return target_app(apps, word, len, others);
	for (size_t i = 0; *word && i < ringtap_apps_count(apps); i++)
		if (is_candidate(apps, i))
			only = only == -ENOENT ? (int)i : -ENOTUNIQ;
	return only;
}

void print_no_app(const char *command, const struct ringtap_apps *apps, const char *word, int error,
	const struct target_candidates *others)
{
	int len = (int)strcspn(word, ":");
	struct nearest near;

	if (error == -ENOTUNIQ)
		message_print("%s: several applications run '%.*s' (%s); name one by its name or "
			      "process id",
			command, len, word, others->names);
	else if (!print_namesakes(command, apps, word))
		message_print("%s: no application is called '%s'; %s", command, word,
			target_advice(&near, apps, word));
}

int print_no_apps(const char *command, const struct ringtap_apps *apps, const char *todo)
{
	size_t n = ringtap_apps_notes(apps);

	return message_fail(-ENOENT,
		"%s: no running DPDK application found%s%s%s%s; %srun ringtap as its user or as root",
		command, n ? " (skipped " : "", n ? ringtap_apps_note(apps, 0) : "",
		n > 1 ? ", and others" : "", n ? ")" : "", todo);
}

/* No port and no application has the name. */
static void print_unknown(const char *command, const struct ringtap_apps *apps, const char *port)
{
	struct nearest n;

	if (print_namesakes(command, apps, port))
		return;
	/* "APP:" means all of its ports. */
	message_print("%s: no port or application is called '%.*s'; %s", command,
		(int)(strlen(port) - (strlen(port) && port[strlen(port) - 1] == ':')), port,
		target_advice(&n, apps, port));
}

static int only_one(
	const char *command, const struct ringtap_apps *apps, size_t one, const char *port)
{
	const char *dir = ringtap_apps_dir(apps, one);

	/* The error of attaching would name this application, although APP:PORT may name another
	 * one. */
	if (!port || !strchr(port, ':') || app_has(dir, port) || !app_has(dir, NULL))
		return (int)one;
	print_unknown(command, apps, port);
	return -ENOENT;
}

/* The application that is meant where none is named: the one that has such a port (NULL: the
 * probe). -ENOENT after printing why there is none. */
static int only_app(const char *command, const struct ringtap_apps *apps, const char *port)
{
	size_t count = 0, last = 0;
	int found = -ENOENT;
	unsigned having = 0;

	for (size_t i = 0; i < ringtap_apps_count(apps); i++) {
		if (!is_candidate(apps, i))
			continue;
		count++;
		last = i;
	}
	if (count == 1)
		return only_one(command, apps, last, port);
	for (size_t i = 0; i < ringtap_apps_count(apps); i++) {
		if (is_candidate(apps, i) && app_has(ringtap_apps_dir(apps, i), port)) {
			found = (int)i;
			having++;
		}
	}
	if (having == 1)
		return found;
	if (having || !port)
		print_app_names(command, port, apps);
	else
		print_unknown(command, apps, port);
	return -ENOENT;
}

int target_find(const char *command, const struct ringtap_apps *apps, const char *text,
	bool port_alone, int *app, const char **port)
{
	size_t len = text ? name_len(apps, text) : 0;
	struct target_candidates others;

	*app = text ? target_app(apps, text, len, &others) : -ENOENT;
	*port = text && text[len] && text[len + 1] ? text + len + 1 : NULL;
	if (*app >= 0)
		return 0;
	if (len && (*app == -ENOTUNIQ || (!text[len] && !port_alone))) {
		print_no_app(command, apps, text, *app, &others);
		return -ENOENT;
	}
	*port = len ? text : *port;
	*app = only_app(command, apps, *port);
	return *app < 0 ? -ENOENT : 0;
}

uint32_t target_pid(const struct ringtap_apps *apps, const char *dir)
{
	for (size_t i = 0; i < ringtap_apps_count(apps); i++)
		if (ringtap_apps_dir(apps, i) == dir)
			return ringtap_apps_pid(apps, i);
	return 0;
}

void print_no_port(const char *command, const char *app, uint32_t pid, const char *port,
	const struct ringtap_list *list)
{
	char ports[1024] = "", there[1040];
	const char *hidden = hidden_vhost(pid, list);
	struct nearest n;

	nearest_begin(&n, port, strlen(port));
	for (size_t i = 0; list && i < list->port_count; i++) {
		const char *name = ringtap_list_port(list, i)->name;

		text_list_add(ports, sizeof(ports), name);
		nearest_offer(&n, name, strlen(name));
	}
	snprintf(there, sizeof(there), "there is %s", *ports ? ports : "none");
	/* As Open vSwitch's internal and tap ports are. */
	if (if_nametoindex(port))
		message_print("%s: application '%s' has no port '%s', which is an interface of the "
			      "kernel; 'ringtap host %s' captures on it",
			command, app, port, port);
	else if (list)
		message_print("%s: application '%s' has no port '%s'; %s%s%s", command, app, port,
			nearest_advice(&n, there), hidden ? "; " : "", hidden ? hidden : "");
	else
		message_print(
			"%s: application '%s' has no port '%s'; 'ringtap list' shows what there is",
			command, app, port);
}

/* Opens a path of a container, /proc/PID/root/..., without links: they would lead out of it. */
static int open_there(const char *path, int flags)
{
	int pid, end = 0, root, fd;
	char top[64];

	if (sscanf(path, "/proc/%d/root%n", &pid, &end) != 1 || !end || path[end] != '/') {
		fd = open(path, flags | O_CLOEXEC);
		return fd < 0 ? -errno : fd;
	}
	snprintf(top, sizeof(top), "/proc/%d/root", pid);
	root = open(top, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return -errno;
	fd = rt_open_plain(root, path + end, flags);
	close(root);
	return fd;
}

int address_open(const char *dir, int flags)
{
	char path[PATH_MAX], *mark;
	int fd;

	if (snprintf(path, sizeof(path), "%s", dir) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	fd = open_there(path, flags);
	mark = fd < 0 ? strrchr(path, '#') : NULL;
	if (mark) {
		*mark = 0;
		fd = open_there(path, flags);
	}
	mark = fd < 0 ? strrchr(path, '/') : NULL;
	if (mark && mark[1] && !mark[1 + strspn(mark + 1, "0123456789")]) {
		*mark = 0;
		fd = open_there(path, flags);
	}
	return fd;
}

int address_stat(const char *dir, struct stat *st)
{
	int fd = address_open(dir, O_PATH), ret;

	if (fd < 0)
		return fd;
	ret = fstat(fd, st) ? -errno : 0;
	close(fd);
	return ret;
}

/* NULL: the reason is enough. */
static const char *advice(int error)
{
	switch (error) {
	case -ECANCELED:
	case -EHOSTDOWN:
	case -ENOTSUP:
	case -EUNATCH: return NULL;
	case -EACCES: return "run ringtap as the application's user or as root";
	case -EAGAIN: return "try again in a moment";
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
