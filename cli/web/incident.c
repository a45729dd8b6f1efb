/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "aside.h"
#include "common/foreign.h"
#include "incident.h"
#include "recorder/incidents.h"
#include "web.h"

#define LISTED   50
#define PAGE     "index.html"
#define PAGE_MAX (32u << 20) /* a recorder writes at most some 5 MB */
#define LIST_NS  (NS_PER_S / 2)
#define TIME_LEN 22 /* 20260102T030405.678901 */
#define NAMES    "incidents"
#define HANGS    "hangs"
#define BLOCK    32768 /* bytes that are read at once */

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

static void list_names(struct aside *a)
{
	struct incidents l;

	a->result = incidents_list(&l, a->folder);
	if (a->result)
		return;
	a->names = json_array();
	for (int k = l.count - 1; k >= 0 && k >= l.count - LISTED; k--)
		json_array_append_new(a->names, json_text(l.list[k]->d_name));
	incidents_free(&l);
}

void incident_names(json_t *recorder)
{
	const char *folder = folder_of(recorder);
	struct aside *a = folder ? aside_run(folder, list_names, LIST_NS) : NULL;

	json_put(recorder, HANGS, json_boolean(folder && !a));
	json_put(recorder, NAMES, a && a->names ? json_incref(a->names) : json_array());
	aside_free(a);
}

void incident_table(struct view *v, const struct app *a)
{
	json_t *table = NULL;
	const json_t *one, *name;
	size_t i, k;

	json_array_foreach(a->recorders, i, one)
	{
		if (!table) {
			table = view_panel(v, "table", "incidents", "Incidents");
			view_column(table, "UTC", "text");
			view_column(table, "condition", "text");
			view_column(table, "folder", "text");
			json_put(table, "rows", json_array());
		}
		if (json_is_true(json_object_get(one, HANGS)))
			view_panel_note(table, "A folder does not answer in time: its incidents "
					       "are not in this table.");
		json_array_foreach(json_object_get(one, NAMES), k, name)
			add_incident(table, a, folder_of(one), json_string_value(name));
	}
}

/* ---- pages */

struct download {
	struct web *web;
	char *data;
};

/* Checked: the folder is one of a recorder's. */
static bool is_known(struct web *w, const char *label, const char *folder)
{
	bool is;

	pthread_mutex_lock(&w->streams.lock);
	is = label && folder && app_has_folder(apps_find(&w->apps, label), folder);
	pthread_mutex_unlock(&w->streams.lock);
	return is;
}

/* Neither the incident nor its page is a link. All of it, as its file system may hang at any byte.
 */
static void read_page(struct aside *a)
{
	int at = incident_open(a->folder, a->text);

	a->result = at;
	if (at < 0)
		return;
	a->result = rt_foreign_read(at, PAGE, O_NOFOLLOW, PAGE_MAX, &a->data);
	close(at);
}

static ssize_t send_page(void *arg, uint64_t pos, char *buf, size_t max)
{
	const struct download *d = arg;

	memcpy(buf, d->data + pos, max);
	return (ssize_t)max;
}

static void close_page(void *arg)
{
	struct download *d = arg;

	d->web->downloads--;
	free(d->data);
	free(d);
}

/* NULL: no memory. */
static struct MHD_Response *respond(struct web *w, struct aside *a)
{
	struct download *d = malloc(sizeof(*d));
	struct MHD_Response *r = NULL;

	if (d) {
		*d = (struct download){.web = w, .data = a->data};
		r = MHD_create_response_from_callback(
			(uint64_t)a->result, BLOCK, send_page, d, close_page);
	}
	if (!r) {
		free(d);
		return NULL;
	}
	a->data = NULL;
	w->downloads++;
	return r;
}

/* Another user may have written it: it may run its scripts, but not as a page of this server. */
static enum MHD_Result answer_read(struct web *w, struct MHD_Connection *c, struct aside *a)
{
	static serve_headers headers = {"Content-Security-Policy",
		"sandbox allow-scripts allow-downloads; frame-ancestors 'none'",
		MHD_HTTP_HEADER_CACHE_CONTROL, "no-store", "X-Content-Type-Options", "nosniff",
		"Referrer-Policy", "no-referrer", NULL};
	enum MHD_Result ret;

	if (!a)
		return aside_refuse(c);
	if (a->result < 0) {
		ret = serve_text(c, MHD_HTTP_NOT_FOUND,
			"no such incident, or its page is not written yet\n", NULL);
	} else {
		clients_stream(&w->serve.clients, c);
		ret = serve_answer(
			c, MHD_HTTP_OK, "text/html; charset=utf-8", headers, respond(w, a));
	}
	aside_free(a);
	return ret;
}

enum MHD_Result incident_answer(struct web *w, struct MHD_Connection *c)
{
	const char *folder = MHD_lookup_connection_value(c, MHD_GET_ARGUMENT_KIND, "folder");
	const char *name = MHD_lookup_connection_value(c, MHD_GET_ARGUMENT_KIND, "name");
	struct aside *a;

	if (aside_take(c, &a))
		return answer_read(w, c, a);
	if (!w->options->allow_actions)
		return serve_text(c, MHD_HTTP_FORBIDDEN,
			"the page of an incident has packets: it needs --allow-actions\n", NULL);
	/* Each takes a place of a client for minutes, by a slow line. */
	if (w->downloads >= DOWNLOADS_MAX)
		return serve_text(c, MHD_HTTP_SERVICE_UNAVAILABLE,
			"the pages of other incidents are being sent; try again later\n", NULL);
	if (!name || !incident_is_name(name) ||
		!is_known(w, MHD_lookup_connection_value(c, MHD_GET_ARGUMENT_KIND, "app"), folder))
		return serve_text(c, MHD_HTTP_NOT_FOUND, "no such incident\n", NULL);
	return web_aside(w, c, folder, name, read_page);
}
