/* SPDX-License-Identifier: BSD-3-Clause */
/* The descriptor that is readable when packets can be read. */
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "capture.h"
#include "common/ipc.h"
#include "reader/test_peer.h"

#define RINGS   2u
#define RUN_MAX 64u

static const struct ringtap_target all = {.queue = -1, .directions = RINGTAP_RX | RINGTAP_TX};
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

#define PATIENCE_MS 5000

/* Reads until nothing is left, as a program does when the descriptor is readable. */
static uint64_t read_all(void)
{
	struct ringtap_run runs[RUN_MAX];
	uint64_t packets = 0;
	int n;

	while ((n = ringtap_capture_next(cap, runs, RUN_MAX, 1)) > 0) {
		for (int i = 0; i < n; i++)
			packets += runs[i].packets;
		ringtap_capture_release(cap);
	}
	ringtap_capture_rearm(cap, false);
	return packets;
}

static bool readable(int fd, int timeout_ms)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, timeout_ms) == 1;
}

static int descriptor(void)
{
	int fd = ringtap_capture_fd(cap, false);

	assert_true(fd >= 0);
	assert_int_equal(ringtap_capture_fd(cap, false), fd);
	return fd;
}

static void test_readable_while_there_are_packets(void **state)
{
	int fd = descriptor();

	for (unsigned i = 1; i < 200; i++) {
		assert_false(readable(fd, 0));
		put_some(i % RINGS, i % 7 + 1);
		assert_true(readable(fd, PATIENCE_MS));
		assert_true(readable(fd, 0)); /* until they are read */
		assert_int_equal(read_all(), i % 7 + 1);
	}
	assert_false(readable(fd, 20));
}

static void test_readable_if_packets_were_there_before(void **state)
{
	put_some(1, 3);
	assert_true(readable(descriptor(), 0));
	assert_int_equal(read_all(), 3);
	assert_false(readable(descriptor(), 5));
}

static void test_readable_while_the_caller_has_some_left(void **state)
{
	int fd = descriptor();

	ringtap_capture_rearm(cap, true);
	assert_true(readable(fd, 0));
	ringtap_capture_rearm(cap, true);
	assert_true(readable(fd, 0));
	ringtap_capture_rearm(cap, false);
	assert_false(readable(fd, 0));
}

static void test_select_and_epoll(void **state)
{
	int fd = descriptor(), ep = epoll_create1(0);
	struct epoll_event ev = {.events = EPOLLIN};
	struct timeval patience = {.tv_sec = PATIENCE_MS / 1000};
	fd_set set;

	assert_int_equal(epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev), 0);
	assert_int_equal(epoll_wait(ep, &ev, 1, 5), 0);
	put_some(0, 2);
	assert_int_equal(epoll_wait(ep, &ev, 1, PATIENCE_MS), 1);
	assert_int_equal(epoll_wait(ep, &ev, 1, 0), 1);
	FD_ZERO(&set);
	FD_SET(fd, &set);
	assert_int_equal(select(fd + 1, &set, NULL, NULL, &patience), 1);
	assert_int_equal(read_all(), 2);
	assert_int_equal(epoll_wait(ep, &ev, 1, 5), 0);
	close(ep);
}

static void test_edge_triggered(void **state)
{
	int fd = descriptor(), ep = epoll_create1(0);
	struct epoll_event ev = {.events = EPOLLIN | EPOLLET};

	assert_int_equal(epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev), 0);
	for (int i = 0; i < 50; i++) {
		put_some(0, 1);
		assert_int_equal(epoll_wait(ep, &ev, 1, PATIENCE_MS), 1);
		assert_int_equal(read_all(), 1);
	}
	close(ep);
}

/* A reader of one packet per edge gets an edge for the rest. */
static void test_edges_for_a_reader_that_leaves_packets(void **state)
{
	int fd = descriptor(), ep = epoll_create1(0);
	struct epoll_event ev = {.events = EPOLLIN | EPOLLET};

	assert_int_equal(epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev), 0);
	for (int i = 0; i < 50; i++) {
		put_some(0, 3);
		assert_int_equal(epoll_wait(ep, &ev, 1, PATIENCE_MS), 1);
		ringtap_capture_rearm(cap, true);
	}
	assert_int_equal(read_all(), 150);
	assert_false(readable(fd, 5));
	close(ep);
}

/* Idle children do not make the descriptor readable for packets that the parent has read. */
static void test_idle_children_do_not_disturb(void **state)
{
#ifdef __SANITIZE_THREAD__
	skip(); /* ThreadSanitizer allows no threads in children of a threaded process */
#else
	int fd = descriptor();
	pid_t children[3];

	for (int i = 0; i < 3; i++) {
		children[i] = fork();
		assert_true(children[i] >= 0);
		if (!children[i]) {
			pause();
			_exit(0);
		}
	}
	for (int i = 0; i < 20; i++) {
		put_some(i % RINGS, 2);
		assert_true(readable(fd, PATIENCE_MS));
		assert_int_equal(read_all(), 2);
		assert_false(readable(fd, 10));
	}
	for (int i = 0; i < 3; i++) {
		kill(children[i], SIGKILL);
		waitpid(children[i], NULL, 0);
	}
#endif
}

