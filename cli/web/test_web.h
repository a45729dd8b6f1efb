/* SPDX-License-Identifier: BSD-3-Clause */
/* A server of ringtap web with applications that are made up and a clock that is set. */
#ifndef RINGTAP_CLI_WEB_TEST_WEB_H
#define RINGTAP_CLI_WEB_TEST_WEB_H

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/test_util.h"
#include "base/util.h"
#include "common/test_now.h"
#include "measure/fake_monitor.h"
#include "web.h"

static struct fake_app *app;
static struct web_options options;
static struct web web;
static int port;
static unsigned silence_s;         /* as the server has it; 0: its default */
static char shown[TOKEN_MAX + 64]; /* a header line with the token */

static inline int begin_server(bool allow_actions)
{
	char url[256];

	test_now_set(TEST_NOW_MONO_NS, TEST_NOW_REAL_NS);
	fake_apps_begin();
	app = &fake_apps[0];
	options = (struct web_options){.allow_actions = allow_actions,
		.serve = {.command = "web", .listen = "127.0.0.1:0", .silence_s = silence_s},
		.watch = {.command = "web", .collectors = RINGTAP_POLLS, .latency_every = 1}};
	assert_int_equal(web_start(&web, &options, url, sizeof(url)), 0);
	assert_int_equal(sscanf(url, "http://127.0.0.1:%d/?token=", &port), 1);
	snprintf(shown, sizeof(shown), "Authorization: Bearer %s\r\n", web.token.text);
	return 0;
}

static inline int begin(void **state)
{
	return begin_server(false);
}

static inline int end(void **state)
{
	web_stop(&web);
	fake_apps_end();
	return fake_monitors ? -1 : 0;
}

/* ---- clients */

static inline int connect_there(int window)
{
	struct sockaddr_in a = {.sin_family = AF_INET,
		.sin_port = htons((uint16_t)port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (window)
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &window, sizeof(window));
	assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	return fd;
}

static inline void send_request(int fd, const char *what, const char *headers)
{
	char request[16384];
	int n = snprintf(request, sizeof(request), "%s HTTP/1.1\r\n%s%s\r\n", what,
		strstr(headers, "Host: ") ? "" : "Host: localhost\r\n", headers);

	assert_true(send(fd, request, (size_t)n, MSG_NOSIGNAL) == n);
}

/* The whole answer. The caller frees. */
static inline char *ask(const char *what, const char *headers)
{
	char all[2048], *text = calloc(1, 1 << 20);
	int fd = connect_there(0);
	size_t len = 0;
	ssize_t n;

	snprintf(all, sizeof(all), "%sConnection: close\r\n", headers);
	send_request(fd, what, all);
	while ((n = recv(fd, text + len, (1 << 20) - 1 - len, 0)) > 0)
		len += (size_t)n;
	close(fd);
	return text;
}

static inline void assert_status(const char *what, const char *headers, int status)
{
	char *text = ask(what, headers);
	int got = 0;

	sscanf(text, "HTTP/1.1 %d", &got);
	if (got != status)
		fail_msg("%s, %s: %.300s", what, headers, text);
	free(text);
}

/* A stream; its events are without the chunks that they come in. */
struct reader {
	int fd;
	char *text;
	size_t len, read;
};

static inline struct reader subscribe(const char *query, int window)
{
	struct reader c = {.fd = connect_there(window), .text = calloc(1, 1 << 23)};
	char request[512];
	/* HTTP/1.0 has no chunks. */
	int n = snprintf(request, sizeof(request),
		"GET /events%s HTTP/1.0\r\nHost: localhost\r\n%s\r\n", query, shown);

	assert_in_range(n, 1, sizeof(request) - 1);
	assert_true(send(c.fd, request, (size_t)n, MSG_NOSIGNAL) == n);
	return c;
}

static inline void unsubscribe(struct reader *c)
{
	close(c->fd);
	free(c->text);
}

/* The next event, which is waited for; kind: "document" or "update", or NULL: either. NULL: the
 * server has ended the stream. The caller decrefs. */
static inline json_t *next_event_or_end(struct reader *c, const char *kind)
{
	char expected[32], *from, *stop;
	json_t *j;

	for (;;) {
		ssize_t n;

		from = strstr(c->text + c->read, "event: ");
		stop = from ? strstr(from, "\n\n") : NULL;
		if (stop)
			break;
		n = recv(c->fd, c->text + c->len, (1 << 23) - 1 - c->len, 0);
		if (n <= 0)
			return NULL;
		c->len += (size_t)n;
	}
	if (kind) {
		snprintf(expected, sizeof(expected), "event: %s\ndata: ", kind);
		assert_memory_equal(from, expected, strlen(expected));
	}
	from = strstr(from, "data: ") + strlen("data: ");
	c->read = (size_t)(stop + 2 - c->text);
	j = json_loadb(from, (size_t)(stop - from), 0, NULL);
	assert_non_null(j);
	return j;
}

static inline json_t *next_event(struct reader *c, const char *kind)
{
	json_t *j = next_event_or_end(c, kind);

	assert_non_null(j);
	return j;
}

static inline void skip_event(struct reader *c, const char *kind)
{
	json_decref(next_event(c, kind));
}

/* ---- time */

static inline bool is_attached(void)
{
	bool attached;

	watch_lock(&web.watch);
	attached = web.watch.count == fake_app_count && web.watch.list[web.watch.count - 1]->mon;
	watch_unlock(&web.watch);
	return attached;
}

static inline void second(void)
{
	test_now_pass(NS_PER_S);
	web_step(&web);
}

/* The server has seen a client, and attached to the application. */
static inline void attached(void)
{
	web_step(&web);
	assert_true(web.watching);
	while (!is_attached())
		sched_yield();
}

/* ---- documents */

static inline const json_t *panel_of(const json_t *document, const char *id)
{
	const json_t *panel;
	size_t i;

	json_array_foreach(json_object_get(document, "panels"), i, panel)
	{
		if (!strcmp(json_string_value(json_object_get(panel, "id")), id))
			return panel;
	}
	return NULL;
}

/* The next update after some seconds. */
static inline json_t *shown_later(struct reader *c)
{
	json_t *j = NULL;

	skip_event(c, "document");
	attached();
	skip_event(c, "document");
	for (unsigned i = 0; i < 3; i++) {
		json_decref(j);
		second();
		j = next_event(c, "update");
	}
	return j;
}

/* The row of a table with this text in its first cell; NULL: none. */
static inline const json_t *row_of(const json_t *document, const char *table, const char *text)
{
	const json_t *row;
	size_t i;

	json_array_foreach(json_object_get(panel_of(document, table), "rows"), i, row)
	{
		const json_t *first = json_array_get(row, 0);
		const json_t *linked = json_object_get(first, "text");

		if (!strcmp(json_string_value(linked ? linked : first), text))
			return row;
	}
	return NULL;
}

static inline const json_t *box_at(const json_t *pipeline, size_t i, const char *id)
{
	const json_t *box = json_array_get(json_object_get(pipeline, "boxes"), i);

	assert_string_equal(json_string_value(json_object_get(box, "id")), id);
	return box;
}

#endif
