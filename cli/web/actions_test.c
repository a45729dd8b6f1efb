/* SPDX-License-Identifier: BSD-3-Clause */
/* What clients may have ringtap web do, with recorders that are made up. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

static int begin_allowed(void **state)
{
	test_folder_enter();
	assert_non_null(getcwd(folder, sizeof(folder)));
	request_result = 0;
	*requested = '\0';
	return begin_server(true);
}

static int end_allowed(void **state)
{
	test_folder_leave();
	return end(state);
}

static bool is_answered(void)
{
	bool is;

	pthread_mutex_lock(&web.streams.lock);
	is = web.apps.count && json_array_size(web.apps.list[0]->recorders) == 1;
	pthread_mutex_unlock(&web.streams.lock);
	return is;
}

/* With an application and its recorder. */
static struct reader watched(void)
{
	struct reader c = subscribe("?app=app", 0);

	skip_event(&c, "document");
	attached();
	/* The thread asks at once, and then has no turn: it may have met no application. */
	second();
	while (!is_answered()) {
		recorder_answers_stop(web.recorders);
		assert_int_equal(recorder_answers_start(&web.recorders, &web.watch), 0);
		sched_yield();
		second();
	}
	return c;
}

/* The cookie, and another line. */
static const char *cookie_and(const char *line)
{
	static char text[512];

	snprintf(text, sizeof(text),
		"Content-Length: 0\r\nCookie: ringtap-%d=%s\r\nHost: 127.0.0.1:%d\r\n%s", port,
		web.token.text, port, line);
	return text;
}

static const char *own_origin(void)
{
	static char line[64];

	snprintf(line, sizeof(line), "Origin: http://127.0.0.1:%d\r\n", port);
	return line;
}

static void assert_posted(const char *what, int status)
{
	char all[2300];

	snprintf(all, sizeof(all), "POST %s", what);
	assert_status(all, cookie_and(own_origin()), status);
}

/* ---- who may */

static void nothing_is_allowed_by_default(void **state)
{
	static const char *const paths[] = {"/collectors?name=latency&on=1", "/trigger?app=app",
		"/record?app=app&seconds=1", "/"};

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		char what[128];

		snprintf(what, sizeof(what), "POST %s", paths[i]);
		assert_status(what, cookie_and(own_origin()), 405);
	}
	assert_status("GET /incident?app=app&folder=x&name=" INCIDENT, shown, 403);
}

static void who_is_refused(void **state)
{
	static const char *const lines[] = {"", "Origin: http://evil.example\r\n",
		"Origin: null\r\n", "Origin: http://127.0.0.1\r\n",
		"Origin: http://127.0.0.1:1\r\n", "Origin: https://127.0.0.1\r\n"};
	struct reader c = watched();

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		assert_status("POST /collectors?name=latency&on=1", cookie_and(lines[i]), 403);
	assert_status("POST /collectors?name=latency&on=1", "Content-Length: 0\r\n", 403);
	assert_status("POST /collectors?name=latency&on=1",
		"Content-Length: 0\r\nCookie: ringtap-1=x\r\nOrigin: http://localhost\r\n", 403);
	assert_status("POST /collectors?name=latency&on=1",
		"Host: evil.example\r\nContent-Length: 0\r\nOrigin: http://evil.example\r\n", 403);
	second();
	assert_int_equal(app->switches, 0);
	assert_int_equal(app->options.collectors & RINGTAP_LATENCY, 0);
	unsubscribe(&c);
}

static void an_action_is_no_get(void **state)
{
	assert_status("GET /collectors?name=latency&on=1", shown, 405);
	assert_status("GET /trigger", shown, 405);
	assert_status("GET /record?app=app&seconds=1", shown, 405);
	assert_status("HEAD /record?app=app&seconds=1", shown, 405);
	assert_posted("/nothing", 404);
	assert_posted("/events", 404);
}

