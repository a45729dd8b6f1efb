/* SPDX-License-Identifier: BSD-3-Clause */
/* Captures that begin with a part of their buffer, against a false probe. */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "capture.h"
#include "common/ipc.h"
#include "common/test_pages.h"
#include "reader/test_peer.h"

#define MIB   (1ull << 20)
#define FIRST (2 * MIB)
#define ALL   (40 * MIB) /* in pieces of 16, 18 and 4 MiB */
#define LATE  (37 * MIB) /* in the last one */

static const struct ringtap_target all = {.queue = -1, .directions = RINGTAP_RX | RINGTAP_TX};
static struct test_session session;
static struct test_peer peer;
static struct ringtap_capture *cap;
static unsigned grown; /* messages; of the peer's thread */

static int set_up(void **state)
{
	test_session_make(&session, 1, ALL);
	peer = (struct test_peer){.session = &session, .first = FIRST};
	grown = 0;
	test_peer_start(&peer, true);
	return ringtap_capture_create(&cap, NULL);
}

static int tear_down(void **state)
{
	ringtap_capture_close(cap); /* ends the thread that looks for it */
	test_available_end();
	test_peer_stop(&peer);
	test_session_free(&session);
	return 0;
}

static void start(void)
{
	if (ringtap_capture_attach(cap, peer.dir, &all, 1, NULL) || ringtap_capture_start(cap))
		fail_msg("%s", ringtap_capture_error(cap));
}

static uint64_t size_now(void)
{
	struct ringtap_ring ring = {.size = sizeof(ring)};

	assert_int_equal(ringtap_capture_ring(cap, 0, &ring), 0);
	return ring.buffer_size;
}

static int next(struct ringtap_run *run, int timeout_ms)
{
	return ringtap_capture_next(cap, run, 1, timeout_ms);
}

static void wait_for_size(uint64_t size)
{
	struct ringtap_run run;

	while (size_now() != size)
		assert_int_equal(next(&run, 1), 0);
}

/* Until the rest comes no more, for this reason. */
static void wait_for_error(const char *why)
{
	struct ringtap_run run;

	while (!ringtap_capture_buffer_error(cap)[0])
		assert_int_equal(next(&run, 1), 0);
	assert_non_null(strstr(ringtap_capture_buffer_error(cap), why));
}

/* A packet at this place of the ring, whose chunks before it are empty. */
static void put(uint64_t at)
{
	session.pos[0] = at;
	test_put(&session, 0, 5, 0, 60);
	test_publish(&session, 0, 5);
}

static void read_one(void)
{
	struct ringtap_run run = {.size = sizeof(run)};
	int n;

	while (!(n = next(&run, 1000)))
		;
	assert_int_equal(n, 1);
	assert_int_equal(run.packets, 1);
	ringtap_capture_release(cap);
}

static void assert_readable(uint64_t at)
{
	put(at);
	read_one();
}

static void test_packets_flow_before_the_rest_is_there(void **state)
{
	start();
	assert_int_equal(peer.open.flags, RT_OPEN_GROWS);
	assert_readable(0);
	wait_for_size(ALL);
	assert_int_equal(session.there, ALL);
	assert_readable(LATE);
	assert_string_equal(ringtap_capture_buffer_error(cap), "");
}

static void test_older_probes_get_all_of_it_first(void **state)
{
	peer.first = 0;
	start();
	assert_int_equal(peer.open.flags, 0);
	assert_int_equal(size_now(), ALL);
	assert_readable(LATE);
}

static bool refuse_the_second(struct test_peer *p, int sock, uint16_t type)
{
	if (type != RT_MSG_GROW || grown++ != 1)
		return test_peer_answer(p, sock, type);
	test_peer_grown(sock, -ENOMEM, "its memory\x1b is locked");
	return true;
}

/* Refused memory is not mapped, and neither are the pieces behind it. */
static void test_refused_memory_is_not_the_end(void **state)
{
	peer.answer = refuse_the_second;
	start();
	wait_for_error("is locked");
	assert_null(strchr(ringtap_capture_buffer_error(cap), 0x1b));
	assert_int_equal(size_now(), 18 * MIB);
	assert_readable(0);
}

static bool answer_unasked(struct test_peer *p, int sock, uint16_t type)
{
	bool more = test_peer_answer(p, sock, type);

	if (type == RT_MSG_START)
		for (unsigned i = 0; i < 100; i++)
			test_peer_grown(sock, 0, "");
	return more;
}

static void test_answers_without_a_request_end_the_capture(void **state)
{
	struct ringtap_run run = {.size = sizeof(run)};
	int ret;

	peer.first = ALL;
	peer.answer = answer_unasked;
	start();
	while (!(ret = next(&run, 1)))
		;
	assert_int_equal(ret, -EPIPE);
	assert_non_null(strstr(ringtap_capture_error(cap), "invalid answer"));
}

static bool answer_in_between(struct test_peer *p, int sock, uint16_t type)
{
	struct rt_msg_filtered m = {0};

	switch (type) {
	case RT_MSG_GROW:
		if (!test_session_grow(p->session, p->fds[0]))
			return false;
		grown++;
		return true;
	case RT_MSG_FILTER:
		/* All memory has come: the answers to it come before the one that is awaited. */
		if (grown != 3)
			m.code = -EAGAIN;
		for (unsigned i = 0; i < 3 && grown == 3; i++)
			test_peer_grown(sock, 0, "");
		rt_msg_init(&m.h, RT_MSG_FILTERED, sizeof(m));
		return !rt_msg_send(sock, &m.h, NULL, 0);
	default: return test_peer_answer(p, sock, type);
	}
}

