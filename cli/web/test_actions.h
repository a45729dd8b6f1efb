/* SPDX-License-Identifier: BSD-3-Clause */
/* A server of ringtap web that allows actions, with a recorder that is made up. */
#ifndef RINGTAP_CLI_WEB_TEST_ACTIONS_H
#define RINGTAP_CLI_WEB_TEST_ACTIONS_H

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "incident.h"
#include "recorder/ask.h"
#include "recorder/request.h"
#include "test_web.h"

#define INCIDENT "20260102T030405.000001-gap"

static char folder[4096]; /* folder of the recorder's incidents */
static int request_result;
static char requested[256];

/* ---- instead of the recorders */

bool ask_recorders(json_t *list, const char *dir, const char *name, int timeout_ms)
{
	json_array_append_new(list, json_pack("{s:s}", "folder", folder));
	return true;
}

int request_send(const char *to, const char *comment)
{
	snprintf(requested, sizeof(requested), "%s", comment ? comment : "none");
	return strcmp(to, folder) ? -ESRCH : request_result;
}

/* ---- the server */

static inline int begin_allowed(void **state)
{
	test_folder_enter();
	assert_non_null(getcwd(folder, sizeof(folder)));
	request_result = 0;
	*requested = '\0';
	return begin_server(true);
}

static inline int end_allowed(void **state)
{
	test_folder_leave();
	return end(state);
}

static inline bool is_answered(void)
{
	bool is;

	pthread_mutex_lock(&web.streams.lock);
	is = web.apps.count && json_array_size(web.apps.list[0]->recorders) == 1;
	pthread_mutex_unlock(&web.streams.lock);
	return is;
}

/* With an application and its recorder. */
static inline struct reader watched(void)
{
	struct reader c = subscribe("?app=app", 0);

	skip_event(&c, "document");
	attached();
	/* The thread asks at once, and then has no turn: it may have met no application. */
	second();
	while (!is_answered()) {
		recorder_answers_stop(web.recorders);
		assert_int_equal(
			recorder_answers_start(&web.recorders, &web.watch, incident_names), 0);
		sched_yield();
		second();
	}
	return c;
}

/* The cookie, and another line. */
static inline const char *cookie_and(const char *line)
{
	static char text[512];

	snprintf(text, sizeof(text),
		"Content-Length: 0\r\nCookie: ringtap-%d=%s\r\nHost: 127.0.0.1:%d\r\n%s", port,
		web.token.text, port, line);
	return text;
}

static inline const char *own_origin(void)
{
	static char line[64];

	snprintf(line, sizeof(line), "Origin: http://127.0.0.1:%d\r\n", port);
	return line;
}

static inline void assert_posted(const char *what, int status)
{
	char all[4400];

	snprintf(all, sizeof(all), "POST %s", what);
	assert_status(all, cookie_and(own_origin()), status);
}

#endif