/* ---- collectors */

/* The watch's thread has switched to what the watch has now. */
static void wait_switched(void)
{
	for (bool done = false; !done; sched_yield()) {
		const struct watched *a = web.watch.list[0];

		watch_lock(&web.watch);
		done = a->on == web.watch.collectors && !a->switching;
		watch_unlock(&web.watch);
	}
}

static void collectors_are_switched(void **state)
{
	struct reader c = watched();

	assert_posted("/collectors?name=latency&on=1", 202);
	wait_switched();
	assert_true(app->options.collectors & RINGTAP_LATENCY);
	assert_posted("/collectors?name=latency&on=0", 202);
	wait_switched();
	assert_false(app->options.collectors & RINGTAP_LATENCY);
	unsubscribe(&c);
}

static void collectors_that_there_are_not(void **state)
{
	struct reader c = watched();

	assert_posted("/collectors", 400);
	assert_posted("/collectors?name=moon&on=1", 400);
	assert_posted("/collectors?name=latency", 400);
	assert_posted("/collectors?name=polls&on=0", 400);
	assert_posted("/collectors?name=latency&on=yes", 400);
	unsubscribe(&c);
}

static void nothing_is_done_while_nothing_is_collected(void **state)
{
	assert_posted("/collectors?name=latency&on=1", 409);
	assert_posted("/trigger?app=app&folder=/elsewhere", 409);
	assert_posted("/record?app=app&seconds=1", 409);
}

/* ---- incidents */

static void a_recorder_writes_an_incident(void **state)
{
	char what[4300];
	struct reader c = watched();

	snprintf(what, sizeof(what), "/trigger?app=app&comment=slow%%20again&folder=%s", folder);
	assert_posted(what, 202);
	assert_string_equal(requested, "slow again");
	assert_posted(what, 429);
	test_now_pass(NS_PER_S);
	request_result = -ESRCH;
	assert_posted(what, 503);
	request_result = -EPERM;
	assert_posted(what, 500);
	*requested = '\0';
	assert_posted("/trigger?app=app&folder=/elsewhere", 404);
	assert_posted("/trigger?app=other&folder=/elsewhere", 404);
	assert_posted("/trigger?app=app", 404);
	assert_string_equal(requested, "");
	unsubscribe(&c);
}

static void write_page(const char *incident)
{
	char path[256];

	assert_int_equal(mkdir(incident, 0755), 0);
	snprintf(path, sizeof(path), "%s/index.html", incident);
	test_write(path, "the page", 8);
}

static void assert_page(const char *of, const char *name, int status)
{
	char what[4500];

	snprintf(what, sizeof(what), "GET /incident?app=app&folder=%s&name=%s", of, name);
	assert_status(what, shown, status);
}

static void the_page_of_an_incident_is_in_a_sandbox(void **state)
{
	char what[4500], *text;
	struct reader c = watched();

	write_page(INCIDENT);
	snprintf(what, sizeof(what), "GET /incident?app=app&folder=%s&name=" INCIDENT, folder);
	text = ask(what, shown);
	assert_non_null(strstr(text, "HTTP/1.1 200 OK"));
	assert_non_null(
		strstr(text, "Content-Security-Policy: sandbox allow-scripts allow-downloads; "));
	assert_non_null(strstr(text, "\r\n\r\nthe page"));
	free(text);
	assert_status(what, "", 403);
	unsubscribe(&c);
}

/* A client has ten seconds for a request, but not for the page. */
static void a_large_page_may_take_long(void **state)
{
	const size_t size = 16 << 20;
	char what[4500], *text = malloc(size);
	struct reader c = watched();
	size_t len = 0;
	ssize_t n;
	int fd;

	memset(text, 'x', size);
	write_page(INCIDENT);
	test_write(INCIDENT "/index.html", text, size);
	snprintf(what, sizeof(what), "GET /incident?app=app&folder=%s&name=" INCIDENT, folder);
	snprintf(text, size, "%sConnection: close\r\n", shown);
	fd = connect_there(65536);
	send_request(fd, what, text);
	assert_true(recv(fd, text, 1, 0) == 1);
	for (unsigned i = 0; i < 12; i++)
		second();
	while ((n = recv(fd, text, size, 0)) > 0)
		len += (size_t)n;
	assert_true(len > size);
	close(fd);
	free(text);
	unsubscribe(&c);
}

