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
#define NAMES    "incidents"
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

void incident_names(json_t *recorder)
{
	json_t *names = json_array();
	struct incidents l;

	if (folder_of(recorder) && !incidents_list(&l, folder_of(recorder))) {
		for (int k = l.count - 1; k >= 0 && k >= l.count - LISTED; k--)
			json_array_append_new(names, json_text(l.list[k]->d_name));
		incidents_free(&l);
	}
	json_put(recorder, NAMES, names);
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
		json_array_foreach(json_object_get(one, NAMES), k, name)
			add_incident(table, a, folder_of(one), json_string_value(name));
	}
}

/* ---- pages */

struct download {
	struct web *web;
	int fd;
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

/* Neither the incident nor its page is a link. A descriptor, or -errno. */
static int open_page(const char *folder, const char *name, struct stat *st)
{
	int at = name && incident_is_name(name) ? incident_open(folder, name) : -EINVAL, fd;

	if (at < 0)
		return at;
	fd = rt_foreign_open(at, PAGE, O_NOFOLLOW, st);
	close(at);
	if (fd >= 0 && st->st_size > PAGE_MAX) {
		close(fd);
		return -EFBIG;
	}
	return fd;
}

/* A file that has become shorter ends the connection. */
static ssize_t read_page(void *arg, uint64_t pos, char *buf, size_t max)
{
	const struct download *d = arg;
	ssize_t n = pread(d->fd, buf, max, (off_t)pos);

	return n > 0 ? n : MHD_CONTENT_READER_END_WITH_ERROR;
}

static void close_page(void *arg)
{
	struct download *d = arg;

	d->web->downloads--;
	close(d->fd);
	free(d);
}

/* Takes the descriptor; NULL: no memory. */
static struct MHD_Response *respond(struct web *w, int fd, uint64_t size)
{
	struct download *d = malloc(sizeof(*d));
	struct MHD_Response *r = NULL;

	if (d) {
		*d = (struct download){.web = w, .fd = fd};
		r = MHD_create_response_from_callback(size, BLOCK, read_page, d, close_page);
	}
	if (r) {
		w->downloads++;
	} else {
		close(fd);
		free(d);
	}
	return r;
}

/* Another user may have written it: it may run its scripts, but not as a page of this server. */
enum MHD_Result incident_answer(struct web *w, struct MHD_Connection *c)
{
	static serve_headers headers = {"Content-Security-Policy",
		"sandbox allow-scripts allow-downloads; frame-ancestors 'none'",
		MHD_HTTP_HEADER_CACHE_CONTROL, "no-store", "X-Content-Type-Options", "nosniff",
		"Referrer-Policy", "no-referrer", NULL};
	const char *folder = MHD_lookup_connection_value(c, MHD_GET_ARGUMENT_KIND, "folder");
	struct MHD_Response *r;
	struct stat st;
	int fd = -ENOENT;

	if (!w->options->allow_actions)
		return serve_text(c, MHD_HTTP_FORBIDDEN,
			"the page of an incident has packets: it needs --allow-actions\n", NULL);
	/* Each takes a place of a client for minutes, by a slow line. */
	if (w->downloads >= DOWNLOADS_MAX)
		return serve_text(c, MHD_HTTP_SERVICE_UNAVAILABLE,
			"the pages of other incidents are being sent; try again later\n", NULL);
	if (is_known(w, MHD_lookup_connection_value(c, MHD_GET_ARGUMENT_KIND, "app"), folder))
		fd = open_page(
			folder, MHD_lookup_connection_value(c, MHD_GET_ARGUMENT_KIND, "name"), &st);
	if (fd < 0)
		return serve_text(c, MHD_HTTP_NOT_FOUND,
			"no such incident, or its page is not written yet\n", NULL);
	r = respond(w, fd, (uint64_t)st.st_size);
	clients_stream(&w->serve.clients, c);
	return serve_answer(c, MHD_HTTP_OK, "text/html; charset=utf-8", headers, r);
}
