/* SPDX-License-Identifier: BSD-3-Clause */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "ipc.h"

/* Both ends of a connection; pair[0] sends. */
static int pair[2];

static int connect_pair(void **state)
{
	return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair);
}

static int close_pair(void **state)
{
	for (int i = 0; i < 2; i++) {
		if (pair[i] >= 0)
			close(pair[i]);
	}
	return 0;
}

static unsigned open_descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned n = 0;

	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static struct rt_msg_error error_message(void)
{
	struct rt_msg_error m = {.code = -5};

	rt_msg_init(&m.h, RT_MSG_ERROR, sizeof(m));
	rt_str_set(m.text, sizeof(m.text), "something");
	return m;
}

static int receive(void *buf, size_t size)
{
	return rt_msg_recv(pair[1], buf, size, NULL, 0, NULL, 1000);
}

/* Sends n copies of one descriptor with an otherwise valid message. */
static void send_descriptors(unsigned n)
{
	struct rt_msg_error m = error_message();
	int fds[8];

	for (unsigned i = 0; i < n; i++)
		fds[i] = pair[0];
	assert_int_equal(rt_msg_send(pair[0], &m.h, fds, n), 0);
}

static void test_message_arrives_whole(void **state)
{
	struct rt_msg_error m = error_message(), got;

	assert_int_equal(rt_msg_send(pair[0], &m.h, NULL, 0), 0);
	assert_int_equal(receive(&got, sizeof(got)), sizeof(got));
	assert_memory_equal(&got, &m, sizeof(m));
}

static void test_message_larger_than_the_buffer_is_refused(void **state)
{
	struct rt_msg_error m = error_message(), got;

	assert_int_equal(rt_msg_send(pair[0], &m.h, NULL, 0), 0);
	assert_int_equal(receive(&got, sizeof(got) - 1), -EMSGSIZE);
	/* The rest of it is not taken for the next message. */
	assert_int_equal(rt_msg_send(pair[0], &m.h, NULL, 0), 0);
	assert_int_equal(receive(&got, sizeof(got)), sizeof(got));
}

static void send_raw(const void *data, size_t len)
{
	assert_int_equal(send(pair[0], data, len, 0), len);
}

static void test_message_shorter_than_its_header_is_refused(void **state)
{
	struct rt_msg_header h, got;

	rt_msg_init(&h, RT_MSG_LIST, sizeof(h) - 1);
	send_raw(&h, sizeof(h) - 1);
	assert_int_equal(receive(&got, sizeof(got)), -EPROTO);
}

static void test_wrong_magic_is_refused(void **state)
{
	struct rt_msg_header h, got;

	rt_msg_init(&h, RT_MSG_LIST, sizeof(h));
	h.magic ^= 1;
	send_raw(&h, sizeof(h));
	assert_int_equal(receive(&got, sizeof(got)), -EPROTO);
}

static void test_other_version_has_an_error_of_its_own(void **state)
{
	struct rt_msg_header h, got;

	rt_msg_init(&h, RT_MSG_LIST, sizeof(h));
	h.version++;
	send_raw(&h, sizeof(h));
	assert_int_equal(receive(&got, sizeof(got)), -EPROTOTYPE);
}

static void test_length_that_disagrees_is_refused(void **state)
{
	struct rt_msg_error m = error_message(), got;

	m.h.len--;
	send_raw(&m, sizeof(m));
	assert_int_equal(receive(&got, sizeof(got)), -EPROTO);
	m.h.len += 2;
	send_raw(&m, sizeof(m));
	assert_int_equal(receive(&got, sizeof(got)), -EPROTO);
}

static void test_descriptors_arrive_and_close_on_exec(void **state)
{
	struct rt_msg_error got;
	int fds[3];
	unsigned n;

	send_descriptors(3);
	assert_int_equal(rt_msg_recv(pair[1], &got, sizeof(got), fds, 3, &n, 1000), sizeof(got));
	assert_int_equal(n, 3);
	for (unsigned i = 0; i < n; i++) {
		assert_true(fcntl(fds[i], F_GETFD) & FD_CLOEXEC);
		close(fds[i]);
	}
}

static void test_descriptors_beyond_those_wanted_are_closed(void **state)
{
	unsigned before = open_descriptors(), n;
	struct rt_msg_error got;
	int fds[2];

	send_descriptors(8);
	assert_int_equal(rt_msg_recv(pair[1], &got, sizeof(got), fds, 2, &n, 1000), sizeof(got));
	assert_int_equal(n, 2);
	assert_int_equal(open_descriptors(), before + 2);
	close(fds[0]);
	close(fds[1]);
}

static void test_descriptors_that_nobody_wants_are_closed(void **state)
{
	unsigned before = open_descriptors();
	struct rt_msg_error got;

	send_descriptors(8);
	assert_int_equal(receive(&got, sizeof(got)), sizeof(got));
	assert_int_equal(open_descriptors(), before);
}

