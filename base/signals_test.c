/* SPDX-License-Identifier: BSD-3-Clause */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "signals.h"
#include "test_util.h"
#include "util.h"

/* The status of a child process, as wait() has it. */
static int status_of(void (*child)(void))
{
	int status = 0;
	pid_t pid = fork();

	if (!pid) {
		child();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void first_only_wakes(void)
{
	if (stop_catch_first() || stop_wait(0))
		_exit(1);
	raise(SIGINT);
	if (!stop_wait(NS_PER_S) || !stop_wait(NS_PER_S))
		_exit(2);
}

static void second_ends(void)
{
	first_only_wakes();
	raise(SIGINT);
}

/* The handler interrupts the waiting. */
static void waiting_ends(void)
{
	pid_t parent = getpid();

	if (stop_catch_first())
		_exit(1);
	if (!fork()) {
		kill(parent, SIGHUP);
		_exit(0);
	}
	if (!stop_wait(60 * NS_PER_S))
		_exit(2);
}

static void all_only_wake(void)
{
	if (stop_catch() || stop_wait(0))
		_exit(1);
	raise(SIGTERM);
	raise(SIGINT);
	if (!stop_wait(NS_PER_S))
		_exit(2);
	stop_forget();
	if (stop_wait(0))
		_exit(3);
	raise(SIGTERM); /* by the same timeout(1) */
	if (stop_wait(0))
		_exit(4);
}

static void one_signal_is_caught(void **state)
{
	int status = status_of(second_ends);

	assert_int_equal(status_of(first_only_wakes), 0);
	assert_int_equal(status_of(waiting_ends), 0);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGINT);
}

static void all_signals_are_caught(void **state)
{
	assert_int_equal(status_of(all_only_wake), 0);
}

static void time_ends_it(void)
{
	if (stop_catch() || stop_left(NS_PER_S) != NS_PER_S)
		_exit(1);
	stop_after(60 * NS_PER_S);
	if (stop_wait(0) || stop_left(NS_PER_S) != NS_PER_S ||
		stop_left(90 * NS_PER_S) > 60 * NS_PER_S)
		_exit(2);
	stop_after(NS_PER_S / 1000);
	if (!stop_wait(60 * NS_PER_S) || !stop_wait(0) || stop_left(NS_PER_S))
		_exit(3);
	stop_after(0);
	if (stop_wait(0) || stop_left(NS_PER_S) != NS_PER_S)
		_exit(4);
}

static void a_time_ends_the_waiting(void **state)
{
	assert_int_equal(status_of(time_ends_it), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_signal_is_caught),
		cmocka_unit_test(all_signals_are_caught),
		cmocka_unit_test(a_time_ends_the_waiting),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
