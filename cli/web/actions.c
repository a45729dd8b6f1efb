/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "actions.h"
#include "base/child.h"
#include "base/json.h"
#include "base/util.h"
#include "incident.h"
#include "recorder/request.h"
#include "web.h"

#define SECONDS_MAX 60
#define FILTER_MAX  1000
#define RECORDED_KB 60000  /* limit for a recording; less than CHILD_TEXT_MAX */
#define BLOCK_BYTES 200000 /* more than the next packets that were too long for the limit */
#define PATIENCE_NS (2 * NS_PER_S)

/* ---- collectors */

/* docs/performance.md, part Monitors. */
static const struct {
	unsigned collector;
	const char *name, *price;
} costs[] = {
	{RINGTAP_LATENCY, "latency",
		"3.4 ns for each packet: 28 % of the rate of a bare forwarder"},
	{RINGTAP_GAPS, "gaps", "0.4 ns for each packet: the clock is read at every poll"},
	{RINGTAP_BYTES, "bytes", "0.8 ns for each packet: every packet is read"},
	{RINGTAP_XSTATS, "xstats", "polling threads nothing; drivers are called twice a second"},
	{RINGTAP_DEVICES, "devices",
		"polling threads nothing; event, crypto and DMA devices are read twice a second"},
};
#define COSTS (sizeof(costs) / sizeof(costs[0]))

static enum MHD_Result say(struct MHD_Connection *c, unsigned status, const char *text)
{
	return serve_text(c, status, text, NULL);
}

static const char *argument(struct MHD_Connection *c, const char *name)
{
	return MHD_lookup_connection_value(c, MHD_GET_ARGUMENT_KIND, name);
}

static enum MHD_Result switch_collector(struct web *w, struct MHD_Connection *c, const char *path)
{
	const char *name = argument(c, "name"), *on = argument(c, "on");
	bool valid = name && on && (!strcmp(on, "0") || !strcmp(on, "1"));

	if (valid && !strcmp(name, "flows")) {
		pthread_mutex_lock(&w->streams.lock);
		web_flows(w, !strcmp(on, "1"));
		pthread_mutex_unlock(&w->streams.lock);
		return say(c, MHD_HTTP_ACCEPTED, "switched\n");
	}
	for (size_t i = 0; valid && i < COSTS; i++) {
		unsigned collectors;

		if (strcmp(costs[i].name, name))
			continue;
		pthread_mutex_lock(&w->streams.lock);
		collectors = w->watch.collectors & ~costs[i].collector;
		if (!strcmp(on, "1"))
			collectors |= costs[i].collector;
		if (w->watching)
			watch_switch(&w->watch, collectors, w->watch.latency_every);
		pthread_mutex_unlock(&w->streams.lock);
		return say(c, MHD_HTTP_ACCEPTED, "switched\n");
	}
	return say(c, MHD_HTTP_BAD_REQUEST,
		"give name=latency, gaps, bytes, xstats, devices or flows, and on=0 or 1\n");
}

/* ---- incidents */

static void send_request(struct aside *a)
{
	a->result = request_send(a->folder, a->text);
}

static enum MHD_Result trigger(struct web *w, struct MHD_Connection *c, const char *path)
{
	const char *app = argument(c, "app"), *folder = argument(c, "folder");
	uint64_t now = now_ns(CLOCK_MONOTONIC);
	bool found;

	pthread_mutex_lock(&w->streams.lock);
	found = app && folder && app_has_folder(apps_find(&w->apps, app), folder);
	pthread_mutex_unlock(&w->streams.lock);
	if (!found)
		return say(c, MHD_HTTP_NOT_FOUND, "no recorder of this application writes there\n");
	/* Incidents take disk space, or the place of older ones. */
	if (w->triggered_ns && now - w->triggered_ns < NS_PER_S)
		return say(c, MHD_HTTP_TOO_MANY_REQUESTS,
			"one request a second; the one before is being written\n");
	w->triggered_ns = now;
	return web_aside(w, c, folder, argument(c, "comment"), send_request);
}

static enum MHD_Result answer_sent(struct web *w, struct MHD_Connection *c, struct aside *a)
{
	ssize_t ret = a ? a->result : 0;

