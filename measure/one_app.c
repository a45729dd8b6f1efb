/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "one_app.h"
#include "target/attach_app.h"
#include "target/probe_path.h"
#include "target/which_app.h"
#include "base/util.h"

/* The application becomes the one that the word means. */
static int take(struct one_app *a, const char *command, int app, const char *port, const char *word)
{
	const char *name = ringtap_apps_name(a->apps, (size_t)app);

	if (a->name && a->name != name)
		return message_fail(-EINVAL, "%s: %s and %s: give ports of one application only",
			command, a->name, name);
	if (!a->name && attach_missing(command, a->apps, (size_t)app, a->attach))
		return -ENOENT;
	if (port && a->port_count == ONE_APP_PORTS)
		return message_fail(-EINVAL, "%s: %s: too many ports; give at most %d", command,
			word, ONE_APP_PORTS);
	a->name = name;
	a->dir = ringtap_apps_dir(a->apps, (size_t)app);
	a->secondary = ringtap_apps_secondary(a->apps, (size_t)app);
	if (!port) {
		a->all = true;
		a->port_count = 0;
	} else if (!a->all) {
		a->ports[a->port_count++] = port;
	}
	return 0;
}

static int take_word(struct one_app *a, const char *command, const char *word)
{
	const char *port = word;
	int app, ret = 0;

	/* A port alone belongs to the application that was named before. */
	if (a->name && word[0] == ':' && word[1]) {
		app = target_app(a->apps, a->name, strlen(a->name), NULL);
		port = word + 1;
	} else {
		ret = target_find(command, a->apps, word, false, &app, &port);
	}
	return ret ? ret : take(a, command, app, port, word);
}

int one_app_words(struct one_app_words *w, const char *command, const char *word)
{
	if (!*word || w->count == ONE_APP_PORTS)
		return message_fail(-EINVAL, "%s: '%s': empty, or one too many; see 'ringtap list'",
			command, word);
	w->list[w->count++] = word;
	return 0;
}

int one_app_resolve(struct one_app *a, const char *command, const struct one_app_words *words)
{
	char todo[PATH_MAX + 32];
	int ret, app;
	const char *port;

	*a = (struct one_app){.attach = a->attach};
	ret = ringtap_apps_find(&a->apps);
	if (ret)
		return message_fail(
			ret, "%s: cannot find applications: %s", command, strerror(-ret));
	if (!ringtap_apps_count(a->apps)) {
		snprintf(todo, sizeof(todo), "start it with -d %s, and ", probe_path());
		return print_no_apps(command, a->apps, todo);
	}
	for (unsigned i = 0; i < words->count && !ret; i++)
		ret = take_word(a, command, words->list[i]);
	if (words->count || ret)
		return ret;
	ret = target_find(command, a->apps, NULL, false, &app, &port);
	return ret ? ret : take(a, command, app, NULL, "");
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
