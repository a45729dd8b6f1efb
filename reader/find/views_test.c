/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses in the file systems of other processes, and what a process sees. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "abstract.h"
#include "views.h"

static void test_addresses(void **state)
{
	static const char *const others[] = {"/var/run/dpdk/rte", "/proc/1/rooted/run",
		"/proc/1/root", "/proc/0/root/run", "/proc/-1/root/run", "/proc/x/root/run", ""};
	const char *folder;
	pid_t pid;

	assert_true(rt_view_address("/proc/4711/root/run/dpdk/rte", &pid, &folder));
	assert_int_equal(pid, 4711);
	assert_string_equal(folder, "/run/dpdk/rte");
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		assert_false(rt_view_address(others[i], &pid, &folder));
		assert_int_equal(rt_view_open(others[i]), -EINVAL);
	}
	assert_true(rt_is_abstract("/proc/4711/net/@ringtap.sock/rte/1"));
	assert_false(rt_is_abstract("/proc/4711/net/@other.sock/rte/1"));
	assert_false(rt_is_abstract("/proc/4711/net/unix"));
}

static void test_links_are_refused(void **state)
{
	char dir[] = "/tmp/ringtap-views.XXXXXX", address[128], link[64];
	int fd;

	assert_non_null(mkdtemp(dir));
	snprintf(link, sizeof(link), "%s/link", dir);
	assert_int_equal(symlink(".", link), 0);
	snprintf(address, sizeof(address), "/proc/%d/root%s", (int)getpid(), dir);
	fd = rt_view_open(address);
	assert_true(fd >= 0);
	close(fd);
	snprintf(address, sizeof(address), "/proc/%d/root%s", (int)getpid(), link);
	assert_true(rt_view_open(address) < 0);
	snprintf(address, sizeof(address), "/proc/%d/root%s/..", (int)getpid(), dir);
	assert_int_equal(rt_view_open(address), -EINVAL);
	unlink(link);
	rmdir(dir);
}

static void test_views_of_processes(void **state)
{
	struct rt_view own, other;
	int up[2], status;
	pid_t pid;
	char c;

	assert_int_equal(rt_view_get(&own, getpid()), 0);
	assert_int_equal(rt_view_get(&other, INT32_MAX), -ENOENT);
	assert_int_equal(pipe(up), 0);
	pid = fork();
	if (!pid) {
		if (chroot("/proc") || write(up[1], "", 1) != 1)
			_exit(77);
		pause();
	}
	close(up[1]);
	if (read(up[0], &c, 1) == 1) {
		assert_int_equal(rt_view_get(&other, pid), 0);
		assert_false(rt_view_is_same(&own, &other));
		assert_int_equal(other.mounts, own.mounts);
		assert_int_equal(rt_view_pid(&other, pid), pid);
	}
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	close(up[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_addresses),
		cmocka_unit_test(test_links_are_refused),
		cmocka_unit_test(test_views_of_processes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
