/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "in_root.h"

static char folder[] = "/tmp/in-root-XXXXXX";

/* root/a/b/file, links beside it, and a file of the same name outside of the root. */
static int make(void **state)
{
	static const char *const links[][2] = {{"b/file", "root/a/near"}, {"/a/b", "root/absolute"},
		{"../../../../a/b/file", "root/a/b/up"}, {"loop", "root/loop"},
		{"/absolute/up", "root/chain"}, {"/nothing", "root/broken"}};
	static const char *const folders[] = {"root", "root/a", "root/a/b", "a", "a/b"};
	int ret = !mkdtemp(folder) || chdir(folder);

	(void)state;
	for (size_t i = 0; i < sizeof(folders) / sizeof(*folders); i++)
		ret |= mkdir(folders[i], 0700);
	for (size_t i = 0; i < sizeof(links) / sizeof(*links); i++)
		ret |= symlink(links[i][0], links[i][1]);
	close(open("root/a/b/file", O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	close(open("a/b/file", O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	return ret;
}

static int clear(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof(command), "rm -r %s", folder);
	return chdir("/") || system(command);
}

static void both_ways_open_the_same(void **state)
{
	static const char *const paths[] = {"/a/b/file", "a//b/./file", "/a/near", "/absolute/file",
		"/a/b/up", "/chain", "../../a/b/file", "/a/b/..//b/file"};
	int root = open("root", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct stat file, st;

	(void)state;
	assert_int_equal(stat("root/a/b/file", &file), 0);
	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
		int fd[] = {rt_open_by_steps(root, paths[i], O_RDONLY),
			rt_open_in_root(root, paths[i], O_RDONLY)};

		for (int k = 0; k < 2; k++) {
			assert_true(fd[k] >= 0);
			assert_int_equal(fstat(fd[k], &st), 0);
			assert_int_equal(st.st_ino, file.st_ino);
			close(fd[k]);
		}
	}
	close(root);
}

static void both_ways_fail_alike(void **state)
{
	static const struct {
		const char *path;
		int flags, error;
	} cases[] = {{"/a/c", O_RDONLY, -ENOENT}, {"/broken", O_RDONLY, -ENOENT},
		{"/loop", O_RDONLY, -ELOOP}, {"/a/b/file/c", O_RDONLY, -ENOTDIR},
		{"/a/b/file", O_RDONLY | O_DIRECTORY, -ENOTDIR}};
	int root = open("root", O_PATH | O_DIRECTORY | O_CLOEXEC);
	char longest[5000];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		assert_int_equal(
			rt_open_by_steps(root, cases[i].path, cases[i].flags), cases[i].error);
		assert_int_equal(
			rt_open_in_root(root, cases[i].path, cases[i].flags), cases[i].error);
	}
	memset(longest, 'x', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	assert_int_equal(rt_open_by_steps(root, longest, O_RDONLY), -ENAMETOOLONG);
	longest[300] = '\0';
	assert_int_equal(rt_open_by_steps(root, longest, O_RDONLY), -ENAMETOOLONG);
	close(root);
}

static void the_root_itself_is_opened(void **state)
{
	int root = open("root", O_PATH | O_DIRECTORY | O_CLOEXEC);
	int fd = rt_open_by_steps(root, "/..", O_RDONLY | O_DIRECTORY);
	struct stat a, b;

	(void)state;
	assert_true(fd >= 0);
	assert_false(fstat(fd, &a) || fstat(root, &b));
	assert_int_equal(a.st_ino, b.st_ino);
	close(fd);
	close(root);
}

static void plain_paths_have_no_links(void **state)
{
	static const struct {
		const char *path, *plain;
	} cases[] = {{"/a/near", "/a/b/file"}, {"absolute/up", "/a/b/file"},
		{"/chain", "/a/b/file"}, {"/../a/./b/", "/a/b"}, {"/..", ""}};
	static const char *const refused[] = {"/absolute/file", "/a/../a/b", "/a/./b", "/a//b"};
	int root = open("root", O_PATH | O_DIRECTORY | O_CLOEXEC), fd;
	char plain[64];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		assert_int_equal(rt_plain_in_root(root, cases[i].path, plain, sizeof(plain)), 0);
		assert_string_equal(plain, cases[i].plain);
		fd = rt_open_plain(root, plain, O_PATH);
		assert_true(fd >= 0);
		close(fd);
	}
	for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++)
		assert_true(rt_open_plain(root, refused[i], O_PATH) < 0);
	assert_int_equal(rt_plain_in_root(root, "/broken", plain, sizeof(plain)), -ENOENT);
	assert_int_equal(rt_plain_in_root(root, "/a/near", plain, 4), -ENAMETOOLONG);
	close(root);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_ways_open_the_same),
		cmocka_unit_test(both_ways_fail_alike),
		cmocka_unit_test(the_root_itself_is_opened),
		cmocka_unit_test(plain_paths_have_no_links),
	};

	return cmocka_run_group_tests(tests, make, clear);
}
