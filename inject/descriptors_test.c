/* SPDX-License-Identifier: BSD-3-Clause */
/* Processes near their limit of descriptors. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "judge.h"

/* A child that has this number of descriptors left; it lives until the pipe is closed. */
static pid_t child_with(int left, int *pipe_end)
{
	int up[2], down[2];
	pid_t child;
	char byte = 0;

	assert_int_equal(pipe(up) | pipe(down), 0);
	child = fork();
	if (!child) {
		const struct rlimit limit = {64, 64};
		int fd, last = -1;

		close(down[1]);
		setrlimit(RLIMIT_NOFILE, &limit);
		while ((fd = dup(0)) >= 0)
			last = fd;
		while (left--)
			close(last--);
		(void)!write(up[1], &byte, 1);
		_exit(read(down[0], &byte, 1) != 0);
	}
	assert_int_equal(read(up[0], &byte, 1), 1);
	close(up[0]);
	close(up[1]);
	close(down[0]);
	*pipe_end = down[1];
	return child;
}

static int judge(int left, char *err, size_t errlen)
{
	int end, ret;
	pid_t child = child_with(left, &end);

	ret = rt_judge_descriptors(child, err, errlen);
	close(end);
	waitpid(child, NULL, 0);
	return ret;
}

static void test_process_at_its_limit_is_refused(void **state)
{
	char err[256] = "";

	assert_int_equal(judge(0, err, sizeof(err)), -EMFILE);
	assert_non_null(strstr(err, "0 are left of 64"));
	assert_int_equal(judge(3, err, sizeof(err)), -EMFILE);
	assert_non_null(strstr(err, "3 are left of 64"));
	err[0] = 0;
	assert_int_equal(judge(4, err, sizeof(err)), 0);
	assert_string_equal(err, "");
}

static void test_what_cannot_be_read_is_no_reason(void **state)
{
	char err[256];

	assert_int_equal(rt_judge_descriptors(INT32_MAX, err, sizeof(err)), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_process_at_its_limit_is_refused),
		cmocka_unit_test(test_what_cannot_be_read_is_no_reason),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