static void test_stays_readable_after_the_end(void **state)
{
	struct ringtap_run run;
	int fd = descriptor();

	assert_false(readable(fd, 0));
	test_peer_die(&peer);
	assert_true(readable(fd, PATIENCE_MS));
	while (ringtap_capture_next(cap, &run, 1, 1) != -EPIPE)
		;
	ringtap_capture_rearm(cap, false);
	assert_true(readable(fd, 0));
	test_peer_bury(&peer);
	test_peer_start(&peer, true); /* for the tear-down */
}

static void test_ports_that_come_and_go(void **state)
{
	int fd = descriptor();

	assert_false(readable(fd, 5));
	rt_store(&session.ifs[1].state, RT_IF_GONE);
	assert_true(readable(fd, PATIENCE_MS));
	assert_int_equal(read_all(), 0);
	assert_false(readable(fd, 5));
	rt_store(&session.h->if_count, 3);
	assert_true(readable(fd, PATIENCE_MS));
	assert_int_equal(read_all(), 0);
	assert_false(readable(fd, 5));
}

/* A daemon waits and reads in the child. */
static void test_child_continues_reading(void **state)
{
#ifdef __SANITIZE_THREAD__
	skip(); /* ThreadSanitizer allows no threads in children of a threaded process */
#else
	int fd = descriptor(), status, pipe_fds[2];
	pid_t child;
	char ready;

	assert_int_equal(pipe(pipe_fds), 0);
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		bool ok = !readable(fd, 0) && write(pipe_fds[1], "", 1) == 1;

		ok = ok && readable(fd, PATIENCE_MS) && read_all() == 4 && !readable(fd, 0);
		_exit(ok ? 0 : 1);
	}
	assert_int_equal(read(pipe_fds[0], &ready, 1), 1);
	put_some(0, 4);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	close(pipe_fds[0]);
	close(pipe_fds[1]);
#endif
}

static void test_many_come_and_go(void **state)
{
	for (int i = 0; i < 100; i++) {
		descriptor();
		if (i % 2)
			put_some(0, 1);
		ringtap_capture_close(cap);
		assert_int_equal(ringtap_capture_create(&cap, NULL), 0);
		assert_int_equal(ringtap_capture_attach(cap, peer.dir, &all, 1, NULL), 0);
		assert_int_equal(ringtap_capture_start(cap), 0);
	}
}

#define started(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

static void test_a_thread_that_begins_makes_it_readable(void **state)
{
	int fd;

	/* As if the second ring had not been used yet. */
	rt_store(&session.h->used[0], 1);
	cap->sources[0].rings[0] = 1;
	cap->in_count = 1;
	fd = descriptor();
	read_all();
	assert_false(readable(fd, 0));
	put_some(1, 3);
	rt_fetch_or(&session.h->used[0], 2);
	assert_true(readable(fd, PATIENCE_MS));
	assert_int_equal(read_all(), 3);
	assert_false(readable(fd, 0));
	put_some(1, 2);
	assert_true(readable(fd, PATIENCE_MS));
	assert_int_equal(read_all(), 2);
}

static uint64_t pause_noted(void)
{
	struct ringtap_stats stats = {.size = sizeof(stats)};
	struct ringtap_run run;
	uint64_t began = rt_mono_ns();

	while (rt_mono_ns() - began < 1000000)
		;
	ringtap_capture_next(cap, &run, 1, 0);
	ringtap_capture_stats(cap, &stats);
	return stats.longest_pause_ns;
}

static void test_a_pause_may_begin_before_the_first_look(void **state)
{
	assert_true(pause_noted() >= 1000000);
}

static void test_a_caller_that_waits_for_the_descriptor_does_not_pause(void **state)
{
	uint64_t before;

	descriptor();
	read_all();
	before = cap->longest_pause_ns;
	assert_int_equal(pause_noted(), before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		started(test_readable_while_there_are_packets),
		started(test_readable_if_packets_were_there_before),
		started(test_readable_while_the_caller_has_some_left),
		started(test_select_and_epoll),
		started(test_edge_triggered),
		started(test_edges_for_a_reader_that_leaves_packets),
		started(test_idle_children_do_not_disturb),
		started(test_stays_readable_after_the_end),
		started(test_ports_that_come_and_go),
		started(test_child_continues_reading),
		started(test_many_come_and_go),
		started(test_a_thread_that_begins_makes_it_readable),
		started(test_a_pause_may_begin_before_the_first_look),
		started(test_a_caller_that_waits_for_the_descriptor_does_not_pause),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
