/* SPDX-License-Identifier: BSD-3-Clause */
/* Several applications in one runtime folder, their ends, and stale sockets. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/proto.h"
#include "socket.h"

#define THREADS 6
#define ROUNDS  50

static char dir[64];

static int make_dir(void **state)
{
	strcpy(dir, "/tmp/ringtap-socket.XXXXXX");
	return !mkdtemp(dir);
}

static int remove_dir(void **state)
{
	char command[80];

	snprintf(command, sizeof(command), "rm -rf %s", dir);
	return system(command);
}

static struct sockaddr_un addr_of(const char *name)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};

	assert_in_range(snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/%s", dir, name), 1, 107);
	return addr;
}

/* 0 if a process listens there. */
static int reach(const char *name)
{
	struct sockaddr_un addr = addr_of(name);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0), ret;

	ret = connect(fd, (struct sockaddr *)&addr, sizeof(addr)) ? -errno : 0;
	close(fd);
	return ret;
}

static int listen_at(const char *name)
{
	struct sockaddr_un addr = addr_of(name);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(listen(fd, 8), 0);
	return fd;
}

static void test_live_socket_is_never_replaced(void **state)
{
	struct rt_listener a, b, c;

	assert_int_equal(rt_listener_open(&a, dir, 0), 0);
	assert_int_equal(rt_listener_open(&b, dir, 0), 0);
	assert_string_equal(a.name, RT_SOCKET_NAME);
	assert_string_equal(b.name, RT_SOCKET_NAME ":1");
	assert_int_equal(reach(a.name) | reach(b.name), 0);
	assert_int_equal(a.file.st_mode & 0777, 0600);
	rt_listener_close(&a);
	assert_int_equal(reach(RT_SOCKET_NAME), -ENOENT);
	assert_int_equal(reach(b.name), 0);
	assert_int_equal(rt_listener_open(&c, dir, 0), 0);
	assert_string_equal(c.name, RT_SOCKET_NAME);
	rt_listener_close(&c);
	rt_listener_close(&b);
	assert_int_equal(reach(RT_SOCKET_NAME ":1"), -ENOENT);
}

static void test_stale_socket_is_replaced(void **state)
{
	struct rt_listener l;

	close(listen_at(RT_SOCKET_NAME));
	assert_int_equal(reach(RT_SOCKET_NAME), -ECONNREFUSED);
	assert_int_equal(rt_listener_open(&l, dir, 0), 0);
	assert_string_equal(l.name, RT_SOCKET_NAME);
	assert_int_equal(reach(RT_SOCKET_NAME), 0);
	rt_listener_close(&l);
}

static void test_secondary_has_a_socket_of_its_own(void **state)
{
	struct rt_listener primary, a, b;

	assert_int_equal(rt_listener_open(&primary, dir, 0), 0);
	assert_int_equal(rt_listener_open(&a, dir, 4711), 0);
	assert_string_equal(a.name, "ringtap.sock@4711");
	/* In another PID namespace. */
	assert_int_equal(rt_listener_open(&b, dir, 4711), 0);
	assert_string_equal(b.name, "ringtap.sock@4711:1");
	assert_int_equal(reach(a.name) | reach(b.name) | reach(primary.name), 0);
	rt_listener_close(&a);
	assert_int_equal(reach(a.name), -ENOENT);
	assert_int_equal(reach(b.name) | reach(primary.name), 0);
	rt_listener_close(&b);
	rt_listener_close(&primary);
}

static void test_sockets_of_killed_secondaries_are_removed(void **state)
{
	int live = listen_at(RT_SOCKET_SECONDARY "7");
	struct rt_listener l;

	close(listen_at(RT_SOCKET_SECONDARY "8"));
	close(listen_at(RT_SOCKET_SECONDARY "9:1"));
	assert_int_equal(rt_listener_open(&l, dir, 0), 0);
	assert_int_equal(reach(RT_SOCKET_SECONDARY "7"), 0);
	assert_int_equal(reach(RT_SOCKET_SECONDARY "8"), -ENOENT);
	assert_int_equal(reach(RT_SOCKET_SECONDARY "9:1"), -ENOENT);
	rt_listener_close(&l);
	close(live);
	unlink(addr_of(RT_SOCKET_SECONDARY "7").sun_path);
}

