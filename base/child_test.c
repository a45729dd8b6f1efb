/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "child.h"
#include "util.h"

#define PATIENCE_NS (20 * NS_PER_S)

static void start(struct child *c, unsigned flags, const char *script)
{
	const char *const argv[] = {"sh", "-c", script, NULL};

	assert_int_equal(child_start(c, argv, &(struct child_config){.flags = flags}), 0);
}

static void watch_until_end(struct child *c)
{
	uint64_t until = now_ns(CLOCK_MONOTONIC) + PATIENCE_NS;

	while (!c->ended && now_ns(CLOCK_MONOTONIC) < until)
		child_watch(c, -1, -1, NS_PER_S);
	assert_true(c->ended);
}

static void watch_until_text(struct child *c)
{
	uint64_t until = now_ns(CLOCK_MONOTONIC) + PATIENCE_NS;

	while (!c->text[0].len && now_ns(CLOCK_MONOTONIC) < until)
		child_watch(c, -1, -1, NS_PER_S);
	assert_true(c->text[0].len > 0);
}

static void output_and_status(void **state)
{
	char end[CHILD_END_LEN];
	struct child c;

	start(&c, CHILD_READ_OUT | CHILD_READ_ERR, "echo out; echo err >&2; exit 3");
	watch_until_end(&c);
	assert_string_equal(c.text[0].data, "out\n");
	assert_string_equal(c.text[1].data, "err\n");
	assert_string_equal(child_end(&c, end), "status 3");
	child_free(&c);
	child_free(&c); /* again: nothing to do */
}

static void what_the_child_reads_is_not_the_terminals(void **state)
{
	struct child c;

	start(&c, CHILD_READ_OUT, "cat; echo end");
	watch_until_end(&c);
	assert_string_equal(c.text[0].data, "end\n");
	child_free(&c);
}

static void no_such_program(void **state)
{
	const char *const argv[] = {"no-such-program", NULL};
	const struct child_config cfg = {.flags = CHILD_READ_OUT};
	struct child c;

	assert_int_equal(child_start(&c, argv, &cfg), -ENOENT);
	assert_int_equal(c.pid, 0);
	child_free(&c);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* none is left */
	assert_false(child_found("no-such-program"));
	assert_true(child_found("sh"));
}

static void stopping_is_bounded(void **state)
{
	char end[CHILD_END_LEN];
	struct child c;

	start(&c, CHILD_READ_OUT, "trap '' TERM; echo ready; while :; do sleep 1; done");
	watch_until_text(&c);
	assert_false(child_stop(&c, SIGTERM, NS_PER_S / 10));
	assert_string_equal(child_end(&c, end), "signal 9 (Killed)");
	child_free(&c);
}

static void stopping_takes_the_output_along(void **state)
{
	char end[CHILD_END_LEN];
	struct child c;

	start(&c, CHILD_READ_OUT,
		"trap 'echo bye; exit 4' TERM; echo ready; while :; do sleep 0.01; done");
	watch_until_text(&c);
	assert_int_equal(kill(c.pid, SIGSTOP), 0); /* it is continued to end */
	assert_true(child_stop(&c, SIGTERM, PATIENCE_NS));
	assert_string_equal(c.text[0].data, "ready\nbye\n");
	assert_string_equal(child_end(&c, end), "status 4");
	child_free(&c);
}

/* More than a pipe takes, from a child that is not watched while it runs. */
static void stored_output(void **state)
{
	struct child c;

	start(&c, CHILD_STORE_OUT, "head -c 300000 /dev/zero | tr '\\0' x; echo no >&2");
	assert_int_equal(waitid(P_PID, (id_t)c.pid, NULL, WEXITED | WNOWAIT), 0);
	watch_until_end(&c);
	assert_int_equal(c.text[0].len, 300000);
	assert_int_equal(strspn(c.text[0].data, "x"), 300000);
	assert_int_equal(c.text[1].len, 0);
	child_free(&c);
}

/* The pipe's end is the end of all that have it open: the child does not outlive its parent. */
static void killed_with_its_parent(void **state)
{
	int fd[2], ready[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe(fd), 0);
	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (!pid) {
		const char *const argv[] = {"sleep", "1000", NULL};
		struct child c;

		(void)!write(
			ready[1], child_start(&c, argv, &(struct child_config){0}) ? "n" : "y", 1);
		for (;;)
			pause();
	}
	close(fd[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	assert_int_equal(byte, 'y');
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(read(fd[0], &byte, 1), 0);
	close(fd[0]);
	close(ready[0]);
	close(ready[1]);
}

static void messages_are_passed_on_without_the_notice(void **state)
{
	int saved = dup(STDERR_FILENO), fd[2];
	char got[64] = "";
	struct child c;

	assert_int_equal(pipe(fd), 0);
	assert_int_equal(dup2(fd[1], STDERR_FILENO), STDERR_FILENO);
	start(&c, CHILD_READ_ERR | CHILD_PASS_ERR, "printf 'a\\nNOTICE x\\nb\\n' >&2");
	c.notice = "NOTICE";
	watch_until_end(&c);
	assert_int_equal(dup2(saved, STDERR_FILENO), STDERR_FILENO);
	assert_null(c.notice);
	assert_int_equal(read(fd[0], got, sizeof(got) - 1), 4);
	assert_string_equal(got, "a\nb\n");
	close(saved);
	close(fd[0]);
	close(fd[1]);
	child_free(&c);
}

/* All of it, though more than the pipe has room for, and than is read at once. */
static void output_is_passed_on_without_the_notice(void **state)
{
	enum { LINES = 50000 }; /* lines of 8 bytes */
	int saved = dup(STDOUT_FILENO), fd[2], left;
	char wanted[16], got[16];
	struct child c;
	FILE *f;
	pid_t pid;

	assert_int_equal(pipe(fd), 0);
	fflush(stdout);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		close(fd[1]);
		f = fdopen(fd[0], "r");
		for (left = LINES; left; left--) {
			snprintf(wanted, sizeof(wanted), "%07d\n", LINES - left + 1);
			if (!fgets(got, sizeof(got), f) || strcmp(got, wanted))
				break;
		}
		_exit(left || fgetc(f) != EOF);
	}
	close(fd[0]);
	assert_int_equal(dup2(fd[1], STDOUT_FILENO), STDOUT_FILENO);
	close(fd[1]);
	start(&c, CHILD_READ_OUT | CHILD_PASS_OUT,
		"seq -f %07.0f 10; echo NOTICE; seq -f %07.0f 11 50000");
	c.notice = "NOTICE";
	watch_until_end(&c);
	assert_int_equal(dup2(saved, STDOUT_FILENO), STDOUT_FILENO);
	assert_null(c.notice);
	close(saved);
	child_free(&c);
	assert_int_equal(waitpid(pid, &left, 0), pid);
	assert_int_equal(left, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(output_and_status),
		cmocka_unit_test(what_the_child_reads_is_not_the_terminals),
		cmocka_unit_test(no_such_program),
		cmocka_unit_test(stopping_is_bounded),
		cmocka_unit_test(stopping_takes_the_output_along),
		cmocka_unit_test(stored_output),
		cmocka_unit_test(killed_with_its_parent),
		cmocka_unit_test(messages_are_passed_on_without_the_notice),
		cmocka_unit_test(output_is_passed_on_without_the_notice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
