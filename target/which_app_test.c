/* SPDX-License-Identifier: BSD-3-Clause */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "which_app.h"

static char folder[] = "/tmp/ringtap-which-app-XXXXXX";

static int open_in(const char *root, const char *name)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s%s%s", root, folder, name);
	fd = address_open(path, O_PATH | O_DIRECTORY);
	if (fd >= 0)
		close(fd);
	return fd;
}

/* What lies in a container is the container's word: a link there would lead out of it. */
static void test_links_of_containers_are_not_followed(void **state)
{
	char link[64], target[64], root[32];

	assert_non_null(mkdtemp(folder));
	snprintf(target, sizeof(target), "%s/app", folder);
	snprintf(link, sizeof(link), "%s/link", folder);
	assert_int_equal(mkdir(target, 0700), 0);
	assert_int_equal(symlink(target, link), 0);
	assert_true(open_in("", "/app") >= 0);
	assert_true(open_in("", "/link") >= 0);
	assert_true(open_in("/proc/self/root", "/link") >= 0); /* not by number: the caller's own */
	snprintf(root, sizeof(root), "/proc/%d/root", (int)getpid());
	assert_true(open_in(root, "/app") >= 0);
	assert_true(open_in(root, "/app#1") >= 0);
	assert_true(open_in(root, "/app/4711") >= 0);
	assert_true(open_in(root, "/link") < 0);
	assert_true(open_in(root, "/link/4711") < 0);
	unlink(link);
	rmdir(target);
	rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_links_of_containers_are_not_followed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
