/* SPDX-License-Identifier: BSD-3-Clause */
/* A signal ends the waiting for an application that does not answer. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cmocka.h>

#include "reader/test_peer.h"
#include "ringtap/monitor.h"

static const struct ringtap_target all = {.queue = -1, .directions = RINGTAP_RX | RINGTAP_TX};
static struct test_session session;
static struct test_peer peer;
static struct ringtap_capture *cap;
static struct ringtap_conn *conn;
static struct ringtap_list *list;
static struct ringtap_monitor *mon;
static int event;
static uint16_t unanswered; /* the signal comes when the application has got this */
static char err[RT_TEXT_LEN];

static bool answer(struct test_peer *p, int sock, uint16_t type)
{
	if (type != unanswered)
		return test_peer_answer(p, sock, type);
	return !eventfd_write(event, 1);
}

static int set_up(void **state)
{
	event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	test_session_make(&session, 1, TEST_RING);
	peer = (struct test_peer){.session = &session, .answer = answer};
	conn = NULL;
	return ringtap_capture_create(&cap, NULL);
}

static int tear_down(void **state)
{
	ringtap_break_fd(-1);
	ringtap_conn_close(conn);
	ringtap_capture_close(cap);
	test_peer_stop(&peer);
	test_session_free(&session);
	close(event);
	return 0;
}

static int attach(void)
{
	return ringtap_capture_attach(cap, peer.dir, &all, 1, NULL);
}

static int start(void)
{
	return attach() ?: ringtap_capture_start(cap);
}

static int watch(void)
{
	return ringtap_monitor_open(&mon, peer.dir, NULL, err, sizeof(err));
}

static int connect_only(void)
{
	return ringtap_conn_open(&conn, peer.dir, NULL, err, sizeof(err));
}

static int list_ports(void)
{
	return connect_only() ?: ringtap_conn_list(conn, &list);
}

static void test_waiting_for_any_answer_ends(void **state)
{
	static const struct {
		uint16_t unanswered;
		int (*call)(void);
	} cases[] = {
		{RT_MSG_HELLO, connect_only},
		{RT_MSG_HELLO, attach},
		{RT_MSG_LIST, list_ports},
		{RT_MSG_OPEN, attach},
		{RT_MSG_MEMORY, attach},
		{RT_MSG_START, start},
		{RT_MSG_MONITOR, watch},
	};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		unanswered = cases[i].unanswered;
		test_peer_start(&peer, true);
		ringtap_break_fd(event);
		assert_int_equal(cases[i].call(), -ECANCELED);
		if (i + 1 < sizeof(cases) / sizeof(cases[0])) {
			tear_down(state);
			set_up(state);
		}
	}
	assert_string_equal(err, "interrupted");
}

static void test_waiting_for_telemetry_ends(void **state)
{
	peer.telemetry = "{}";
	peer.telemetry_silent = true;
	test_peer_start(&peer, false);
	ringtap_break_fd(event);
	assert_int_equal(eventfd_write(event, 1), 0);
	assert_int_equal(connect_only(), -ECANCELED);
	assert_string_equal(err, "interrupted");
}

/* Available packets are taken: a capture that runs ends in order. */
static void test_answers_that_are_there_count(void **state)
{
	test_peer_start(&peer, true);
	assert_int_equal(start(), 0);
	ringtap_break_fd(event);
	assert_int_equal(eventfd_write(event, 1), 0);
	assert_int_equal(ringtap_capture_stop(cap), 0);
	ringtap_break_fd(-1);
	assert_int_equal(connect_only(), 0);
}

#define with_peer(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_peer(test_waiting_for_any_answer_ends),
		with_peer(test_waiting_for_telemetry_ends),
		with_peer(test_answers_that_are_there_count),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
