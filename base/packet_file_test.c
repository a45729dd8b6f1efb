/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "packet_file.h"
#include "test_util.h"

#define OTHER 4711 /* a user */

static int setup(void **state)
{
	test_folder_enter();
	umask(0);
	return 0;
}

static int teardown(void **state)
{
	test_folder_leave();
	return 0;
}

static mode_t mode_of(const char *path)
{
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	return st.st_mode & 07777;
}

static void open_and_close(const char *path, bool group, bool is_new, mode_t mode)
{
	bool created;
	int fd = packet_file_open(path, group, &created);

	assert_true(fd >= 0);
	assert_int_equal(created, is_new);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	assert_int_equal(mode_of(path), mode);
	close(fd);
}

static void new_files_are_private(void **state)
{
	open_and_close("new", false, true, 0600);
	open_and_close("group", true, true, 0640);
	open_and_close("group", false, false, 0600);
	open_and_close("group", true, false, 0640);
}

static void the_umask_does_not_keep_the_group_out(void **state)
{
	(void)state;
	umask(077);
	open_and_close("umask", false, true, 0600);
	open_and_close("umask-group", true, true, 0640);
	umask(0277);
	open_and_close("umask-strange", true, true, 0640);
	umask(0);
}

static void files_that_exist_become_private(void **state)
{
	size_t len;

	test_write("old", "old", 3);
	assert_int_equal(chmod("old", 0666), 0);
	open_and_close("old", false, false, 0600);
	free(test_read("old", &len));
	assert_int_equal(len, 3);
}

/* Another user waits for the packets behind a file or pipe of this name, and may own a link to it.
 */
static void others_get_no_packets(void **state)
{
	bool created;

	if (geteuid()) {
		print_message("skipped: only root may act for another user\n");
		skip();
	}
	test_write("theirs", "", 0);
	assert_int_equal(mkfifo("pipe", 0666), 0);
	assert_int_equal(chown("theirs", OTHER, OTHER), 0);
	assert_int_equal(chown("pipe", OTHER, OTHER), 0);
	assert_int_equal(symlink("theirs", "link"), 0);
	assert_int_equal(packet_file_open("theirs", false, &created), -EPERM);
	assert_int_equal(packet_file_open("link", false, &created), -EPERM);
	assert_int_equal(packet_file_open("pipe", false, &created), -EPERM);
	assert_false(created);
}

static void devices_and_pipes_of_a_shell_are_opened(void **state)
{
	char path[64];
	int ends[2], fd;
	bool created;

	fd = packet_file_open("/dev/null", false, &created);
	assert_true(fd >= 0 && !created);
	close(fd);
	assert_int_equal(pipe(ends), 0);
	if (!geteuid())
		assert_int_equal(fchown(ends[1], OTHER, OTHER), 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", ends[1]);
	fd = packet_file_open(path, false, &created);
	assert_true(fd >= 0 && !created);
	close(fd);
	close(ends[0]);
	close(ends[1]);
	assert_int_equal(packet_file_open(".", false, &created), -EISDIR);
	assert_int_equal(packet_file_open("none/x", false, &created), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(new_files_are_private),
		cmocka_unit_test(the_umask_does_not_keep_the_group_out),
		cmocka_unit_test(files_that_exist_become_private),
		cmocka_unit_test(others_get_no_packets),
		cmocka_unit_test(devices_and_pipes_of_a_shell_are_opened),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
