/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses of applications and names of sockets. */
#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "address.h"

static void assert_splits(const char *app, const char *dir, pid_t secondary, unsigned instance)
{
	struct rt_address a;
	char back[PATH_MAX + 64];
	int len;

	assert_int_equal(rt_address_split(app, &a), 0);
	assert_string_equal(a.dir, dir);
	assert_int_equal(a.secondary, secondary);
	assert_int_equal(a.instance, instance);
	len = snprintf(back, sizeof(back), "%s", a.dir);
	rt_address_suffix(&a, back + len, sizeof(back) - (size_t)len);
	assert_string_equal(back, app);
}

static void test_suffixes_are_split_off_and_put_back(void **state)
{
	assert_splits("/no/rte", "/no/rte", 0, 0);
	assert_splits("/no/rte#1", "/no/rte", 0, 1);
	assert_splits("/no/rte/4711", "/no/rte", 4711, 0);
	assert_splits("/no/rte/1#12", "/no/rte", 1, 12);
	assert_splits("rte/7", "rte", 7, 0);
}

static void test_what_is_no_suffix_stays(void **state)
{
	assert_splits("/proc/1/net/@ringtap.sock/rte/1", "/proc/1/net/@ringtap.sock/rte/1", 0, 0);
	assert_splits("/no/rte#0", "/no/rte#0", 0, 0);
	assert_splits("/no/rte#01", "/no/rte#01", 0, 0);
	assert_splits("/no/rte#256", "/no/rte#256", 0, 0);
	assert_splits("/no/rte#", "/no/rte#", 0, 0);
	assert_splits("/no/rte/", "/no/rte/", 0, 0);
	assert_splits("/no/rte/0", "/no/rte/0", 0, 0);
	assert_splits("/no/rte/012", "/no/rte/012", 0, 0);
	assert_splits("/no/rte/12x", "/no/rte/12x", 0, 0);
	assert_splits("/no/rte/-1", "/no/rte/-1", 0, 0);
	assert_splits("/no/rte/1234567890", "/no/rte/1234567890", 0, 0);
	assert_splits("/4711", "/4711", 0, 0);
	assert_splits("4711", "4711", 0, 0);
}

/* A file-prefix may be a number, or end with one. */
static void test_existing_folders_have_precedence(void **state)
{
	char dir[] = "/tmp/ringtap-address.XXXXXX", name[64], sub[80], second[80];

	assert_non_null(mkdtemp(dir));
	snprintf(name, sizeof(name), "%s/4711", dir);
	snprintf(sub, sizeof(sub), "%s#1", name);
	snprintf(second, sizeof(second), "%s/12", name);
	assert_int_equal(mkdir(name, 0700), 0);
	assert_splits(name, name, 0, 0);
	assert_splits(sub, name, 0, 1);
	assert_splits(second, name, 12, 0);
	assert_int_equal(mkdir(sub, 0700), 0);
	assert_splits(sub, sub, 0, 0);
	rmdir(sub);
	rmdir(name);
	rmdir(dir);
}

static void test_too_long_address_is_refused(void **state)
{
	static char app[PATH_MAX + 1];
	struct rt_address a;

	memset(app, 'a', PATH_MAX);
	assert_int_equal(rt_address_split(app, &a), -ENAMETOOLONG);
}

static void test_sockets_are_named_after_the_address(void **state)
{
	struct rt_address a = {.instance = 0};
	char name[RT_SOCKET_NAME_MAX];
	pid_t pid = 0;

	assert_int_equal(rt_address_socket(&a, RT_SOCKET_NAME, name), 0);
	assert_string_equal(name, "ringtap.sock");
	a.instance = 3;
	assert_int_equal(rt_address_socket(&a, RT_TELEMETRY_SOCKET, name), 0);
	assert_string_equal(name, "dpdk_telemetry.v2:3");
	a.secondary = 4194304;
	a.instance = 255;
	assert_int_equal(rt_address_socket(&a, RT_SOCKET_NAME, name), 0);
	assert_string_equal(name, "ringtap.sock@4194304:255");
	assert_int_equal(rt_socket_secondary(name, &pid), 255);
	assert_int_equal(pid, 4194304);
	assert_int_equal(rt_address_socket(&a, RT_TELEMETRY_SOCKET, name), -ENOENT);
	a.secondary = INT32_MAX;
	a.instance = UINT32_MAX;
	assert_int_equal(rt_address_socket(&a, RT_SOCKET_NAME, name), -ENAMETOOLONG);
}

static void test_names_of_sockets_are_recognized(void **state)
{
	pid_t pid;

	assert_int_equal(rt_socket_secondary("ringtap.sock@12", &pid), 0);
	assert_int_equal(pid, 12);
	assert_int_equal(rt_socket_secondary("ringtap.sock@12:1", &pid), 1);
	assert_int_equal(rt_socket_secondary("ringtap.sock", &pid), -1);
	assert_int_equal(rt_socket_secondary("ringtap.sock:1", &pid), -1);
	assert_int_equal(rt_socket_secondary("ringtap.sock@", &pid), -1);
	assert_int_equal(rt_socket_secondary("ringtap.sock@0", &pid), -1);
	assert_int_equal(rt_socket_secondary("ringtap.sock@12x", &pid), -1);
	assert_int_equal(rt_socket_secondary("ringtap.sock@12:0", &pid), -1);
	assert_int_equal(rt_socket_instance("ringtap.sock@12", RT_SOCKET_NAME), -1);
	assert_int_equal(rt_socket_mp("mp_socket_4711_1f2e3d"), 4711);
	assert_int_equal(rt_socket_mp("mp_socket"), 0);
	assert_int_equal(rt_socket_mp("mp_socket_4711"), 0);
	assert_int_equal(rt_socket_mp("mp_socket_4711_"), 0);
	assert_int_equal(rt_socket_mp("mp_socket_4711_xyz"), 0);
	assert_int_equal(rt_socket_mp("mp_socket__1f"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_suffixes_are_split_off_and_put_back),
		cmocka_unit_test(test_what_is_no_suffix_stays),
		cmocka_unit_test(test_existing_folders_have_precedence),
		cmocka_unit_test(test_too_long_address_is_refused),
		cmocka_unit_test(test_sockets_are_named_after_the_address),
		cmocka_unit_test(test_names_of_sockets_are_recognized),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
