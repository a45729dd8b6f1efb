/* SPDX-License-Identifier: BSD-3-Clause */
/* Replaces the filter of a running capture. */
#include <errno.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/atomics.h"
#include "capture.h"
#include "common/ipc.h"
#include "reader/test_peer.h"
#include "reader/tunables.h"

#define RINGS   2u
#define RUN_MAX 64u

static struct test_session session;
static struct test_peer peer;
static struct ringtap_capture *cap;

static int set_up(void **state)
{
	return test_capture_open(&session, &peer, &cap, RINGS, true);
}

static int tear_down(void **state)
{
	return test_capture_close(&session, &peer, cap);
}

static void put_some(uint32_t ring, unsigned n)
{
	uint64_t now = test_now(&session);

	for (unsigned i = 0; i < n; i++)
		test_put(&session, ring, now, i % 2, 60);
	test_publish(&session, ring, now);
}

/* ---- the probe's answers ---- */

static const struct ringtap_insn none = {.code = 6};

static void answer_filter(int sock, int code, const char *text)
{
	struct rt_msg_filtered m = {.code = code};

	rt_msg_init(&m.h, RT_MSG_FILTERED, sizeof(m));
	strcpy(m.text, text);
	(void)rt_msg_send(sock, &m.h, NULL, 0);
}

static bool filters(struct test_peer *p, int sock, uint16_t type)
{
	if (type != RT_MSG_FILTER)
		return test_peer_answer(p, sock, type);
	/* Published while the reader waits. */
	put_some(0, 3);
	answer_filter(sock, 0, "");
	return true;
}

static bool refuses(struct test_peer *p, int sock, uint16_t type)
{
	if (type != RT_MSG_FILTER)
		return test_peer_answer(p, sock, type);
	answer_filter(sock, -ENOTSUP, "not today");
	return true;
}

static bool refuses_with_an_escape(struct test_peer *p, int sock, uint16_t type)
{
	if (type != RT_MSG_FILTER)
		return test_peer_answer(p, sock, type);
	answer_filter(sock, -ENOTSUP, "no\x1b[2J\nway\xc2\x9b");
	return true;
}

static bool answers_without_a_body(struct test_peer *p, int sock, uint16_t type)
{
	test_peer_send(sock, RT_MSG_FILTERED, NULL, 0); /* without its body */
	return true;
}

/* Counts packets of stale and other runs. Returns -EPIPE or another error. */
static int read_all(uint64_t packets[2])
{
	struct ringtap_run runs[RUN_MAX];
	int n;

	packets[0] = packets[1] = 0;
	while ((n = ringtap_capture_next(cap, runs, RUN_MAX, 10)) > 0) {
		for (int i = 0; i < n; i++)
			packets[runs[i].stale] += runs[i].packets;
		ringtap_capture_release(cap);
	}
	return n;
}

static void test_records_published_before_the_answer_are_stale(void **state)
{
	uint64_t packets[2];

	put_some(0, 5);
	put_some(1, 2);
	peer.answer = filters;
	assert_int_equal(ringtap_capture_filter(cap, &none, 1), 0);
	put_some(0, 7);
	put_some(1, 1);
	assert_int_equal(read_all(packets), 0);
	assert_int_equal(packets[true], 5 + 2 + 3);
	assert_int_equal(packets[false], 7 + 1);
}

static void test_capture_continues_after_a_refused_filter(void **state)
{
	uint64_t packets[2];

	peer.answer = refuses;
	assert_int_equal(ringtap_capture_filter(cap, &none, 1), -ENOTSUP);
	assert_string_equal(ringtap_capture_error(cap), "not today");
	put_some(0, 4);
	assert_int_equal(read_all(packets), 0);
	assert_int_equal(packets[false], 4);
}

static void test_control_characters_in_a_refusal_are_replaced(void **state)
{
	peer.answer = refuses_with_an_escape;
	assert_int_equal(ringtap_capture_filter(cap, &none, 1), -ENOTSUP);
	assert_string_equal(ringtap_capture_error(cap), "no [2J way??");
}

