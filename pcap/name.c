/* SPDX-License-Identifier: BSD-3-Clause */
/* ringtap:APP:PORT, several joined by +: who is meant. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "handle.h"

#define WANTS_MAX 64 /* ports of one application, as many as a request takes */

struct target {
	size_t app; /* index in the list of applications */
	struct ringtap_target wants[WANTS_MAX];
	size_t count;
};

struct targets {
	struct ringtap_apps *apps;
	struct target *list;
	size_t count;
};

static bool find_app(const struct ringtap_apps *apps, const char *name, size_t len, size_t *app)
{
	for (size_t i = 0; i < ringtap_apps_count(apps); i++) {
		const char *other = ringtap_apps_name(apps, i);

		if (strlen(other) == len && !memcmp(other, name, len)) {
			*app = i;
			return true;
		}
	}
	return false;
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
	struct target *more;

	for (size_t i = 0; i < t->count; i++) {
		if (t->list[i].app == app)
			return &t->list[i];
	}
	more = realloc(t->list, (t->count + 1) * sizeof(*more));
	if (!more)
		return NULL;
	t->list = more;
	more[t->count] = (struct target){.app = app};
	return &more[t->count++];
}

/* One item between +: APP:PORT, APP: or APP for all of its ports; a PORT of the application before.
 * What stands before the first colon is an application if one is called so: port names may hold
 * colons, too. */
static int add_item(
	struct handle *h, struct targets *t, char *item, const struct ringtap_target *model)
{
	bool first = !t->count;
	size_t len = strcspn(item, ":"), app;
	const char *port = item;
	struct target *target;

	if (!first && !*item)
		return handle_fail(h, PCAP_ERROR_NO_SUCH_DEVICE, "nothing stands behind a +");
	if ((first || item[len]) && find_app(t->apps, item, len, &app))
		port = item + len + (item[len] == ':');
	else if (first)
		return no_such_app(h, t->apps, item);
	else
		app = t->list[t->count - 1].app;
	target = target_of(t, app);
	if (!target)
		return handle_fail(h, PCAP_ERROR, "malloc: %s", strerror(ENOMEM));
	if (target->count == WANTS_MAX)
		return handle_fail(
			h, PCAP_ERROR, "more than %d ports of one application", WANTS_MAX);
	h->all_ports |= !*port;
	target->wants[target->count] = *model;
	target->wants[target->count++].port = *port ? port : NULL;
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

static int attach(struct handle *h, struct targets *t, const struct ringtap_capture_options *o)
{
	for (size_t i = 0; i < t->count; i++) {
		const struct target *target = &t->list[i];
		int ret = ringtap_capture_attach(h->cap, ringtap_apps_dir(t->apps, target->app),
			target->wants, target->count, o);
		const char *why = ringtap_capture_error(h->cap);

		if (ret)
			return handle_fail(h, status_of(ret), "%s: %s",
				ringtap_apps_name(t->apps, target->app),
				*why ? why : strerror(-ret));
	}
	return 0;
}

static void free_targets(struct targets *t)
{
	ringtap_apps_free(t->apps);
	free(t->list);
}

/* 0 or PCAP_ERROR_…, with the reason as the handle's error. The caller frees, also then. */
static int find_targets(
	struct handle *h, struct targets *t, const struct ringtap_target *model, char **items)
{
	char *rest, *item;
	int ret;

	*t = (struct targets){0};
	*items = rest = strdup(h->device + sizeof(NAME_PREFIX) - 1);
	ret = rest ? ringtap_apps_find(&t->apps) : -ENOMEM;
	if (ret)
		ret = handle_fail(h, PCAP_ERROR, "looking for applications: %s", strerror(-ret));
	while (!ret && (item = strsep(&rest, "+")))
		ret = add_item(h, t, item, model);
	return ret;
}

int name_attach(struct handle *h, const struct ringtap_target *model,
	const struct ringtap_capture_options *options)
{
	struct targets t;
	char *items;
	int ret = find_targets(h, &t, model, &items);

	if (!ret)
		ret = attach(h, &t, options);
	free_targets(&t);
	free(items);
	return ret;
}

static bool means(const struct ringtap_target *w, const struct ringtap_port_info *p)
{
	char number[8];

	snprintf(number, sizeof(number), "%u", p->port_id);
	return !w->port || !strcmp(w->port, p->name) || !strcmp(w->port, p->device) ||
	       !strcmp(w->port, number);
}

static bool target_has_adapter_time(const struct ringtap_apps *apps, const struct target *t)
{
	struct ringtap_list *list = NULL;
	struct ringtap_conn *conn;
	unsigned found = 0, having = 0;
	char err[256];

	if (ringtap_conn_open(&conn, ringtap_apps_dir(apps, t->app), NULL, err, sizeof(err)))
		return false;
	if (!ringtap_conn_list(conn, &list)) {
		for (size_t i = 0; i < list->port_count * t->count; i++) {
			const struct ringtap_port_info *p = ringtap_list_port(list, i / t->count);

			if (!means(&t->wants[i % t->count], p))
				continue;
			found++;
			having += p->stamps == RINGTAP_STAMPS_NIC;
		}
	}
	ringtap_list_free(list);
	ringtap_conn_close(conn);
	return found && having == found;
}

bool name_has_adapter_time(struct handle *h)
{
	const struct ringtap_target model = {0};
	struct targets t;
	char *items;
	bool all = !find_targets(h, &t, &model, &items);

	for (size_t i = 0; i < t.count && all; i++)
		all = target_has_adapter_time(t.apps, &t.list[i]);
	free_targets(&t);
	free(items);
	return all;
}