/* A live socket with a full backlog, and one of another type. */
static void test_busy_and_unknown_sockets_are_not_replaced(void **state)
{
	struct sockaddr_un zero = addr_of(RT_SOCKET_NAME), one = addr_of(RT_SOCKET_NAME ":1");
	int full = socket(AF_UNIX, SOCK_SEQPACKET, 0), other = socket(AF_UNIX, SOCK_STREAM, 0);
	int fds[8];
	struct rt_listener l;
	unsigned n = 0;

	assert_int_equal(bind(full, (struct sockaddr *)&zero, sizeof(zero)) | listen(full, 0), 0);
	assert_int_equal(bind(other, (struct sockaddr *)&one, sizeof(one)) | listen(other, 8), 0);
	do {
		assert_in_range(n, 0, 7);
		fds[n] = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0);
	} while (!connect(fds[n++], (struct sockaddr *)&zero, sizeof(zero)));
	assert_int_equal(rt_listener_open(&l, dir, 0), 0);
	assert_string_equal(l.name, RT_SOCKET_NAME ":2");
	rt_listener_close(&l);
	assert_int_equal(reach(RT_SOCKET_NAME), -EAGAIN);
	assert_int_equal(reach(RT_SOCKET_NAME ":1"), -EPROTOTYPE);
	while (n)
		close(fds[--n]);
	close(full);
	close(other);
	unlink(zero.sun_path);
	unlink(one.sun_path);
}

static void test_closing_keeps_the_socket_of_another_process(void **state)
{
	struct rt_listener l;
	int other;

	assert_int_equal(rt_listener_open(&l, dir, 0), 0);
	unlink(l.addr.sun_path); /* as a cleanup script does */
	other = listen_at(RT_SOCKET_NAME);
	rt_listener_close(&l);
	assert_int_equal(reach(RT_SOCKET_NAME), 0);
	close(other);
	unlink(l.addr.sun_path);
}

static void test_number_is_that_of_the_own_telemetry_socket(void **state)
{
	struct sockaddr_un addr = addr_of("dpdk_telemetry.v2:7");
	int fd = listen_at("dpdk_telemetry.v2:7");
	struct rt_listener l;

	close(listen_at(RT_SOCKET_NAME ":7"));
	assert_int_equal(rt_listener_open(&l, dir, 0), 0);
	assert_string_equal(l.name, RT_SOCKET_NAME ":7");
	rt_listener_close(&l);
	close(fd);
	unlink(addr.sun_path);
}

static void test_number_of_another_telemetry_socket_is_skipped(void **state)
{
	struct sockaddr_un addr = addr_of("dpdk_telemetry.v2");
	struct rt_listener l;
	int up[2];
	pid_t pid;
	char c;

	assert_int_equal(pipe(up), 0);
	pid = fork();
	if (!pid) {
		listen_at("dpdk_telemetry.v2");
		if (write(up[1], "", 1) == 1)
			pause();
		_exit(1);
	}
	assert_int_equal(read(up[0], &c, 1), 1);
	assert_int_equal(rt_listener_open(&l, dir, 0), 0);
	assert_string_equal(l.name, RT_SOCKET_NAME ":1");
	rt_listener_close(&l);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	/* Stale, so its number is free. */
	assert_int_equal(rt_listener_open(&l, dir, 0), 0);
	assert_string_equal(l.name, RT_SOCKET_NAME);
	rt_listener_close(&l);
	close(up[0]);
	close(up[1]);
	unlink(addr.sun_path);
}

/* A process that gives up its rights after DPDK's start. */
static void test_folder_that_is_no_longer_writable_is_an_error(void **state)
{
	struct rt_listener l;
	int status;
	pid_t pid;

	pid = fork();
	if (!pid) {
		listen_at("dpdk_telemetry.v2");
		if (chmod(dir, 0500) || (!geteuid() && setresuid(65534, 65534, 65534)))
			_exit(255);
		_exit(-rt_listener_open(&l, dir, 0));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(chmod(dir, 0700), 0);
	unlink(addr_of("dpdk_telemetry.v2").sun_path);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), EACCES);
}

/* Another process that holds the lock of the folder forever only delays the start. */
static void test_lock_is_waited_for_a_bounded_time(void **state)
{
	int fd = open(dir, O_RDONLY | O_DIRECTORY);
	struct rt_listener l;

	assert_int_equal(flock(fd, LOCK_EX), 0);
	assert_int_equal(rt_listener_open(&l, dir, 0), 0);
	assert_int_equal(reach(RT_SOCKET_NAME), 0);
	rt_listener_close(&l);
	close(fd);
}

