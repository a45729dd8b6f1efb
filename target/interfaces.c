/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "interfaces.h"
#include "which_app.h"
#include "base/util.h"

static const char *primary_of(const struct ringtap_apps *apps, size_t i)
{
	size_t primary = ringtap_apps_primary(apps, i);

	if (!ringtap_apps_secondary(apps, i))
		return NULL;
	return primary == i ? "" : ringtap_apps_name(apps, primary);
}

#define FOREIGN_MS 1000 /* for an answer of another user's application */
#define FOREIGN_NS (3 * NS_PER_S)

static void get(struct app_view *v, int timeout_ms)
{
	const struct ringtap_conn_options opts = {.size = sizeof(opts), .timeout_ms = timeout_ms};
	struct ringtap_conn *conn;

	v->error = ringtap_conn_open(&conn, v->dir, &opts, v->why, sizeof(v->why));
	if (v->error)
		return;
	v->error = ringtap_conn_app(conn, &v->info);
	if (!v->error)
		v->error = ringtap_conn_list(conn, &v->list);
	if (v->list) {
		v->port_count = v->list->port_count;
		v->session_count = v->list->session_count;
	}
	if (v->error)
		snprintf(v->why, sizeof(v->why), "%s", strerror(-v->error));
	ringtap_conn_close(conn);
}

void app_view_get(struct app_view *v, const struct ringtap_apps *apps, size_t i, int timeout_ms,
	uint64_t *foreign_ns)
{
	bool foreign = foreign_ns && ringtap_apps_foreign(apps, i);
	uint64_t begin = now_ns(CLOCK_MONOTONIC);

	*v = (struct app_view){.name = ringtap_apps_name(apps, i),
		.dir = ringtap_apps_dir(apps, i),
		.primary = primary_of(apps, i),
		.info = {.size = sizeof(v->info)}};
	if (foreign && *foreign_ns > FOREIGN_NS) {
		v->error = -ETIMEDOUT;
		snprintf(v->why, sizeof(v->why),
			"not asked, as other applications of other users take too long");
		return;
	}
	get(v, foreign ? FOREIGN_MS : timeout_ms);
	if (foreign)
		*foreign_ns += now_ns(CLOCK_MONOTONIC) - begin;
}

void app_view_free(struct app_view *v)
{
	ringtap_list_free(v->list);
}

int interfaces_list(void)
{
	struct ringtap_apps *apps;
	uint64_t foreign_ns = 0;
	int ret = ringtap_apps_find(&apps);

	if (ret)
		return message_fail(
			STATUS_FAILED, "record: cannot find applications: %s", strerror(-ret));
	if (!ringtap_apps_count(apps))
		(void)print_no_apps("record", apps, "");
	for (size_t i = 0; i < ringtap_apps_count(apps); i++) {
		struct app_view v;

		app_view_get(&v, apps, i, 0, &foreign_ns);
		for (size_t k = 0; k < v.port_count; k++) {
			const struct ringtap_port_info *p = ringtap_list_port(v.list, k);

			printf("%s:%s (port %u, %s)\n", v.name, p->name, p->port_id, p->driver);
		}
		app_view_free(&v);
	}
	ringtap_apps_free(apps);
	return STATUS_OK;
}
