/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "common/foreign.h"
#include "incident.h"
#include "recorder/incidents.h"
#include "web.h"

#define LISTED   50
#define PAGE     "index.html"
#define PAGE_MAX (64u << 20)
#define TIME_LEN 22 /* 20260102T030405.678901 */

static const char *folder_of(const json_t *recorder)
{
	return json_string_value(json_object_get(recorder, "folder"));
}

bool app_has_folder(const struct app *a, const char *folder)
{
	const json_t *one;
	size_t i;

	json_array_foreach(a ? a->recorders : NULL, i, one)
	{
		if (folder_of(one) && !strcmp(folder_of(one), folder))
			return true;
	}
	return false;
}

/* ---- the table */

static void add_incident(json_t *table, const struct app *a, const char *folder, const char *name)
{
	json_t *row = view_row(table);
	char when[TIME_LEN + 4];

	/* 2026-01-02 03:04:05 */
	snprintf(when, sizeof(when), "%.4s-%.2s-%.2s %.2s:%.2s:%.2s", name, name + 4, name + 6,
		name + 9, name + 11, name + 13);
	json_array_append_new(row, json_pack("{s:o, s:o}", "text", json_text(when), "page",
					   json_pack("{s:o, s:o, s:s}", "app", json_text(a->label),
						   "folder", json_text(folder), "name", name)));
	json_array_append_new(row, json_text(name + TIME_LEN + 1));
	json_array_append_new(row, json_text(folder));
}

void incident_table(struct view *v, const struct app *a)
{
	json_t *table = NULL;
	const json_t *one;
	size_t i;

	json_array_foreach(a->recorders, i, one)
	{
		struct incidents l;

		if (!table) {
			table = view_panel(v, "table", "incidents", "Incidents");
			view_column(table, "UTC", "text");
			view_column(table, "condition", "text");
			view_column(table, "folder", "text");
			json_put(table, "rows", json_array());
		}
		if (!folder_of(one) || incidents_list(&l, folder_of(one)))
			continue;
		for (int k = l.count - 1; k >= 0 && k >= l.count - LISTED; k--)
			add_incident(table, a, folder_of(one), l.list[k]->d_name);
		incidents_free(&l);
	}
}

/* ---- pages */

/* Checked: the folder is one of a recorder's, the name that of an incident; neither it nor the file
 * is a link. */
static ssize_t read_page(const struct app *a, const char *folder, const char *name, char **data)
{
	ssize_t n = -EINVAL;
	int fd;

	if (!folder || !name || !app_has_folder(a, folder) || !incident_is_name(name))
		return n;
	fd = incident_open(folder, name);
	if (fd < 0)
		return fd;
	n = rt_foreign_read(fd, PAGE, O_NOFOLLOW, PAGE_MAX, data);
	close(fd);
	return n;
}

/* Another user may have written it: it may run its scripts, but not as a page of this server. */
enum MHD_Result incident_answer(struct web *w, struct MHD_Connection *c)
{
	static serve_headers headers = {"Content-Security-Policy",
		"sandbox allow-scripts allow-downloads; frame-ancestors 'none'",
		MHD_HTTP_HEADER_CACHE_CONTROL, "no-store", "X-Content-Type-Options", "nosniff",
		"Referrer-Policy", "no-referrer", NULL};
	const char *app = MHD_lookup_connection_value(c, MHD_GET_ARGUMENT_KIND, "app");
	char *data = NULL;
	ssize_t n;

	if (!w->options->allow_actions)
		return serve_text(c, MHD_HTTP_FORBIDDEN,
			"the page of an incident has packets: it needs --allow-actions\n", NULL);
	pthread_mutex_lock(&w->streams.lock);
	n = read_page(app ? apps_find(&w->apps, app) : NULL,
		MHD_lookup_connection_value(c, MHD_GET_ARGUMENT_KIND, "folder"),
		MHD_lookup_connection_value(c, MHD_GET_ARGUMENT_KIND, "name"), &data);
	pthread_mutex_unlock(&w->streams.lock);
	if (n < 0)
		return serve_text(c, MHD_HTTP_NOT_FOUND,
			"no such incident, or its page is not written yet\n", NULL);
	clients_stream(&w->serve.clients, c); /* by a slow line it may take minutes */
	return serve_answer(c, MHD_HTTP_OK, "text/html; charset=utf-8", headers,
		MHD_create_response_from_buffer((size_t)n, data, MHD_RESPMEM_MUST_FREE));
}