static void test_answers_may_come_before_others(void **state)
{
	peer.answer = answer_in_between;
	start();
	while (ringtap_capture_filter(cap, NULL, 0))
		;
	wait_for_size(ALL);
}

static bool hang_up(struct test_peer *p, int sock, uint16_t type)
{
	return type != RT_MSG_GROW && test_peer_answer(p, sock, type);
}

static void test_application_that_ends_meanwhile(void **state)
{
	struct ringtap_run run = {.size = sizeof(run)};
	int ret;

	peer.answer = hang_up;
	start();
	assert_readable(0);
	while (!(ret = next(&run, 1)))
		;
	assert_int_equal(ret, -EPIPE);
	assert_string_equal(ringtap_capture_buffer_error(cap), "");
}

/* Other programs take what is left. */
static void test_memory_that_is_gone_by_now_is_not_taken(void **state)
{
	assert_int_equal(ringtap_capture_attach(cap, peer.dir, &all, 1, NULL), 0);
	test_available(60 << 10); /* KiB: less than twice of what is missing */
	assert_int_equal(ringtap_capture_start(cap), 0);
	wait_for_error("not enough memory");
	assert_int_equal(size_now(), FIRST);
	assert_readable(0);
}

/* With any number of pieces under way. */
static void test_captures_end_while_they_grow(void **state)
{
	int before = dup(0), after;

	close(before);
	for (unsigned i = 0; i < 8; i++) {
		start();
		if (i > 3)
			wait_for_size(ALL);
		if (i % 2)
			assert_int_equal(ringtap_capture_stop(cap), 0);
		tear_down(state);
		set_up(state);
	}
	after = dup(0);
	close(after);
	assert_in_range(after, 0, before + 3); /* those of the last capture */
}

/* Daemons: the parent ends, the child reads. */
static void test_child_process_has_all_of_it(void **state)
{
	int status;
	pid_t pid;

	start();
	pid = fork();
	if (!pid) {
		read_one();
		wait_for_size(ALL);
		ringtap_capture_close(cap);
		_exit(0);
	}
	/* fork() has waited until all was sent. */
	while (rt_load_acquire(&session.there) != ALL)
		sched_yield();
	put(LATE);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void test_losses_before_the_rest_is_there_are_told_apart(void **state)
{
	struct ringtap_stats s = {.size = sizeof(s)};
	uint64_t took;

	start();
	rt_store(&session.counts[1].lost[RT_LOSS_RING_FULL], 7);
	assert_int_equal(ringtap_capture_stats(cap, &s), 0);
	assert_int_equal(s.growing_lost, 7);
	assert_true(s.growing_ns > 0);
	wait_for_size(ALL);
	assert_int_equal(ringtap_capture_stats(cap, &s), 0);
	took = s.growing_ns;
	rt_store(&session.counts[1].lost[RT_LOSS_RING_FULL], 9);
	assert_int_equal(ringtap_capture_stats(cap, &s), 0);
	assert_int_equal(s.growing_lost, 7);
	assert_int_equal(s.growing_ns, took);
	assert_int_equal(s.total.lost[RINGTAP_LOST_FULL], 9);
}

static int peers_end;
static uint32_t unanswered; /* release: peers_end is there */

static bool answer_later(struct test_peer *p, int sock, uint16_t type)
{
	if (type != RT_MSG_GROW)
		return test_peer_answer(p, sock, type);
	peers_end = sock;
	rt_fetch_add_release(&unanswered, 1);
	return test_session_grow(p->session, p->fds[0]);
}

static bool readable(int fd, int timeout_ms)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, timeout_ms) == 1;
}

/* An application that has no CPU answers after ringtap_capture_fd() has stopped waiting. */
static void test_answers_do_not_make_the_descriptor_readable(void **state)
{
	struct ringtap_run run = {.size = sizeof(run)};
	int fd, ret;

	unanswered = 0;
	peer.answer = answer_later;
	start();
	fd = ringtap_capture_fd(cap, false);
	assert_int_equal(rt_load_acquire(&unanswered), 3);
	for (int i = 0; i < 3; i++) {
		test_peer_grown(peers_end, 0, "");
		assert_false(readable(fd, 20));
		ret = next(&run, 1);
		assert_int_equal(ret, 0);
		ringtap_capture_rearm(cap, false);
	}
	assert_int_equal(size_now(), ALL);
	assert_int_equal(ringtap_capture_stop(cap), 0);
	assert_true(readable(fd, 5000));
}

#define with_peer(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_peer(test_packets_flow_before_the_rest_is_there),
		with_peer(test_older_probes_get_all_of_it_first),
		with_peer(test_refused_memory_is_not_the_end),
		with_peer(test_answers_without_a_request_end_the_capture),
		with_peer(test_answers_may_come_before_others),
		with_peer(test_application_that_ends_meanwhile),
		with_peer(test_memory_that_is_gone_by_now_is_not_taken),
		with_peer(test_captures_end_while_they_grow),
		with_peer(test_child_process_has_all_of_it),
		with_peer(test_losses_before_the_rest_is_there_are_told_apart),
		with_peer(test_answers_do_not_make_the_descriptor_readable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
