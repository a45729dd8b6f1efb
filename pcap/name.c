/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of ports: ringtap:APP:PORT, several joined by +, and aliases. */
#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "common/alias.h"
#include "handle.h"

#define TARGETS_MAX 64 /* ports of one application, as many as a request takes */

struct target {
	size_t app; /* index in the list of applications */
	struct ringtap_target targets[TARGETS_MAX];
	size_t count;
};

struct targets {
	struct ringtap_apps *apps;
	struct target *list;
	size_t count;
};

bool name_is_ours(const char *device)
{
	size_t app;
	int port;

	if (!device)
		return false;
	if (!strncmp(device, NAME_PREFIX, sizeof(NAME_PREFIX) - 1))
		return true;
	return rt_alias_parse(device, &app, &port) && !if_nametoindex(device);
}

/* The application that text begins with, up to its end or a colon; its name, of *len bytes, may
 * have colons. The shortest is meant. */
static bool find_app(const struct ringtap_apps *apps, const char *text, size_t *len, size_t *app)
{
	*len = SIZE_MAX;
	for (size_t i = 0; i < ringtap_apps_count(apps); i++) {
		size_t n = strlen(ringtap_apps_name(apps, i));

		if (n >= *len || strncmp(ringtap_apps_name(apps, i), text, n) ||
			(text[n] && text[n] != ':'))
			continue;
		*len = n;
		*app = i;
	}
	return *len < SIZE_MAX;
}

static int no_such_app(struct handle *h, const struct ringtap_apps *apps, const char *name)
{
	char names[128] = "";
	size_t at = 0;

	for (size_t i = 0; i < ringtap_apps_count(apps) && at < sizeof(names); i++)
		at += (size_t)snprintf(names + at, sizeof(names) - at, "%s%s", i ? ", " : "",
			ringtap_apps_name(apps, i));
	return handle_fail(h, PCAP_ERROR_NO_SUCH_DEVICE,
		"no DPDK application '%.*s' is running; there is %s", (int)strcspn(name, ":"), name,
		names[0] ? names : "none");
}

static struct target *target_of(struct targets *t, size_t app)
{
	struct target *new;

	for (size_t i = 0; i < t->count; i++) {
		if (t->list[i].app == app)
			return &t->list[i];
	}
	new = rt_array_add(t->list, t->count);
	if (new)
		new->app = app;
	return new;
}

/* Adds one item between +: APP:PORT, APP: or APP for all of its ports, or a PORT of the previous
 * application. Names of ports can contain colons, too. */
static int add_item(
	struct handle *h, struct targets *t, char *item, const struct ringtap_target *model)
{
	bool first = !t->count;
	size_t len, app;
	const char *port = item;
	struct target *target;
	bool named;

	if (!first && !*item)
		return handle_fail(h, PCAP_ERROR_NO_SUCH_DEVICE, "a port is missing after a +");
	named = find_app(t->apps, item, &len, &app);
	if (named && (first || item[len]))
		port = item + len + (item[len] == ':');
	else if (first)
		return no_such_app(h, t->apps, item);
	else
		app = t->list[t->count - 1].app;
	target = target_of(t, app);
	if (!target)
		return handle_fail(h, PCAP_ERROR, "malloc: %s", strerror(ENOMEM));
	if (target->count == TARGETS_MAX)
		return handle_fail(
			h, PCAP_ERROR, "more than %d ports of one application", TARGETS_MAX);
	h->all_ports |= !*port;
	target->targets[target->count] = *model;
	target->targets[target->count++].port = *port ? port : NULL;
	return 0;
}

static int add_alias(struct handle *h, struct targets *t, size_t app, const char *port,
	const struct ringtap_target *model)
{
	struct target *target;

	if (app >= ringtap_apps_count(t->apps))
		return handle_fail(h, PCAP_ERROR_NO_SUCH_DEVICE,
			"no alias '%s': %zu DPDK applications are running; see 'ringtap list "
			"--json'",
			h->device, ringtap_apps_count(t->apps));
	target = target_of(t, app);
	if (!target)
		return handle_fail(h, PCAP_ERROR, "malloc: %s", strerror(ENOMEM));
	h->all_ports = !port;
	target->targets[0] = *model;
	target->targets[0].port = port;
	target->count = 1;
	return 0;
}

