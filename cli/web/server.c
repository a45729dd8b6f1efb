/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests of the page, and the steps between them. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"
#include "incident.h"
#include "web.h"
#include "web/page.h"

#define FLOWS_TOP 20 /* rows of the table without --flows */

#define NO_STORE                                                                        \
	MHD_HTTP_HEADER_CACHE_CONTROL, "no-store", "X-Content-Type-Options", "nosniff", \
		"Referrer-Policy", "no-referrer"

/* ---- requests */

static enum MHD_Result refuse(struct MHD_Connection *c)
{
	return serve_text(c, MHD_HTTP_FORBIDDEN,
		"the token is missing or wrong: open the URL that ringtap web has printed; with "
		"--token-file add ?token= and the first line of the file\n",
		NULL);
}

/* The page has the policy of its scripts; this one adds that no other page has it inside. The token
 * leaves the URL by a script, so that the cookie, which no other site sends, comes with the page.
 */
static enum MHD_Result answer_page(struct web *w, struct MHD_Connection *c)
{
	char cookie[TOKEN_MAX + 96];
	const char *const headers[] = {NO_STORE, "Content-Security-Policy",
		"frame-ancestors 'none'", MHD_HTTP_HEADER_SET_COOKIE, cookie, NULL};

	if (!token_in_url(&w->token, c) && !token_shown(&w->token, c))
		return refuse(c);
	token_header(&w->token, cookie, sizeof(cookie));
	return serve_answer(c, MHD_HTTP_OK, "text/html; charset=utf-8", headers,
		MHD_create_response_from_buffer(w->page_len, w->page, MHD_RESPMEM_PERSISTENT));
}

/* False: it is too long for a name. */
static bool take(struct MHD_Connection *c, const char *key, char *to, size_t size)
{
	const char *text = MHD_lookup_connection_value(c, MHD_GET_ARGUMENT_KIND, key);

	return (size_t)snprintf(to, size, "%s", text ? text : "") < size;
}

static enum MHD_Result answer_events(struct web *w, struct MHD_Connection *c)
{
	static serve_headers headers = {NO_STORE, NULL};
	struct place place = {0};
	struct MHD_Response *r;
	bool many = false;

	if (!take(c, "app", place.app, sizeof(place.app)) ||
		!take(c, "port", place.port, sizeof(place.port)) ||
		!take(c, "thread", place.thread, sizeof(place.thread)))
		return serve_text(c, MHD_HTTP_BAD_REQUEST, "a name is too long\n", NULL);
	r = streams_open(&w->streams, c, &place, &many);
	if (many)
		return serve_text(c, MHD_HTTP_SERVICE_UNAVAILABLE,
			"too many pages are open; close one\n", NULL);
	clients_stream(&w->serve.clients, c);
	return serve_answer(c, MHD_HTTP_OK, "text/event-stream", headers, r);
}

/* With the cookie only from the page itself: other sites send no cookie, but another server of this
 * host has the same one. */
static enum MHD_Result answer_post(struct web *w, struct MHD_Connection *c, const char *url)
{
	if (!token_same_origin(serve_header(c, MHD_HTTP_HEADER_ORIGIN),
		    serve_header(c, MHD_HTTP_HEADER_HOST),
		    !serve_header(c, MHD_HTTP_HEADER_AUTHORIZATION)))
		return serve_text(c, MHD_HTTP_FORBIDDEN,
			"the header Origin is not this server's: actions are for its own page\n",
			NULL);
	return actions_answer(w, c, url + 1);
}

static enum MHD_Result answer(
	void *ctx, struct MHD_Connection *c, const char *url, const char *method)
{
	static serve_headers post = {MHD_HTTP_HEADER_ALLOW, "POST", NULL};
	struct web *w = ctx;

	if (!strcmp(url, "/") && strcmp(method, MHD_HTTP_METHOD_POST))
		return answer_page(w, c);
	if (!token_shown(&w->token, c))
		return refuse(c);
	if (!strcmp(method, MHD_HTTP_METHOD_POST))
		return answer_post(w, c, url);
	if (!strcmp(url, "/events"))
		return answer_events(w, c);
	if (!strcmp(url, "/incident"))
		return incident_answer(w, c);
	if (actions_are(url + 1))
		return serve_text(c, MHD_HTTP_METHOD_NOT_ALLOWED,
			"an action needs POST, and --allow-actions\n", post);
	return serve_text(c, MHD_HTTP_NOT_FOUND, "not found; the page is at /\n", NULL);
}

/* ---- steps */

static json_t *make(void *ctx, const struct place *p, bool newest)
{
	struct web *w = ctx;

	json_t *j = views_document(&w->apps, w->watching ? &w->watch : NULL, p, newest);

	actions_describe(w, j, p->app);
	return j;
}

