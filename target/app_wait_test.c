/* SPDX-License-Identifier: BSD-3-Clause */
/* When an application is attached to, and how often one that cannot be. */
#include <linux/cn_proc.h>
#include <linux/connector.h>
#include <linux/netlink.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "app_wait.h"
#include "process_events.h"
#include "test_apps.h"
#include "base/signals.h"
#include "base/util.h"
#include "common/test_now.h"

static void test_delays_double_up_to_a_minute(void **state)
{
	const unsigned seconds[] = {1, 2, 4, 8, 16, 32, 60, 60, 60};
	struct app_wait w = {0};

	(void)state;
	for (size_t i = 0; i < sizeof(seconds) / sizeof(seconds[0]); i++)
		assert_int_equal(app_wait_delay(&w, 4711), seconds[i] * NS_PER_S);
	/* For ever. */
	for (unsigned i = 0; i < 1000; i++)
		assert_int_equal(app_wait_delay(&w, 4711), 60 * NS_PER_S);
}

static void test_another_process_begins_again(void **state)
{
	struct app_wait w = {0};

	(void)state;
	for (unsigned i = 0; i < 10; i++)
		app_wait_delay(&w, 4711);
	assert_int_equal(app_wait_delay(&w, 4712), NS_PER_S);
	assert_int_equal(app_wait_delay(&w, 4712), 2 * NS_PER_S);
}

/* One in another PID namespace has none here. */
static void test_unknown_process(void **state)
{
	struct app_wait w = {0};

	(void)state;
	assert_int_equal(app_wait_delay(&w, 0), NS_PER_S);
	assert_int_equal(app_wait_delay(&w, 0), 2 * NS_PER_S);
}

/* ---- with a clock that is set */

/* Without events of the kernel, which are not those of the applications here. */
#define QUIET .quiet = true, .events = -1

static int begin(void **state)
{
	(void)state;
	test_now_set(TEST_NOW_MONO_NS, TEST_NOW_REAL_NS);
	memset(&test_apps, 0, sizeof(test_apps));
	test_apps.app[0] = (struct test_app){.name = "app", .dir = "/no/app", .pid = 4711};
	test_apps.count = 1;
	return 0;
}

static int end(void **state)
{
	(void)state;
	stop_forget();
	return 0;
}

static uint64_t now(void)
{
	return rt_now_ns(CLOCK_MONOTONIC) - TEST_NOW_MONO_NS;
}

static void appear(void *arg)
{
	test_apps.count++;
}

static void vanish(void *arg)
{
	test_apps.count--;
}

static void restart(void *arg)
{
	test_apps.app[0].pid++;
}

static void interrupt(void *arg)
{
	(void)arg;
	raise(SIGTERM);
}

static void test_one_that_runs_is_not_waited_for(void **state)
{
	struct app_wait any = {QUIET}, named = {QUIET, .word = "app"};

	(void)state;
	assert_true(app_wait(&any));
	assert_true(app_wait(&named));
	assert_int_equal(now(), 0);
}

static void test_one_that_starts_is_found_within_half_a_second(void **state)
{
	struct app_wait other = {QUIET, .word = "other"};

	(void)state;
	test_apps.app[1] = (struct test_app){.name = "other", .dir = "/no/other", .pid = 12};
	test_now_after(33 * NS_PER_S / 10, appear, NULL);
	assert_true(app_wait(&other));
	assert_in_range(now(), 33 * NS_PER_S / 10, 38 * NS_PER_S / 10);
}

static void test_a_signal_ends_the_waiting(void **state)
{
	struct app_wait w = {QUIET};

	(void)state;
	test_apps.count = 0;
	test_now_after(5 * NS_PER_S, interrupt, NULL);
	assert_false(app_wait(&w));
	assert_int_equal(now(), 5 * NS_PER_S);
}

static void test_retries_take_their_delays(void **state)
{
	struct app_wait w = {QUIET};

	(void)state;
	assert_true(app_wait_retry(&w));
	assert_int_equal(now(), NS_PER_S);
	assert_true(app_wait_retry(&w));
	assert_int_equal(now(), 3 * NS_PER_S);
	assert_true(app_wait_retry(&w));
	assert_int_equal(now(), 7 * NS_PER_S);
}

static void test_a_restart_ends_the_delay(void **state)
{
	struct app_wait w = {QUIET, .failed_pid = test_apps.app[0].pid, .delay_ns = 30 * NS_PER_S};

	(void)state;
	test_now_after(12 * NS_PER_S, restart, NULL);
	assert_true(app_wait_retry(&w));
	assert_in_range(now(), 12 * NS_PER_S, 13 * NS_PER_S);
	assert_int_equal(w.delay_ns, 0);
}