static int status_of(int error)
{
	switch (error) {
	case -ENOENT:
	case -ENODEV: return PCAP_ERROR_NO_SUCH_DEVICE;
	case -EACCES:
	case -EPERM: return PCAP_ERROR_PERM_DENIED;
	case -ENOTSUP: return PCAP_ERROR_CANTSET_TSTAMP_TYPE;
	default: return PCAP_ERROR;
	}
}

static bool means(const struct ringtap_target *w, const struct ringtap_port_info *p)
{
	char number[8];

	snprintf(number, sizeof(number), "%u", p->port_id);
	return !w->port || !strcmp(w->port, p->name) || !strcmp(w->port, p->device) ||
	       !strcmp(w->port, number);
}

static bool has_port(const struct ringtap_list *list, const struct ringtap_target *w)
{
	for (size_t i = 0; i < list->port_count; i++)
		if (means(w, ringtap_list_port(list, i)))
			return true;
	return !w->port;
}

/* Targets of a primary process that a secondary has as well. */
static int shared_targets(
	const char *dir, const struct target *primary, struct target *out, char *err, size_t errlen)
{
	struct ringtap_list *list = NULL;
	struct ringtap_conn *conn;
	int ret = ringtap_conn_open(&conn, dir, NULL, err, errlen);

	if (ret)
		return ret;
	ret = ringtap_conn_list(conn, &list);
	for (size_t i = 0; !ret && i < primary->count; i++)
		if (has_port(list, &primary->targets[i]))
			out->targets[out->count++] = primary->targets[i];
	ringtap_list_free(list);
	ringtap_conn_close(conn);
	return ret;
}

/* Without the probe, without the ports, and meanwhile ended, it is left out. */
static int attach_secondary(struct handle *h, const struct targets *t, size_t app,
	const struct target *primary, const struct ringtap_capture_options *o)
{
	const char *dir = ringtap_apps_dir(t->apps, app), *why;
	struct target own = {.app = app};
	char err[256] = "";
	int ret = shared_targets(dir, primary, &own, err, sizeof(err));

	why = err;
	if (!ret && own.count) {
		ret = ringtap_capture_attach(h->cap, dir, own.targets, own.count, o);
		why = ringtap_capture_error(h->cap);
	}
	if (!ret || ret == -ENOENT || ret == -ENODEV || ret == -EPROTONOSUPPORT)
		return 0;
	return handle_fail(h, status_of(ret), "%s: %s", ringtap_apps_name(t->apps, app),
		*why ? why : strerror(-ret));
}

/* The secondary processes of a target's application that are not targets themselves. */
static int attach_secondaries(struct handle *h, const struct targets *t,
	const struct target *target, const struct ringtap_capture_options *o)
{
	int ret = 0;

	for (size_t i = 0; i < ringtap_apps_count(t->apps) && !ret; i++) {
		bool named = false;

		for (size_t k = 0; k < t->count; k++)
			named |= t->list[k].app == i;
		if (!named && ringtap_apps_primary(t->apps, i) == target->app)
			ret = attach_secondary(h, t, i, target, o);
	}
	return ret;
}

static int attach(struct handle *h, struct targets *t, const struct ringtap_capture_options *o)
{
	for (size_t i = 0; i < t->count; i++) {
		const struct target *target = &t->list[i];
		int ret = ringtap_capture_attach(h->cap, ringtap_apps_dir(t->apps, target->app),
			target->targets, target->count, o);
		const char *why = ringtap_capture_error(h->cap);

		if (ret)
			return handle_fail(h, status_of(ret), "%s: %s",
				ringtap_apps_name(t->apps, target->app),
				*why ? why : strerror(-ret));
	}
	for (size_t i = 0; i < t->count; i++) {
		int ret = attach_secondaries(h, t, &t->list[i], o);

		if (ret)
			return ret;
	}
	return 0;
}

static void free_targets(struct targets *t)
{
	ringtap_apps_free(t->apps);
	free(t->list);
}

/* 0 or PCAP_ERROR_…, with the reason as the handle's error. The caller frees both, also then; the
 * targets point into *items. */
static int find_targets(
	struct handle *h, struct targets *t, const struct ringtap_target *model, char **items)
{
	char *rest, *item;
	size_t app;
	int port, ret = ringtap_apps_find(&t->apps);
	bool alias = rt_alias_parse(h->device, &app, &port);

