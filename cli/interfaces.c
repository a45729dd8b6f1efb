/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "interfaces.h"
#include "base/util.h"

void app_view_get(struct app_view *v, const struct ringtap_apps *apps, size_t i)
{
	struct ringtap_conn *conn;

	*v = (struct app_view){.name = ringtap_apps_name(apps, i),
		.dir = ringtap_apps_dir(apps, i),
		.info = {.size = sizeof(v->info)}};
	v->error = ringtap_conn_open(&conn, v->dir, v->why, sizeof(v->why));
	if (v->error)
		return;
	v->error = ringtap_conn_app(conn, &v->info);
	if (!v->error)
		v->error = ringtap_conn_list(
			conn, &v->ports, &v->port_count, &v->sessions, &v->session_count);
	if (v->error)
		snprintf(v->why, sizeof(v->why), "%s", strerror(-v->error));
	ringtap_conn_close(conn);
}

void app_view_free(struct app_view *v)
{
	free(v->ports);
	free(v->sessions);
}

int interfaces_list(void)
{
	struct ringtap_apps *apps;
	int ret = ringtap_apps_find(&apps);

	if (ret) {
		say("record: cannot find applications: %s", strerror(-ret));
		return STATUS_FAILED;
	}
	for (size_t i = 0; i < ringtap_apps_count(apps); i++) {
		struct app_view v;

		app_view_get(&v, apps, i);
		for (size_t p = 0; p < v.port_count; p++)
			printf("%s:%s (port %u, %s)\n", v.name, v.ports[p].name, v.ports[p].port_id,
				v.ports[p].driver);
		app_view_free(&v);
	}
	ringtap_apps_free(apps);
	return STATUS_OK;
}
