/* SPDX-License-Identifier: BSD-3-Clause */
/* Captures without their connections, in a child process, and without a queue. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "capture.h"
#include "reader/test_peer.h"

#define RUN_MAX 16u
#define PACKETS 5u

static const struct ringtap_target all = {.queue = -1, .directions = RINGTAP_RX | RINGTAP_TX};
static struct test_session session;
static struct test_peer peer;
static struct ringtap_capture *cap;
static struct ringtap_run runs[RUN_MAX];

static int set_up(void **state)
{
	return test_capture_open(&session, &peer, &cap, 1, true);
}

static int tear_down(void **state)
{
	return test_capture_close(&session, &peer, cap);
}

/* Hands out some packets. The number of runs. */
static int take(void)
{
	uint64_t now = test_now(&session);

	for (unsigned i = 0; i < PACKETS; i++)
		test_put(&session, 0, now, 0, 60);
	test_publish(&session, 0, now);
	return ringtap_capture_next(cap, runs, RUN_MAX, 1000);
}

static unsigned count(int n)
{
	struct ringtap_packets *it;
	unsigned packets = 0;

	if (ringtap_packets_create(&it))
		abort();
	for (int i = 0; i < n; i++) {
		ringtap_packets_start(it, &runs[i]);
		while (ringtap_packet_next(it))
			packets++;
	}
	ringtap_packets_free(it);
	return packets;
}

static void test_runs_outlive_the_connection(void **state)
{
	struct ringtap_stats stats = {.size = sizeof(stats)};
	int fd = cap->sources[0].conn->fd, n = take();
	uint64_t tail = session.tails[0].tail;

	assert_true(n > 0);
	assert_true(ringtap_capture_fd(cap, true) >= 0); /* with its thread */
	ringtap_capture_detach(cap);
	assert_int_equal(fcntl(fd, F_GETFD), -1);
	assert_int_equal(count(n), PACKETS);
	ringtap_capture_release(cap);
	assert_int_equal(session.tails[0].tail, tail);
	assert_int_equal(ringtap_capture_stats(cap, &stats), 0);
	assert_int_equal(stats.delivered, PACKETS);
	assert_int_equal(stats.apps_dead, 0);
}

static void test_nothing_works_that_needs_the_application(void **state)
{
	static const struct ringtap_insn any = {.code = 6, .k = 1000};

	ringtap_capture_detach(cap);
	ringtap_capture_detach(cap);
	assert_int_equal(take(), -EPIPE);
	assert_int_equal(ringtap_capture_start(cap), 0);
	assert_int_equal(ringtap_capture_stop(cap), 0);
	assert_int_equal(ringtap_capture_filter(cap, &any, 1), 0);
	assert_false(ringtap_capture_filtering(cap));
	assert_int_equal(ringtap_capture_attach(cap, peer.dir, &all, 1, NULL), -EINVAL);
	assert_non_null(strstr(ringtap_capture_error(cap), "detached"));
	ringtap_capture_break(cap);
	assert_int_equal(take(), -EPIPE);
}

/* The exit status says what went wrong. */
static void live_as_a_child(int fd, int n)
{
	ringtap_capture_detach(cap);
	if (fcntl(fd, F_GETFD) >= 0)
		_exit(1);
	if (count(n) != PACKETS)
		_exit(2);
	ringtap_capture_break(cap);
	ringtap_capture_release(cap);
	ringtap_capture_close(cap);
	_exit(0);
}

static void test_child_leaves_the_parents_session_alone(void **state)
{
	int fd = cap->sources[0].conn->fd, n = take(), status;
	uint64_t tail = session.tails[0].tail;
	pid_t child = fork();

	if (!child)
		live_as_a_child(fd, n);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	assert_int_equal(session.tails[0].tail, tail);
	ringtap_capture_release(cap);
	assert_int_not_equal(session.tails[0].tail, tail);
	assert_true(take() > 0);
	assert_int_equal(ringtap_capture_stop(cap), 0);
}

/* A queue has a limited number of captures. */
static void test_queues_that_have_no_room(void **state)
{
	struct ringtap_stats stats = {.size = sizeof(stats)};

	session.h->taps_refused = session.h->tap_count;
	assert_int_equal(ringtap_capture_attach(cap, peer.dir, &all, 1, NULL), 0);
	assert_int_equal(ringtap_capture_start(cap), -EBUSY);
	assert_non_null(strstr(ringtap_capture_error(cap), "too many captures of its queues"));
	ringtap_capture_close(cap);
	assert_int_equal(ringtap_capture_create(&cap, NULL), 0);
	session.h->taps_refused = 1;
	assert_int_equal(ringtap_capture_attach(cap, peer.dir, &all, 1, NULL), 0);
	assert_int_equal(ringtap_capture_start(cap), 0);
	assert_int_equal(ringtap_capture_stats(cap, &stats), 0);
	assert_int_equal(stats.queues_refused, 1);
}

static int open_only(void **state)
{
	return test_capture_open(&session, &peer, &cap, 1, false);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_runs_outlive_the_connection),
		TEST(test_nothing_works_that_needs_the_application),
		TEST(test_child_leaves_the_parents_session_alone),
		cmocka_unit_test_setup_teardown(
			test_queues_that_have_no_room, open_only, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