	if (!a)
		return aside_refuse(c);
	aside_free(a);
	if (ret)
		w->triggered_ns = 0;
	if (ret == -ESRCH)
		return say(c, MHD_HTTP_SERVICE_UNAVAILABLE, "no recorder writes to this folder\n");
	if (ret)
		return say(c, MHD_HTTP_INTERNAL_SERVER_ERROR,
			"this server may not write to the folder or send to the recorder; run both "
			"as one user\n");
	return say(c, MHD_HTTP_ACCEPTED, "an incident is being written\n");
}

/* ---- recordings */

/* One at a time. Its connection waits, and the main thread runs the program. */
static bool is_recorded(struct web *w, struct MHD_Connection *c)
{
	bool is;

	pthread_mutex_lock(&w->streams.lock);
	is = w->recording.connection == c;
	pthread_mutex_unlock(&w->streams.lock);
	return is;
}

static enum MHD_Result answer_recorded(struct web *w, struct MHD_Connection *c)
{
	static serve_headers limited = {"Ringtap-Note",
		"the file has reached its limit of 60 MB; later packets are not in it",
		MHD_HTTP_HEADER_CACHE_CONTROL, "no-store", MHD_HTTP_HEADER_CONTENT_DISPOSITION,
		"attachment; filename=\"packets.pcapng\"", NULL};
	static serve_headers counted = {MHD_HTTP_HEADER_CACHE_CONTROL, "no-store", NULL};
	struct recording *r = &w->recording;
	struct child_text *out = &r->child.text[0], *err = &r->child.text[1];
	enum MHD_Result ret;

	if (r->child.ended && !r->child.status && out->len) {
		bool full = out->len + BLOCK_BYTES > RECORDED_KB * UINT64_C(1000);

		bool packets = !strcmp(r->command, "record");

		ret = serve_answer(c, MHD_HTTP_OK,
			packets ? "application/x-pcapng" : "application/json",
			packets ? limited + (full ? 0 : 2) : counted,
			MHD_create_response_from_buffer(
				out->len, out->data, MHD_RESPMEM_MUST_FREE));
		*out = (struct child_text){0};
	} else {
		ret = serve_answer(c, MHD_HTTP_INTERNAL_SERVER_ERROR, "text/plain; charset=utf-8",
			NULL,
			MHD_create_response_from_buffer(err->len,
				err->len ? err->data : (char *)(uintptr_t) "",
				MHD_RESPMEM_MUST_COPY));
	}
	return ret; /* actions_ended() is next */
}

static enum MHD_Result begin(struct web *w, struct MHD_Connection *c, const char *command)
{
	const char *label = argument(c, "app"), *filter = argument(c, "filter");
	const char *seconds = argument(c, "seconds");
	const struct app *a;
	uint64_t number = 0;
	enum MHD_Result ret = MHD_YES;

	if (!label || !seconds || parse_number(seconds, SECONDS_MAX, &number) || !number ||
		(filter && strlen(filter) > FILTER_MAX))
		return say(c, MHD_HTTP_BAD_REQUEST,
			"give app, seconds, 1 to 60, and a filter of at most 1000 characters\n");
	pthread_mutex_lock(&w->streams.lock);
	a = apps_find(&w->apps, label);
	if (w->streams.ending) {
		/* MHD_stop_daemon() ends the process if a connection is suspended. */
		ret = say(c, MHD_HTTP_SERVICE_UNAVAILABLE, "the server ends\n");
	} else if (w->recording.connection) {
		ret = say(c, MHD_HTTP_TOO_MANY_REQUESTS,
			"another recording runs; wait for its end\n");
	} else if (!a || a->state != APP_SHOWN) {
		ret = say(c, MHD_HTTP_NOT_FOUND, "no such application runs\n");
	} else {
		w->recording = (struct recording){.command = command,
			.connection = c,
			.child = CHILD_NONE,
			.pid = a->info.host_pid,
			.seconds = (unsigned)number,
			.filter = filter && *filter && strcmp(command, "held") ? strdup(filter)
									       : NULL};
		clients_stream(&w->serve.clients, c);
		MHD_suspend_connection(c);
	}
	pthread_mutex_unlock(&w->streams.lock);
	return ret;
}