static void paths_of_incidents_are_checked(void **state)
{
	struct reader c = watched();
	char parent[4100];

	write_page(INCIDENT);
	assert_int_equal(symlink(INCIDENT, "20260102T030405.000002-gap"), 0);
	assert_int_equal(mkdir("20260102T030405.000003-gap", 0755), 0);
	assert_int_equal(
		symlink("../" INCIDENT "/index.html", "20260102T030405.000003-gap/index.html"), 0);
	assert_int_equal(mkdir("20260102T030405.000004-gap", 0755), 0);
	assert_int_equal(mkfifo("20260102T030405.000004-gap/index.html", 0644), 0);
	write_page("other");
	assert_page(folder, INCIDENT, 200);
	assert_page(folder, "20260102T030405.000002-gap", 404);
	assert_page(folder, "20260102T030405.000003-gap", 404);
	assert_page(folder, "20260102T030405.000004-gap", 404);
	assert_page(folder, "20260102T030405.000005-gap", 404);
	assert_page(folder, "other", 404);
	assert_page(folder, ".", 404);
	assert_page(folder, "", 404);
	assert_page(folder, INCIDENT "%2f..%2f" INCIDENT, 404);
	assert_page(folder, "..%2fx%2f" INCIDENT, 404);
	snprintf(parent, sizeof(parent), "%s/.", folder);
	assert_page(parent, INCIDENT, 404);
	assert_status("GET /incident", shown, 404);
	unsubscribe(&c);
	unlink("20260102T030405.000002-gap");
}

static void incidents_are_listed(void **state)
{
	struct reader c;
	const json_t *panel;
	bool found = false;
	size_t i;
	json_t *j;

	write_page(INCIDENT);
	write_page("other");
	c = watched();
	do {
		j = next_event(&c, NULL);
		json_array_foreach(json_object_get(j, "panels"), i, panel)
		{
			const json_t *rows = json_object_get(panel, "rows");

			if (strcmp(json_string_value(json_object_get(panel, "title")), "Incidents"))
				continue;
			assert_int_equal(json_array_size(rows), 1);
			assert_string_equal(
				json_string_value(json_array_get(json_array_get(rows, 0), 1)),
				"gap");
			found = true;
		}
		json_decref(j);
		if (!found)
			second();
	} while (!found);
	unsubscribe(&c);
}

/* ---- recordings */

static void write_program(const char *text)
{
	static char path[4200];

	test_write("ringtap", text, strlen(text));
	assert_int_equal(chmod("ringtap", 0755), 0);
	snprintf(path, sizeof(path), "%s/ringtap", folder);
	options.recorder = path;
}

/* The answer to a POST for which seconds pass. The caller frees. */
static char *recorded(const char *what)
{
	struct reader c = {.fd = connect_there(0), .text = calloc(1, 1 << 16)};
	char all[640];

	snprintf(all, sizeof(all), "%sConnection: close\r\n", cookie_and(own_origin()));
	send_request(c.fd, what, all);
	for (;;) {
		ssize_t n;

		while (!poll(&(struct pollfd){.fd = c.fd, .events = POLLIN}, 1, 1))
			second();
		n = recv(c.fd, c.text + c.len, (1 << 16) - 1 - c.len, 0);
		assert_true(n >= 0);
		if (!n)
			break;
		c.len += (size_t)n;
	}
	close(c.fd);
	return c.text;
}