/* Without the lock, a socket that refuses connections may be one of a process that starts. */
static void test_without_the_lock_no_socket_is_replaced(void **state)
{
	struct sockaddr_un addr = addr_of(RT_SOCKET_NAME),
			   second = addr_of(RT_SOCKET_SECONDARY "7");
	int lock = open(dir, O_RDONLY | O_DIRECTORY);
	int starts = socket(AF_UNIX, SOCK_SEQPACKET, 0), other = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	struct rt_listener a, b;

	assert_int_equal(flock(lock, LOCK_EX), 0);
	assert_int_equal(bind(starts, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(bind(other, (struct sockaddr *)&second, sizeof(second)), 0);
	assert_int_equal(rt_listener_open(&a, dir, 0), 0);
	assert_string_equal(a.name, RT_SOCKET_NAME ":1");
	assert_int_equal(rt_listener_open(&b, dir, 7), 0);
	assert_string_equal(b.name, RT_SOCKET_SECONDARY "7:1");
	assert_int_equal(listen(starts, 8) | listen(other, 8), 0);
	assert_int_equal(reach(RT_SOCKET_NAME) | reach(RT_SOCKET_SECONDARY "7"), 0);
	rt_listener_close(&a);
	rt_listener_close(&b);
	close(lock);
	close(starts);
	close(other);
	unlink(addr.sun_path);
	unlink(second.sun_path);
}

static void test_path_may_be_too_long(void **state)
{
	struct rt_listener l;
	char path[200];

	snprintf(path, sizeof(path), "%s%0100d", dir, 0);
	assert_int_equal(rt_listener_open(&l, path, 0), -ENAMETOOLONG);
}

static pthread_barrier_t barrier;

/* Repeatedly starts an application, connects to it, and ends it. Returns what failed. */
static void *come_and_go(void *arg)
{
	uintptr_t failed = 0;

	for (int i = 0; i < ROUNDS; i++) {
		struct rt_listener l;

		failed |= rt_listener_open(&l, dir, 0) != 0;
		pthread_barrier_wait(&barrier);
		failed |= (uintptr_t)(reach(l.name) != 0) << 1;
		pthread_barrier_wait(&barrier);
		rt_listener_close(&l);
	}
	return (void *)failed;
}

static void test_concurrent_starts_keep_their_sockets(void **state)
{
	pthread_t t[THREADS];

	close(listen_at(RT_SOCKET_NAME));
	pthread_barrier_init(&barrier, NULL, THREADS);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&t[i], NULL, come_and_go, NULL), 0);
	for (int i = 0; i < THREADS; i++) {
		void *failed;

		assert_int_equal(pthread_join(t[i], &failed), 0);
		assert_null(failed);
	}
	pthread_barrier_destroy(&barrier);
	for (int i = 1; i <= THREADS; i++) {
		char name[RT_SOCKET_NAME_MAX];

		snprintf(name, sizeof(name), RT_SOCKET_NAME ":%d", i);
		assert_int_equal(reach(name), -ENOENT);
	}
	unlink(addr_of(RT_SOCKET_NAME)
			.sun_path); /* it may not have been replaced without the lock */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_live_socket_is_never_replaced),
		cmocka_unit_test(test_stale_socket_is_replaced),
		cmocka_unit_test(test_secondary_has_a_socket_of_its_own),
		cmocka_unit_test(test_sockets_of_killed_secondaries_are_removed),
		cmocka_unit_test(test_busy_and_unknown_sockets_are_not_replaced),
		cmocka_unit_test(test_closing_keeps_the_socket_of_another_process),
		cmocka_unit_test(test_number_is_that_of_the_own_telemetry_socket),
		cmocka_unit_test(test_number_of_another_telemetry_socket_is_skipped),
		cmocka_unit_test(test_folder_that_is_no_longer_writable_is_an_error),
		cmocka_unit_test(test_lock_is_waited_for_a_bounded_time),
		cmocka_unit_test(test_without_the_lock_no_socket_is_replaced),
		cmocka_unit_test(test_path_may_be_too_long),
		cmocka_unit_test(test_concurrent_starts_keep_their_sockets),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