static void test_invalid_answer_ends_the_capture(void **state)
{
	uint64_t packets[2];

	put_some(0, 4);
	peer.answer = answers_without_a_body;
	assert_int_equal(ringtap_capture_filter(cap, &none, 1), -EPROTO);
	assert_int_equal(read_all(packets), -EPIPE);
	assert_int_equal(packets[true], 4);
}

static int silent_sock; /* the peer's thread writes, the test reads once it is posted */
static sem_t silent;

static bool is_silent_once(struct test_peer *p, int sock, uint16_t type)
{
	if (type != RT_MSG_FILTER)
		return test_peer_answer(p, sock, type);
	if (rt_load(&silent_sock) >= 0) {
		answer_filter(sock, 0, "");
		return true;
	}
	rt_store(&silent_sock, sock);
	sem_post(&silent);
	return true;
}

/* The socket of the silent peer, after it has received the request. */
static int silent_peer(void)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += 10;
	assert_int_equal(sem_clockwait(&silent, CLOCK_MONOTONIC, &until), 0);
	return rt_load(&silent_sock);
}

/* The application may be stopped: the capture continues, and further requests are possible. */
static void test_late_answer_is_discarded(void **state)
{
	uint64_t packets[2];
	int before = rt_reader_limits.filter_ms;

	rt_store(&silent_sock, -1);
	sem_init(&silent, 0, 0);
	rt_reader_limits.filter_ms = 20;
	peer.answer = is_silent_once;
	assert_int_equal(ringtap_capture_filter(cap, &none, 1), -ETIMEDOUT);
	assert_string_equal(ringtap_capture_error(cap), "the probe does not answer");
	assert_true(ringtap_capture_filtering(cap));
	put_some(0, 4);
	assert_int_equal(read_all(packets), 0);
	assert_int_equal(packets[false], 4);
	/* No second request before the first is answered. */
	assert_int_equal(ringtap_capture_filter(cap, &none, 1), -ETIMEDOUT);
	rt_reader_limits.filter_ms = before;
	answer_filter(silent_peer(), -EINVAL, "too late");
	assert_int_equal(ringtap_capture_filter(cap, &none, 1), 0);
	assert_false(ringtap_capture_filtering(cap));
	put_some(0, 3);
	assert_int_equal(read_all(packets), 0);
	assert_int_equal(packets[false], 3);
}

static void test_late_answer_is_received_while_reading(void **state)
{
	uint64_t packets[2];
	int before = rt_reader_limits.filter_ms;

	rt_store(&silent_sock, -1);
	sem_init(&silent, 0, 0);
	rt_reader_limits.filter_ms = 20;
	peer.answer = is_silent_once;
	assert_int_equal(ringtap_capture_filter(cap, &none, 1), -ETIMEDOUT);
	rt_reader_limits.filter_ms = before;
	answer_filter(silent_peer(), 0, "");
	for (int i = 0; i < 500 && ringtap_capture_filtering(cap); i++)
		assert_int_equal(read_all(packets), 0);
	assert_false(ringtap_capture_filtering(cap));
	put_some(0, 4);
	assert_int_equal(read_all(packets), 0);
	assert_int_equal(packets[false], 4);
}

/* Its records can still be read, and checked. */
static void test_filter_after_the_application_has_ended(void **state)
{
	uint64_t packets[2];

	put_some(0, 4);
	test_peer_die(&peer);
	assert_int_equal(ringtap_capture_filter(cap, &none, 1), 0);
	assert_int_equal(read_all(packets), -EPIPE);
	assert_int_equal(packets[true], 4);
	test_peer_bury(&peer);
	test_peer_start(&peer, true); /* for the tear-down */
}

static void test_filter_is_bounded(void **state)
{
	assert_int_equal(ringtap_capture_filter(cap, &none, RT_MAX_INSNS + 1), -E2BIG);
	assert_int_equal(ringtap_capture_filter(cap, &none, 0), -E2BIG);
}

#define started(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		started(test_records_published_before_the_answer_are_stale),
		started(test_capture_continues_after_a_refused_filter),
		started(test_control_characters_in_a_refusal_are_replaced),
		started(test_invalid_answer_ends_the_capture),
		started(test_late_answer_is_discarded),
		started(test_late_answer_is_received_while_reading),
		started(test_filter_after_the_application_has_ended),
		started(test_filter_is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