void web_flows(struct web *w, bool on)
{
	int ret = 0;

	w->flows = on;
	if (!w->watching)
		return;
	if (!on) {
		flows_live_stop(w->apps.flows);
		w->apps.flows = NULL;
	} else if (!w->apps.flows) {
		ret = flows_live_start(&w->apps.flows,
			&(struct flows_live_options){.watch = &w->watch,
				.top = w->options->flows ? w->options->flows : FLOWS_TOP,
				.interval_ns = NS_PER_S});
	}
	if (ret)
		message_print("web: cannot start a thread that counts flows: %s", start_error(ret));
}

static bool is_wanted(const struct web *w)
{
	return w->options->history_ns || w->streams.count ||
	       (w->streams.empty_ns &&
		       now_ns(CLOCK_MONOTONIC) - w->streams.empty_ns < WEB_LINGER_NS);
}

static void begin(struct web *w)
{
	int ret;

	w->watch = w->options->watch;
	watch_init(&w->watch);
	ret = watch_start(&w->watch);
	if (ret)
		message_print(
			"web: cannot start a thread that finds applications: %s", start_error(ret));
	ret = recorder_answers_start(&w->recorders, &w->watch, incident_names);
	if (ret)
		message_print("web: cannot start a thread that asks flight recorders: %s",
			start_error(ret));
	history_begin(&w->apps.history, w->options->history_ns);
	streams_restart(&w->streams);
	w->watching = true;
	web_flows(w, w->flows);
}

/* Detaches from all applications: what they count for the page costs them. */
static void end(struct web *w)
{
	w->watching = false;
	flows_live_stop(w->apps.flows);
	w->apps.flows = NULL;
	recorder_answers_stop(w->recorders);
	w->recorders = NULL;
	watch_free(&w->watch);
	apps_free(&w->apps);
	w->apps.history.steps = 0;
}

static void take_answers(struct web *w)
{
	for (size_t i = 0; w->recorders && i < w->apps.count; i++) {
		struct app *a = w->apps.list[i];

		json_decref(a->recorders);
		a->recorders = recorder_answers_of(w->recorders, a->dir);
	}
}

void web_step(struct web *w)
{
	pthread_mutex_lock(&w->streams.lock);
	if (is_wanted(w) != w->watching) {
		if (w->watching)
			end(w);
		else
			begin(w);
	}
	if (w->watching) {
		apps_step(&w->apps, &w->watch);
		take_answers(w);
		streams_update(&w->streams);
	}
	actions_step(w);
	aside_step(now_ns(CLOCK_MONOTONIC));
	pthread_mutex_unlock(&w->streams.lock);
	clients_expire(&w->serve.clients, now_ns(CLOCK_MONOTONIC));
}

enum MHD_Result web_aside(struct web *w, struct MHD_Connection *c, const char *folder,
	const char *text, void (*work)(struct aside *a))
{
	int ret = -EBUSY;

	/* MHD_stop_daemon() ends the process if a connection is suspended. */
	pthread_mutex_lock(&w->streams.lock);
	if (!w->streams.ending)
		ret = aside_suspend(c, folder, text, work);
	pthread_mutex_unlock(&w->streams.lock);
	return ret ? aside_refuse(c) : MHD_YES;
}

/* A request has ended. */
static void ended(void *ctx, struct MHD_Connection *c)
{
	struct aside *a;

	if (aside_take(c, &a))
		aside_free(a);
	actions_ended(ctx, c);
}

/* ---- beginning and end */

static int make_page(struct web *w)
{
	FILE *f = open_memstream(&w->page, &w->page_len);
	int ret;

	if (!f)
		return -ENOMEM;
	ret = web_page_write_live(f);
	return fclose(f) ? -ENOMEM : ret;
}

int web_start(struct web *w, struct web_options *options, char *url, size_t size)
{
	int fd, ret;

	*w = (struct web){.options = options,
		.flows = options->flows > 0,
		.recording = {.child = CHILD_NONE},
		.streams = {.make = make, .ctx = w}};
	streams_init(&w->streams);
	history_begin(&w->apps.history, options->history_ns);
	ret = token_make(&w->token, options->token_file);
	if (ret)
		return ret;
	options->serve.answer = answer;
	options->serve.ctx = w;
	options->serve.ended = ended;
	options->serve.posts = options->allow_actions;
	fd = serve_listen(&w->serve, &options->serve, url, size);
	if (fd < 0)
		return fd;
	token_set_port(&w->token, w->serve.port);
	/* The journal, which others read, has the output of a service. */
	if (options->token_file)
		snprintf(url + strlen(url), size - strlen(url), "/");
	else
		snprintf(url + strlen(url), size - strlen(url), "/?token=%s", w->token.text);
	ret = make_page(w);
	if (ret) {
		message_print("web: not enough memory");
		close(fd);
		return ret;
	}
	return serve_start(&w->serve, fd);
}

void web_stop(struct web *w)
{
	streams_end(&w->streams);
	aside_step(ASIDE_ALL);
	actions_end(w);
	serve_stop(&w->serve);
	if (w->watching)
		end(w);
	free(w->page);
}
