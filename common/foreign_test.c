/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/test_util.h"
#include "foreign.h"

static int setup(void **state)
{
	test_folder_enter();
	return 0;
}

static int teardown(void **state)
{
	test_folder_leave();
	return 0;
}

static void only_regular_files_are_opened(void **state)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX, .sun_path = "socket"};
	int s = socket(AF_UNIX, SOCK_STREAM, 0), fd;
	struct stat st;

	assert_int_equal(mkfifo("pipe", 0600), 0);
	assert_int_equal(bind(s, (struct sockaddr *)&a, sizeof(a)), 0);
	test_write("file", "abc", 3);
	assert_int_equal(symlink("file", "link"), 0);
	assert_int_equal(rt_foreign_open(AT_FDCWD, "pipe", 0, &st), -EPERM);
	assert_int_equal(rt_foreign_open(AT_FDCWD, "socket", 0, &st), -EPERM);
	assert_int_equal(rt_foreign_open(AT_FDCWD, "/dev/null", 0, &st), -EPERM);
	assert_int_equal(rt_foreign_open(AT_FDCWD, ".", 0, &st), -EPERM);
	assert_int_equal(rt_foreign_open(AT_FDCWD, "link", O_NOFOLLOW, &st), -EPERM);
	assert_int_equal(rt_foreign_open(AT_FDCWD, "none", 0, &st), -ENOENT);
	assert_int_equal(rt_foreign_reopen(-ESRCH, &st), -ESRCH);
	fd = rt_foreign_open(AT_FDCWD, "link", 0, &st);
	assert_true(fd >= 0);
	assert_int_equal(st.st_size, 3);
	close(fd);
	close(s);
}

/* Its holder lets an open() without O_NONBLOCK wait 45 seconds. */
static void leases_are_not_waited_for(void **state)
{
	struct stat st;
	int fd;

	test_write("leased", "", 0);
	fd = open("leased", O_RDONLY);
	signal(SIGIO, SIG_IGN);
	if (fcntl(fd, F_SETLEASE, F_WRLCK))
		skip();
	alarm(20);
	assert_int_equal(rt_foreign_open(AT_FDCWD, "leased", 0, &st), -EAGAIN);
	alarm(0);
	close(fd);
}

static void files_are_read_to_their_limit(void **state)
{
	char *data;

	test_write("four", "abcd", 4);
	assert_int_equal(rt_foreign_read(AT_FDCWD, "four", O_NOFOLLOW, 5, &data), 4);
	assert_string_equal(data, "abcd");
	free(data);
	assert_int_equal(rt_foreign_read(AT_FDCWD, "four", O_NOFOLLOW, 4, &data), -EFBIG);
	assert_null(data);
	/* One that grows, or seems empty. */
	assert_true(rt_foreign_read(AT_FDCWD, "/proc/self/status", 0, 65536, &data) > 100);
	free(data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_regular_files_are_opened),
		cmocka_unit_test(leases_are_not_waited_for),
		cmocka_unit_test(files_are_read_to_their_limit),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