static void test_an_end_is_followed_by_waiting(void **state)
{
	struct app_wait w = {QUIET, .failed_pid = test_apps.app[0].pid, .delay_ns = 30 * NS_PER_S};

	(void)state;
	test_now_after(12 * NS_PER_S, vanish, NULL);
	test_now_after(100 * NS_PER_S, appear, NULL);
	assert_true(app_wait_retry(&w));
	assert_in_range(now(), 100 * NS_PER_S, 101 * NS_PER_S);
}

static void test_a_signal_ends_the_delay(void **state)
{
	struct app_wait w = {QUIET, .failed_pid = test_apps.app[0].pid, .delay_ns = 30 * NS_PER_S};

	(void)state;
	test_now_after(12 * NS_PER_S, interrupt, NULL);
	assert_false(app_wait_retry(&w));
	assert_int_equal(now(), 12 * NS_PER_S);
}

/* ---- what the kernel reports */

struct message {
	struct nlmsghdr header;
	struct cn_msg connector;
	struct proc_event event;
} __attribute__((packed));

static void send_event(int fd, uint32_t what)
{
	struct message m = {.event.what = what};

	assert_int_equal(send(fd, &m, sizeof(m), 0), sizeof(m));
}

static bool is_readable(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, 0) == 1;
}

static void test_programs_and_names_of_threads_are_taken(void **state)
{
	static const struct {
		uint32_t what;
		bool taken;
	} events[] = {{PROC_EVENT_NONE, false}, {PROC_EVENT_FORK, false}, {PROC_EVENT_EXEC, true},
		{PROC_EVENT_UID, false}, {PROC_EVENT_COMM, true}, {PROC_EVENT_EXIT, false}};
	int fds[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, fds), 0);
	assert_int_equal(process_events_filter(fds[0]), 0);
	for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++) {
		send_event(fds[1], events[i].what);
		assert_int_equal(is_readable(fds[0]), events[i].taken);
		process_events_take(fds[0]);
		assert_false(is_readable(fds[0]));
	}
	close(fds[0]);
	close(fds[1]);
}

static int reported[2];

static void appear_and_report(void *arg)
{
	appear(arg);
	send_event(reported[1], PROC_EVENT_EXEC);
}

static void test_an_event_ends_the_pause(void **state)
{
	struct app_wait w = {.quiet = true};

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, reported), 0);
	w.events = reported[0];
	test_apps.count = 0;
	test_now_after(33 * NS_PER_S / 10, appear_and_report, NULL);
	assert_true(app_wait(&w));
	assert_int_equal(now(), 33 * NS_PER_S / 10);
	app_wait_close(&w);
	close(reported[1]);
}

/* The descriptor of the process reports it, however long it takes. */
static void test_the_end_of_a_process_ends_the_waiting(void **state)
{
	struct app_wait w = {QUIET};
	pid_t pid = fork();

	(void)state;
	if (!pid)
		pause();
	kill(pid, SIGKILL);
	assert_true(app_wait_end(&w, (uint32_t)pid));
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_true(app_wait_end(&w, (uint32_t)pid)); /* it has ended before */
}

/* It is in another PID namespace. */
static void test_a_process_without_a_number_ends_when_it_is_not_found(void **state)
{
	struct app_wait w = {QUIET, .word = "app"};

	(void)state;
	test_apps.app[0].pid = 0;
	test_now_after(7 * NS_PER_S, vanish, NULL);
	assert_true(app_wait_end(&w, 0));
	assert_in_range(now(), 7 * NS_PER_S, 8 * NS_PER_S);
}

static void test_a_signal_ends_the_waiting_for_the_end(void **state)
{
	struct app_wait w = {QUIET, .word = "app"};

	(void)state;
	test_apps.app[0].pid = 0;
	test_now_after(7 * NS_PER_S, interrupt, NULL);
	assert_false(app_wait_end(&w, 0));
	stop_forget();
	raise(SIGTERM); /* the same wish */
	assert_false(stop_wait(0));
	test_now_pass(STOP_AGAIN_NS);
	raise(SIGTERM);
	assert_true(stop_wait(0));
	assert_false(app_wait_end(&w, (uint32_t)getpid()));
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_delays_double_up_to_a_minute),
		cmocka_unit_test(test_another_process_begins_again),
		cmocka_unit_test(test_unknown_process),
		CASE(test_one_that_runs_is_not_waited_for),
		CASE(test_one_that_starts_is_found_within_half_a_second),
		CASE(test_a_signal_ends_the_waiting),
		CASE(test_retries_take_their_delays),
		CASE(test_a_restart_ends_the_delay),
		CASE(test_an_end_is_followed_by_waiting),
		CASE(test_a_signal_ends_the_delay),
		CASE(test_programs_and_names_of_threads_are_taken),
		CASE(test_an_event_ends_the_pause),
		CASE(test_the_end_of_a_process_ends_the_waiting),
		CASE(test_a_process_without_a_number_ends_when_it_is_not_found),
		CASE(test_a_signal_ends_the_waiting_for_the_end),
	};

	if (stop_catch())
		return 1;

	return cmocka_run_group_tests(tests, NULL, NULL);
}
