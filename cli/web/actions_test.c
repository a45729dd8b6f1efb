/* SPDX-License-Identifier: BSD-3-Clause */
/* Actions of ringtap web for clients, with recorders that are made up. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test_actions.h"

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

static void flows_are_switched(void **state)
{
	struct reader c = watched();

	assert_null(web.apps.flows);
	assert_posted("/collectors?name=flows&on=1", 202);
	assert_non_null(web.apps.flows);
	assert_posted("/collectors?name=flows&on=1", 202);
	assert_posted("/collectors?name=flows&on=0", 202);
	assert_null(web.apps.flows);
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

/* ---- recordings */

static void write_program(const char *text)
{
	static char path[4200];

	test_write("ringtap", text, strlen(text));
	assert_int_equal(chmod("ringtap", 0755), 0);
	snprintf(path, sizeof(path), "%s/ringtap", folder);
	options.recorder = path;
}

#define RECORDED_ROOM (64 << 20)

/* The answer to a POST for which seconds pass. The caller frees. */
static char *recorded(const char *what)
{
	struct reader c = {.fd = connect_there(0), .text = calloc(1, RECORDED_ROOM)};
	char all[640];

	snprintf(all, sizeof(all), "%sConnection: close\r\n", cookie_and(own_origin()));
	send_request(c.fd, what, all);
	for (;;) {
		ssize_t n;

		/* No time passes: clients that take long are disconnected. */
		while (!poll(&(struct pollfd){.fd = c.fd, .events = POLLIN}, 1, 1))
			web_step(&web);
		n = recv(c.fd, c.text + c.len, RECORDED_ROOM - 1 - c.len, 0);
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

/* By the programs for that, whose JSON the page shows. */
static void packets_are_followed_for_a_client(void **state)
{
	struct reader c = watched();
	char *text;

	write_program("#!/bin/sh\necho \"$@\"\n");
	text = recorded("POST /drops?app=app&seconds=3&filter=arp");
	assert_non_null(strstr(text, "HTTP/1.1 200 OK"));
	assert_non_null(strstr(text, "Content-Type: application/json"));
	assert_null(strstr(text, "Content-Disposition"));
	assert_non_null(strstr(text, "drops --json --once --duration 3s "));
	assert_non_null(strstr(text, " -f arp\n"));
	free(text);
	text = recorded("POST /held?app=app&seconds=2&filter=arp");
	assert_non_null(strstr(text, "held --json --once --duration 2s "));
	assert_null(strstr(text, "-f"));
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

/* Its program lasts longer than the test may. */
static void a_recording_ends_when_its_client_leaves(void **state)
{
	struct reader c = watched();
	int fd = connect_there(0);
	pid_t pid;

	write_program("#!/bin/sh\nexec sleep 1000\n");
	send_request(fd, "POST /record?app=app&seconds=60", cookie_and(own_origin()));
	while (!is_recording())
		sched_yield();
	second();
	pid = web.recording.child.pid;
	assert_int_equal(kill(pid, 0), 0);
	close(fd);
	while (is_recording()) {
		second();
		sched_yield();
	}
	assert_int_equal(kill(pid, 0), -1);
	unsubscribe(&c);
}

static void a_recording_that_is_cut_says_so(void **state)
{
	struct reader c = watched();
	char *text;

	write_program("#!/bin/sh\nhead -c 59900000 /dev/zero\n");
	text = recorded("POST /record?app=app&seconds=3");
	assert_non_null(strstr(text, "\r\nRingtap-Note: the file has reached its limit of 60 MB"));
	free(text);
	write_program("#!/bin/sh\nhead -c 59000000 /dev/zero\n");
	text = recorded("POST /record?app=app&seconds=3");
	assert_null(strstr(text, "Ringtap-Note"));
	free(text);
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
		CASE(flows_are_switched),
		CASE(collectors_that_there_are_not),
		CASE(nothing_is_done_while_nothing_is_collected),
		CASE(a_recorder_writes_an_incident),
		CASE(packets_are_recorded_for_a_client),
		CASE(packets_are_followed_for_a_client),
		CASE(a_recording_that_fails_says_why),
		CASE(recordings_that_are_refused),
		CASE(one_recording_at_a_time),
		CASE(a_recording_ends_when_its_client_leaves),
		CASE(a_recording_that_is_cut_says_so),
		CASE(no_recording_begins_while_the_server_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