/* More than any message has: the kernel itself drops what does not fit. */
static void test_descriptors_beyond_any_message_are_closed(void **state)
{
	char ctl[CMSG_SPACE(sizeof(int) * 100)] = {0};
	struct rt_msg_error m = error_message(), got;
	int fds[100];
	struct iovec iov = {.iov_base = &m, .iov_len = sizeof(m)};
	struct msghdr h = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = ctl,
		.msg_controllen = sizeof(ctl)};
	unsigned before = open_descriptors();

	CMSG_FIRSTHDR(&h)->cmsg_level = SOL_SOCKET;
	CMSG_FIRSTHDR(&h)->cmsg_type = SCM_RIGHTS;
	CMSG_FIRSTHDR(&h)->cmsg_len = CMSG_LEN(sizeof(int) * 100);
	for (int i = 0; i < 100; i++)
		fds[i] = pair[0];
	memcpy(CMSG_DATA(CMSG_FIRSTHDR(&h)), fds, sizeof(fds));
	assert_int_equal(sendmsg(pair[0], &h, 0), sizeof(m));
	assert_int_equal(receive(&got, sizeof(got)), sizeof(got));
	assert_int_equal(open_descriptors(), before);
}

static void test_descriptors_of_a_refused_message_are_closed(void **state)
{
	unsigned before = open_descriptors(), n = 99;
	struct rt_msg_error got;
	int fds[8];

	send_descriptors(8);
	assert_int_equal(rt_msg_recv(pair[1], &got, 20, fds, 8, &n, 1000), -EMSGSIZE);
	assert_int_equal(n, 0);
	assert_int_equal(open_descriptors(), before);
}

static void test_more_descriptors_than_any_message_has_are_not_sent(void **state)
{
	struct rt_msg_error m = error_message();
	int fds[9] = {0};

	assert_int_equal(rt_msg_send(pair[0], &m.h, fds, 9), -EINVAL);
}

static void test_closed_peer_is_told_from_an_error(void **state)
{
	struct rt_msg_error got;

	close(pair[0]);
	pair[0] = -1;
	assert_int_equal(receive(&got, sizeof(got)), 0);
}

/* If it raised SIGPIPE, the test would die. */
static void test_sending_to_a_closed_peer_is_an_error(void **state)
{
	struct rt_msg_error m = error_message();

	close(pair[1]);
	pair[1] = -1;
	assert_int_equal(rt_msg_send(pair[0], &m.h, NULL, 0), -EPIPE);
}

static void test_silence_times_out(void **state)
{
	struct rt_msg_error got;

	assert_int_equal(rt_msg_recv(pair[1], &got, sizeof(got), NULL, 0, NULL, 0), -ETIMEDOUT);
	assert_int_equal(rt_msg_recv(pair[1], &got, sizeof(got), NULL, 0, NULL, 5), -ETIMEDOUT);
}

/* The application must not stand still because a reader does. */
static void test_sending_never_waits_for_room(void **state)
{
	struct rt_msg_error m = error_message();
	int ret = 0;

	for (int i = 0; i < 1000000 && !ret; i++)
		ret = rt_msg_send(pair[0], &m.h, NULL, 0);
	assert_int_equal(ret, -EAGAIN);
}

static void test_strings_are_cut_and_padded(void **state)
{
	char buf[6];

	memset(buf, 'x', sizeof(buf));
	rt_str_set(buf, sizeof(buf), "ab");
	assert_memory_equal(buf, "ab\0\0\0\0", 6);
	rt_str_set(buf, sizeof(buf), "abcdefgh");
	assert_memory_equal(buf, "abcde\0", 6);
}

#define with_pair(f) cmocka_unit_test_setup_teardown(f, connect_pair, close_pair)

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_pair(test_message_arrives_whole),
		with_pair(test_message_larger_than_the_buffer_is_refused),
		with_pair(test_message_shorter_than_its_header_is_refused),
		with_pair(test_wrong_magic_is_refused),
		with_pair(test_other_version_has_an_error_of_its_own),
		with_pair(test_length_that_disagrees_is_refused),
		with_pair(test_descriptors_arrive_and_close_on_exec),
		with_pair(test_descriptors_beyond_those_wanted_are_closed),
		with_pair(test_descriptors_that_nobody_wants_are_closed),
		with_pair(test_descriptors_beyond_any_message_are_closed),
		with_pair(test_descriptors_of_a_refused_message_are_closed),
		with_pair(test_more_descriptors_than_any_message_has_are_not_sent),
		with_pair(test_closed_peer_is_told_from_an_error),
		with_pair(test_sending_to_a_closed_peer_is_an_error),
		with_pair(test_silence_times_out),
		with_pair(test_sending_never_waits_for_room),
		cmocka_unit_test(test_strings_are_cut_and_padded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
