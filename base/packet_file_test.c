/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "out_file.h"
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

/* Also by another name. The first one's packets stay. */
static void a_file_has_one_writer(void **state)
{
	bool created;
	int fd = packet_file_open("busy", false, &created);

	assert_true(fd >= 0);
	assert_int_equal(symlink("busy", "soft"), 0);
	assert_int_equal(link("busy", "hard"), 0);
	assert_int_equal(packet_file_open("busy", false, &created), -EBUSY);
	assert_int_equal(packet_file_open("soft", false, &created), -EBUSY);
	assert_int_equal(packet_file_open("hard", false, &created), -EBUSY);
	assert_false(created);
	assert_string_equal(
		packet_file_error(-EBUSY), "another program writes to it; choose another file");
	close(fd);
	open_and_close("busy", false, false, 0600);
	open_and_close("hard", false, false, 0600);
}

/* The first writer removes its file, and the lock of the second is one of no file. */
static const char *removed;
int __real_flock(int fd, int how);
int __wrap_flock(int fd, int how);

int __wrap_flock(int fd, int how)
{
	if (removed)
		assert_int_equal(unlink(removed), 0);
	removed = NULL;
	return __real_flock(fd, how);
}

static void a_file_that_goes_before_the_lock_is_made_again(void **state)
{
	struct stat st;
	bool created;
	int fd;

	test_write("going", "old", 3);
	removed = "going";
	fd = packet_file_open("going", false, &created);
	assert_true(fd >= 0 && created);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_nlink, 1);
	assert_int_equal(st.st_size, 0);
	close(fd);
}

static void links_to_nothing_name_the_file(void **state)
{
	bool created;

	assert_int_equal(symlink("target", "to-be"), 0);
	open_and_close("to-be", false, true, 0600);
	assert_int_equal(mode_of("target"), 0600);
	open_and_close("to-be", false, false, 0600);
	assert_int_equal(symlink("none/target", "nowhere"), 0);
	assert_int_equal(packet_file_open("nowhere", false, &created), -ENOENT);
	assert_int_equal(symlink("loop", "loop"), 0);
	assert_int_equal(packet_file_open("loop", false, &created), -ELOOP);
	assert_int_equal(symlink(".", "folder"), 0);
	assert_int_equal(packet_file_open("folder", false, &created), -EISDIR);
	if (geteuid())
		return;
	assert_int_equal(symlink("elsewhere", "theirs-to-be"), 0);
	assert_int_equal(lchown("theirs-to-be", OTHER, OTHER), 0);
	assert_int_equal(packet_file_open("theirs-to-be", false, &created), -EPERM);
	assert_int_equal(access("elsewhere", F_OK), -1);
}

/* Pages have addresses, also those that replace a page of an earlier version. */
static void pages_and_reports_are_private(void **state)
{
	struct out_file o;

	(void)state;
	umask(0);
	assert_int_equal(close(open("old.html", O_CREAT | O_WRONLY, 0644)), 0);
	for (unsigned i = 0; i < 2; i++) {
		const char *path = i ? "old.html" : "new.html";

		assert_int_equal(out_file_open(&o, "explain", path), 0);
		assert_int_equal(mode_of(path), 0600);
		assert_true(fputs("page", o.f) >= 0);
		assert_int_equal(out_file_close(&o, "explain", 0), 0);
		assert_int_equal(mode_of(path), 0600);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(new_files_are_private),
		cmocka_unit_test(pages_and_reports_are_private),
		cmocka_unit_test(the_umask_does_not_keep_the_group_out),
		cmocka_unit_test(files_that_exist_become_private),
		cmocka_unit_test(others_get_no_packets),
		cmocka_unit_test(devices_and_pipes_of_a_shell_are_opened),
		cmocka_unit_test(a_file_has_one_writer),
		cmocka_unit_test(a_file_that_goes_before_the_lock_is_made_again),
		cmocka_unit_test(links_to_nothing_name_the_file),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