	t->list = NULL;
	t->count = 0;
	*items = rest = strdup(h->device + (alias ? 0 : sizeof(NAME_PREFIX) - 1));
	if (ret || !rest)
		return handle_fail(h, PCAP_ERROR, "cannot list applications: %s",
			strerror(ret ? -ret : ENOMEM));
	if (alias)
		return add_alias(h, t, app,
			port == RT_ALIAS_ALL_PORTS ? NULL : strchr(rest, 'p') + 1, model);
	while (!ret && (item = strsep(&rest, "+")))
		ret = add_item(h, t, item, model);
	return ret;
}

/* Calls see() for each port of a target until it returns false. False: the target has no port, or
 * the application does not answer. */
static bool for_each_port(const struct ringtap_apps *apps, const struct target *t,
	bool (*see)(void *arg, const struct ringtap_port_info *p), void *arg)
{
	struct ringtap_list *list = NULL;
	struct ringtap_conn *conn;
	bool found = false, go_on = true;
	char err[256];

	if (ringtap_conn_open(&conn, ringtap_apps_dir(apps, t->app), NULL, err, sizeof(err)))
		return false;
	if (!ringtap_conn_list(conn, &list)) {
		for (size_t i = 0; i < list->port_count * t->count && go_on; i++) {
			const struct ringtap_port_info *p = ringtap_list_port(list, i / t->count);

			if (!means(&t->targets[i % t->count], p))
				continue;
			found = true;
			go_on = see(arg, p);
		}
	}
	ringtap_list_free(list);
	ringtap_conn_close(conn);
	return found;
}

static bool note_linktype(void *arg, const struct ringtap_port_info *p)
{
	struct handle *h = arg;

	if (!h->linktype)
		h->linktype = p->linktype;
	if (h->linktype == p->linktype)
		return true;
	handle_fail(h, PCAP_ERROR,
		"%s: link type %u, other ports have %u; name ports of one link type", p->name,
		p->linktype, h->linktype);
	h->linktype = 0;
	return false;
}

/* A handle has one link type. */
static int set_linktype(struct handle *h, struct targets *t)
{
	bool found = false;

	h->linktype = 0;
	for (size_t i = 0; i < t->count; i++) {
		found |= for_each_port(t->apps, &t->list[i], note_linktype, h);
		if (found && !h->linktype)
			return PCAP_ERROR;
	}
	/* Attaching reports what is wrong. */
	if (!found)
		h->linktype = RINGTAP_LINKTYPE_ETHERNET;
	for (size_t i = 0; i < t->count; i++)
		for (size_t k = 0; k < t->list[i].count; k++)
			t->list[i].targets[k].linktype = h->linktype;
	return 0;
}

int name_attach(struct handle *h, const struct ringtap_target *model,
	const struct ringtap_capture_options *options)
{
	struct targets t;
	char *items;
	int ret = find_targets(h, &t, model, &items);

	if (!ret)
		ret = set_linktype(h, &t);
	if (!ret)
		ret = attach(h, &t, options);
	free_targets(&t);
	free(items);
	return ret;
}

/* The same for each target of h->device; false for the first that returns false, or if the name is
 * wrong. */
static bool for_each_named(
	struct handle *h, bool (*see)(void *arg, const struct ringtap_port_info *p), void *arg)
{
	const struct ringtap_target model = {0};
	struct targets t;
	char *items;
	bool all = !find_targets(h, &t, &model, &items);

	for (size_t i = 0; i < t.count && all; i++)
		all = for_each_port(t.apps, &t.list[i], see, arg);
	free_targets(&t);
	free(items);
	return all;
}

static bool has_adapter_time(void *arg, const struct ringtap_port_info *p)
{
	return *(bool *)arg &= p->stamps == RINGTAP_STAMPS_NIC;
}

bool name_has_adapter_time(struct handle *h)
{
	bool all = true;

	return for_each_named(h, has_adapter_time, &all) && all;
}

struct first {
	struct ringtap_port_info *port;
	bool found;
};

static bool keep_first(void *arg, const struct ringtap_port_info *p)
{
	struct first *f = arg;

	if (!f->found)
		*f->port = *p;
	f->found = true;
	return false;
}

bool name_first_port(struct handle *h, struct ringtap_port_info *port)
{
	struct first f = {.port = port};

	return for_each_named(h, keep_first, &f) && f.found;
}