static void begin_recording(const struct web *w, struct recording *r)
{
	const struct child_config config = {.flags = CHILD_STORE_OUT | CHILD_READ_ERR};
	char pid[16], duration[16], size[32];
	const char *packets[] = {w->options->recorder, "record", "-q", "-w", "-", "--duration",
		duration, "-a", size, "-i", pid, r->filter ? "-f" : NULL, r->filter, NULL};
	const char *counts[] = {w->options->recorder, r->command, "--json", "--once", "--duration",
		duration, pid, r->filter ? "-f" : NULL, r->filter, NULL};

	snprintf(pid, sizeof(pid), "%u", r->pid);
	snprintf(duration, sizeof(duration), "%us", r->seconds);
	snprintf(size, sizeof(size), "filesize:%u", RECORDED_KB);
	r->started = true;
	r->failed =
		child_start(&r->child, strcmp(r->command, "record") ? counts : packets, &config);
}

void actions_step(struct web *w)
{
	struct recording *r = &w->recording;

	if (!r->connection || r->done)
		return;
	/* The server does not read from a connection that waits. */
	if (clients_has_gone(r->connection)) {
		child_free(&r->child);
	} else {
		if (!r->started)
			begin_recording(w, r);
		if (!r->failed)
			child_watch(&r->child, -1, -1, 0);
		if (!r->failed && !r->child.ended)
			return;
	}
	r->done = true;
	MHD_resume_connection(r->connection);
}

void actions_end(struct web *w)
{
	struct recording *r = &w->recording;

	pthread_mutex_lock(&w->streams.lock);
	if (r->connection && !r->done) {
		if (r->started)
			child_stop(&r->child, SIGTERM, PATIENCE_NS);
		r->done = true;
		MHD_resume_connection(r->connection);
	}
	pthread_mutex_unlock(&w->streams.lock);
}

void actions_ended(void *ctx, struct MHD_Connection *c)
{
	struct web *w = ctx;
	struct recording *r = &w->recording;

	pthread_mutex_lock(&w->streams.lock);
	if (r->connection == c) {
		child_free(&r->child);
		free(r->filter);
		*r = (struct recording){.child = CHILD_NONE};
	}
	pthread_mutex_unlock(&w->streams.lock);
}

/* ---- all of them */

static const struct {
	const char *path;
	enum MHD_Result (*answer)(struct web *w, struct MHD_Connection *c, const char *path);
} actions[] = {{"collectors", switch_collector}, {"trigger", trigger}, {"record", begin},
	{"drops", begin}, {"held", begin}}; /* begin: the command of that name */
#define ACTIONS (sizeof(actions) / sizeof(actions[0]))

bool actions_are(const char *path)
{
	for (size_t i = 0; i < ACTIONS; i++)
		if (!strcmp(actions[i].path, path))
			return true;
	return false;
}

static bool is_watching(struct web *w)
{
	bool is;

	pthread_mutex_lock(&w->streams.lock);
	is = w->watching;
	pthread_mutex_unlock(&w->streams.lock);
	return is;
}

enum MHD_Result actions_answer(struct web *w, struct MHD_Connection *c, const char *path)
{
	struct aside *a;

	if (is_recorded(w, c))
		return answer_recorded(w, c);
	if (aside_take(c, &a))
		return answer_sent(w, c, a);
	for (size_t i = 0; i < ACTIONS; i++)
		if (!strcmp(actions[i].path, path))
			return is_watching(w)
				       ? actions[i].answer(w, c, actions[i].path)
				       : say(c, MHD_HTTP_CONFLICT,
						 "nothing is collected, as no page is open; open "
						 "one, or start ringtap web with --history\n");
	return say(c, MHD_HTTP_NOT_FOUND, "not found; the page is at /\n");
}

void actions_describe(const struct web *w, json_t *document, const char *app)
{
	json_t *j = json_object(), *more = json_array(), *folders = json_array();
	const struct app *a = apps_find(&w->apps, app);
	const json_t *one;
	size_t k;

	for (size_t i = 0; i < COSTS; i++)
		json_array_append_new(more,
			json_pack("{s:s, s:s, s:b}", "name", costs[i].name, "price", costs[i].price,
				"on", (int)!!(w->watch.collectors & costs[i].collector)));
	json_array_append_new(
		more, json_pack("{s:s, s:s, s:b}", "name", "flows", "price",
			      "the largest flows, with their addresses: " FLOWS_LIVE_PRICE, "on",
			      (int)w->flows));
	json_array_foreach(a ? a->recorders : NULL, k, one) json_array_append_new(
		folders, json_text(json_string_value(json_object_get(one, "folder"))));
	json_put(j, "allowed", json_boolean(w->options->allow_actions));
	json_put(j, "collectors", more);
	json_put(j, "recorders", folders);
	json_put(document, "actions", j);
}
