/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attach_app.h"
#include "interfaces.h"
#include "probe_path.h"
#include "targets.h"
#include "base/util.h"
#include "common/array.h"
#include "which_app.h"

/* The target of an application, made at its first mention. */
static struct target *target_of(struct targets *t, const char *name, const char *dir)
{
	struct target *new;

	for (unsigned i = 0; i < t->count; i++)
		if (t->list[i].dir == dir)
			return &t->list[i];
	new = rt_array_add(t->list, t->count);
	if (!new)
		return NULL;
	new->name = name;
	new->dir = dir;
	return new;
}

/* The first target that matches a port applies to it: a later one would silently have no effect. */
static int check_shadowed(
	const char *command, const struct target *t, const char *port, const char *spec)
{
	for (unsigned i = 0; i < t->port_count; i++) {
		const char *other = t->ports[i].port;

		if (other && (!port || strcmp(port, other)))
			continue;
		return message_fail(-EINVAL,
			"%s: %s: a target before it covers the same port; leave one out", command,
			spec ? spec : t->name);
	}
	return 0;
}

static int add_want(
	const char *command, struct target *t, const struct iface_config *i, const char *port)
{
	if (check_shadowed(command, t, port, i->spec))
		return -EINVAL;
	if (port && strlen(port) >= RINGTAP_NAME_LEN)
		return message_fail(-EINVAL,
			"%s: %s: longer than any port's name; see 'ringtap list'", command,
			i->spec);
	t->ifaces[t->port_count] = i;
	t->ports[t->port_count++] = (struct ringtap_target){.port = port,
		.queue = i->queue,
		.directions = i->directions,
		.snaplen = i->snaplen,
		.filter = i->compiled.insns,
		.filter_len = i->compiled.len};
	return 0;
}

static int resolve_one(
	struct targets *t, const struct capture_config *cfg, const struct iface_config *i)
{
	struct target *target;
	const char *port;
	int app;

	if (target_find(cfg->command, t->apps, i->spec, i->port_alone, &app, &port) ||
		attach_missing(cfg->command, t->apps, (size_t)app, cfg->attach))
		return -ENOENT;
	target = target_of(
		t, ringtap_apps_name(t->apps, (size_t)app), ringtap_apps_dir(t->apps, (size_t)app));
	if (!target)
		return -ENOMEM;
	target->secondary = ringtap_apps_secondary(t->apps, (size_t)app);
	return add_want(cfg->command, target, i, port);
}

/* The application's place in the list. */
static size_t index_of(const struct targets *t, const char *dir)
{
	size_t i = 0;

	while (ringtap_apps_dir(t->apps, i) != dir)
		i++;
	return i;
}

static bool is_target(const struct targets *t, const char *dir)
{
	for (unsigned i = 0; i < t->count; i++)
		if (t->list[i].dir == dir)
			return true;
	return false;
}

/* The targets of its primary, as far as it has them. */
static int imply(struct targets *t, unsigned primary, size_t app, const struct ringtap_list *ports)
{
	struct target *new =
		target_of(t, ringtap_apps_name(t->apps, app), ringtap_apps_dir(t->apps, app));
	const struct target *like = &t->list[primary];

	if (!new)
		return -ENOMEM;
	new->secondary = new->implied = true;
	for (unsigned i = 0; i < like->port_count; i++) {
		if (like->ports[i].port && !target_has_port(ports, like->ports[i].port))
			continue;
		new->ports[new->port_count] = like->ports[i];
		new->ifaces[new->port_count++] = like->ifaces[i];
	}
	if (!new->port_count)
		t->count--;
	return 0;
}

static int imply_secondary(
	struct targets *t, const struct capture_config *cfg, unsigned primary, size_t app)
{
	const char *name = ringtap_apps_name(t->apps, app);
	struct app_view v;
	int ret = 0;

	if (is_target(t, ringtap_apps_dir(t->apps, app)) ||
		attach_missing(cfg->command, t->apps, app, cfg->attach))
		return 0;
	app_view_get(&v, t->apps, app, 0, NULL);
	if (!v.error)
		ret = imply(t, primary, app, v.list);
	else if (v.error == -EPROTONOSUPPORT)
		message_print("%s: secondary process '%s' runs without the probe: its packets are "
			      "not captured; 'ringtap attach %s' loads it",
			cfg->command, name, name);
	else if (v.error != -ENOENT) /* it has ended */
		message_print("%s: packets of the secondary process '%s' are not captured: %s",
			cfg->command, name, v.why);
	app_view_free(&v);
	return ret;
}

/* Secondary processes of those that are named. They come last. */
static int imply_secondaries(struct targets *t, const struct capture_config *cfg)
{
	int ret = 0;

	t->named = t->count;
	for (unsigned k = 0; k < t->named; k++) {
		size_t primary = index_of(t, t->list[k].dir);

		for (size_t i = 0; i < ringtap_apps_count(t->apps) && !ret; i++)
			if (i != primary && ringtap_apps_primary(t->apps, i) == primary)
				ret = imply_secondary(t, cfg, k, i);
	}
	return ret;
}

int targets_resolve(struct targets *t, const struct capture_config *cfg)
{
	char todo[PATH_MAX + 32];
	int ret;

	*t = (struct targets){0};
	ret = ringtap_apps_find(&t->apps);
	if (ret)
		return message_fail(
			ret, "%s: looking for applications: %s", cfg->command, strerror(-ret));
	if (!ringtap_apps_count(t->apps)) {
		snprintf(todo, sizeof(todo), "start it with -d %s, and ", probe_path());
		return print_no_apps(cfg->command, t->apps, todo);
	}
	for (unsigned i = 0; i < cfg->iface_count && !ret; i++)
		ret = resolve_one(t, cfg, &cfg->ifaces[i]);
	if (!ret)
		ret = imply_secondaries(t, cfg);
	return ret ? ret : targets_add_links(t, cfg);
}

void targets_free(struct targets *t)
{
	ringtap_apps_free(t->apps);
	for (unsigned i = 0; i < t->count; i++)
		target_free_filters(&t->list[i]);
	free(t->list);
}
