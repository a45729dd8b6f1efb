/* SPDX-License-Identifier: BSD-3-Clause */
/* Which peers a probe accepts. */
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "accept.h"

#define OVERFLOW 65534u /* kernel.overflowuid by default */

enum verdict { REFUSED, ALLOWED, NO_NAMESPACE };

/* The user becomes this one in a user namespace that maps no other. */
static bool enter_namespace(unsigned as)
{
	char map[64];
	int len = snprintf(map, sizeof(map), "%u %u 1", as, (unsigned)geteuid());
	int fd = unshare(CLONE_NEWUSER) ? -1 : open("/proc/self/uid_map", O_WRONLY);

	return fd >= 0 && write(fd, map, (size_t)len) == len;
}

static enum verdict verdict_as(unsigned as, int fd)
{
	pid_t child = fork();
	int status;

	if (!child)
		_exit(!enter_namespace(as)     ? NO_NAMESPACE
			: rt_accept_allows(fd) ? ALLOWED
					       : REFUSED);
	assert_int_equal(waitpid(child, &status, 0), child);
	if (WEXITSTATUS(status) == NO_NAMESPACE)
		skip();
	return WEXITSTATUS(status);
}

/* The peer is another user, if this one is root. */
static void test_users_that_are_not_mapped_are_refused_on_abstract_names(void **state)
{
	int pair[2];

	(void)!seteuid(1);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	(void)!seteuid(getuid());
	assert_int_equal(verdict_as(OVERFLOW, pair[0]), REFUSED);
	close(pair[0]);
	close(pair[1]);
}

static void test_own_user_is_accepted(void **state)
{
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	assert_true(rt_accept_allows(pair[0]));
	assert_int_equal(verdict_as(1000, pair[0]), ALLOWED);
	close(pair[0]);
	close(pair[1]);
}

/* A peer that connects to it has passed the permissions of the file. */
static void test_socket_with_a_file_serves_the_overflow_user(void **state)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX, .sun_path = "/tmp/ringtap-accept.XXXXXX"};
	int listener = socket(AF_UNIX, SOCK_SEQPACKET, 0), fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	int accepted;

	assert_non_null(mkdtemp(addr.sun_path));
	strcat(addr.sun_path, "/s");
	assert_int_equal(bind(listener, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	accepted = accept(listener, NULL, NULL);
	unlink(addr.sun_path);
	*strrchr(addr.sun_path, '/') = 0;
	rmdir(addr.sun_path);
	assert_true(accepted >= 0);
	assert_int_equal(verdict_as(OVERFLOW, accepted), ALLOWED);
	close(accepted);
	close(fd);
	close(listener);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_users_that_are_not_mapped_are_refused_on_abstract_names),
		cmocka_unit_test(test_own_user_is_accepted),
		cmocka_unit_test(test_socket_with_a_file_serves_the_overflow_user),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