static void packets_are_recorded_for_a_client(void **state)
{
	struct reader c = watched();
	char *text;

	write_program("#!/bin/sh\necho \"$@\"\n");
	text = recorded("POST /record?app=app&seconds=3&filter=udp%20port%2053");
	assert_non_null(strstr(text, "HTTP/1.1 200 OK"));
	assert_non_null(
		strstr(text, "Content-Disposition: attachment; filename=\"packets.pcapng\""));
	assert_non_null(strstr(text, "record -q -w - --duration 3s"));
	assert_non_null(strstr(text, " -f udp port 53\n"));
	free(text);
	/* The next one may begin. */
	text = recorded("POST /record?app=app&seconds=60");
	assert_non_null(strstr(text, "HTTP/1.1 200 OK"));
	assert_null(strstr(text, " -f"));
	free(text);
	unsubscribe(&c);
}

static void a_recording_that_fails_says_why(void **state)
{
	struct reader c = watched();
	char *text;

	write_program("#!/bin/sh\necho 'ringtap: record: no such filter' >&2\nexit 2\n");
	text = recorded("POST /record?app=app&seconds=3&filter=x");
	assert_non_null(strstr(text, "HTTP/1.1 500"));
	assert_non_null(strstr(text, "\r\n\r\nringtap: record: no such filter\n"));
	free(text);
	unsubscribe(&c);
}

static void recordings_that_are_refused(void **state)
{
	char what[1200];
	struct reader c = watched();

	assert_posted("/record", 400);
	assert_posted("/record?app=app", 400);
	assert_posted("/record?app=app&seconds=0", 400);
	assert_posted("/record?app=app&seconds=61", 400);
	assert_posted("/record?app=app&seconds=x", 400);
	assert_posted("/record?app=other&seconds=1", 404);
	snprintf(what, sizeof(what), "/record?app=app&seconds=1&filter=%0*d", 1001, 0);
	assert_posted(what, 400);
	unsubscribe(&c);
}

static bool is_recording(void)
{
	bool is;

	pthread_mutex_lock(&web.streams.lock);
	is = web.recording.connection;
	pthread_mutex_unlock(&web.streams.lock);
	return is;
}

/* Also where its client does not wait for the end. */
static void one_recording_at_a_time(void **state)
{
	struct reader c = watched();
	int fd = connect_there(0);

	write_program("#!/bin/sh\nexec sleep 1000\n");
	send_request(fd, "POST /record?app=app&seconds=60", cookie_and(own_origin()));
	while (!is_recording())
		sched_yield();
	second();
	assert_posted("/record?app=app&seconds=1", 429);
	close(fd);
	unsubscribe(&c);
}

static void no_recording_begins_while_the_server_ends(void **state)
{
	struct reader c = watched();

	streams_end(&web.streams);
	assert_posted("/record?app=app&seconds=1", 503);
	unsubscribe(&c);
}

#define DENIED(f) cmocka_unit_test_setup_teardown(f, begin, end)
#define CASE(f)   cmocka_unit_test_setup_teardown(f, begin_allowed, end_allowed)

int main(void)
{
	const struct CMUnitTest tests[] = {
		DENIED(nothing_is_allowed_by_default),
		CASE(who_is_refused),
		CASE(an_action_is_no_get),
		CASE(collectors_are_switched),
		CASE(collectors_that_there_are_not),
		CASE(nothing_is_done_while_nothing_is_collected),
		CASE(a_recorder_writes_an_incident),
		CASE(the_page_of_an_incident_is_in_a_sandbox),
		CASE(a_large_page_may_take_long),
		CASE(paths_of_incidents_are_checked),
		CASE(incidents_are_listed),
		CASE(packets_are_recorded_for_a_client),
		CASE(a_recording_that_fails_says_why),
		CASE(recordings_that_are_refused),
		CASE(one_recording_at_a_time),
		CASE(no_recording_begins_while_the_server_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
