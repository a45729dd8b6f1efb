/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests that the probe refuses, as raw messages to its socket: nothing is granted, the
 * connection ends with a reason, nothing stays, and the next reader is served. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include <rte_common.h>
#include <rte_eal.h>

#include "common/ipc.h"
#include "control.h"
#include "reader/find/telemetry.h"
#include "ringtap/probe.h"
#include "probe/test_eal.h"
#include "probe/test_ports.h"

#define WAIT_MS 60000 /* a longer wait is a hang */

static const char *dir;

static int start_application(void **state)
{
	assert_int_equal(test_port_make("net_ring_r"), 0);
	dir = rte_eal_get_runtime_dir();
	return 0;
}

static int start_probe(void **state)
{
	return ringtap_probe_start();
}

static int stop_probe(void **state)
{
	ringtap_probe_stop();
	return 0;
}

/* ---- messages ---- */

#define HELLO sizeof(struct rt_msg_hello)
#define PLAIN sizeof(struct rt_msg_header)

/* Messages without a body, or with zeros. */
static const struct plain {
	const char *what;
	struct rt_msg_header h;
	uint32_t bytes; /* that are sent */
} plain[] = {
	{"nothing", {0}, 0},
	{"one byte", {1, 0, 0, 0}, 1},
	{"magic", {1, RT_PROTO_VERSION, RT_MSG_HELLO, HELLO}, HELLO},
	{"version", {RT_PROTO_MAGIC, 77, RT_MSG_HELLO, HELLO}, HELLO},
	{"length", {RT_PROTO_MAGIC, RT_PROTO_VERSION, RT_MSG_HELLO, 4}, HELLO},
	{"short greeting", {RT_PROTO_MAGIC, RT_PROTO_VERSION, RT_MSG_HELLO, HELLO - 4}, HELLO - 4},
	{"unknown", {RT_PROTO_MAGIC, RT_PROTO_VERSION, 999, PLAIN}, PLAIN},
	{"huge", {RT_PROTO_MAGIC, RT_PROTO_VERSION, RT_MSG_OPEN, 100000}, 100000},
	{"memory", {RT_PROTO_MAGIC, RT_PROTO_VERSION, RT_MSG_MEMORY, PLAIN}, PLAIN},
	{"more memory", {RT_PROTO_MAGIC, RT_PROTO_VERSION, RT_MSG_GROW, PLAIN}, PLAIN},
	{"filter", {RT_PROTO_MAGIC, RT_PROTO_VERSION, RT_MSG_FILTER, PLAIN + 4}, PLAIN + 4},
	{"start", {RT_PROTO_MAGIC, RT_PROTO_VERSION, RT_MSG_START, PLAIN}, PLAIN},
	{"stop", {RT_PROTO_MAGIC, RT_PROTO_VERSION, RT_MSG_STOP, PLAIN}, PLAIN},
	{"monitor", {RT_PROTO_MAGIC, RT_PROTO_VERSION, RT_MSG_MONITOR, PLAIN}, PLAIN},
	{"an answer", {RT_PROTO_MAGIC, RT_PROTO_VERSION, RT_MSG_WELCOME, PLAIN}, PLAIN},
};

#define BOTH       (RT_TARGET_RX | RT_TARGET_TX)
#define OPEN(t, i) .open = {.target_count = (t), .insn_count = (i), .buffer_size = 1 << 20}
#define ALL                               \
	.target = {.queue = RT_QUEUE_ALL, \
		.directions = BOTH,       \
		.snaplen = 64,            \
		.insn_first = RT_NO_FILTER}
#define FILTERED(f, n)                    \
	.target = {.queue = RT_QUEUE_ALL, \
		.directions = BOTH,       \
		.snaplen = 64,            \
		.insn_first = (f),        \
		.insn_count = (n)}
#define RETURN                    \
	{                         \
		.code = 6, .k = 1 \
	}

/* Requests for a session, with one target and up to two instructions. */
static const struct request {
	const char *what;
	struct rt_msg_open open;
	struct rt_msg_target target;
	unsigned targets, insn_count; /* that are sent */
	struct rt_insn insns[2];
} requests[] = {
	{"no targets", OPEN(0, 0), ALL, 0, 0, {{0}}},
	{"missing targets", OPEN(RT_MAX_TARGETS, 0), ALL, 1, 0, {{0}}},
	{"too many targets", OPEN(UINT32_MAX, 0), ALL, 1, 0, {{0}}},
	{"missing instructions", OPEN(1, RT_MAX_INSNS), ALL, 1, 0, {{0}}},
	{"range", OPEN(1, 1), FILTERED(5, UINT32_MAX), 1, 1, {RETURN}},
	{"jump out of the filter", OPEN(1, 2), FILTERED(0, 2), 1, 2, {{0x15, 200, 200, 0}, RETURN}},
	{"no return", OPEN(1, 1), FILTERED(0, 1), 1, 1, {{0}}},
	{"scratch memory", OPEN(1, 2), FILTERED(0, 2), 1, 2, {{0x60, 0, 0, 9999}, RETURN}},
	{"policy", .open = {.target_count = 1, .on_full = 9}, ALL, 1, 0, {{0}}},
	{"flags", .open = {.target_count = 1, .flags = 2}, ALL, 1, 0, {{0}}},
	{"time stamps", .open = {.target_count = 1, .timestamp = 9}, ALL, 1, 0, {{0}}},
	{"buffer", .open = {.target_count = 1, .buffer_size = UINT64_C(1) << 60}, ALL, 1, 0, {{0}}},
	{"ids", .open = {.target_count = 1, .ids = RT_IDS_ON}, ALL, 1, 0, {{0}}},
	{"snaplen", OPEN(1, 0), {"", RT_QUEUE_ALL, BOTH, 0, UINT32_MAX, RT_NO_FILTER, 0}, 1, 0,
		{{0}}},
	{"directions", OPEN(1, 0), {"", RT_QUEUE_ALL, 0xff, 0, 64, RT_NO_FILTER, 0}, 1, 0, {{0}}},
	{"no direction", OPEN(1, 0), {"", RT_QUEUE_ALL, 0, 0, 64, RT_NO_FILTER, 0}, 1, 0, {{0}}},
	{"queue", OPEN(1, 0), {"", 70000, BOTH, 0, 64, RT_NO_FILTER, 0}, 1, 0, {{0}}},
	{"no port", OPEN(1, 0), {"eth7", RT_QUEUE_ALL, BOTH, 0, 64, RT_NO_FILTER, 0}, 1, 0, {{0}}},
	{"endless name", OPEN(1, 0),
		{"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", RT_QUEUE_ALL,
			BOTH, 0, 64, RT_NO_FILTER, 0},
		1, 0, {{0}}},
};

/* Returns the length of the message. */
static size_t put_request(uint8_t *buf, const struct request *r)
{
	struct rt_msg_open open = r->open;
	size_t targets = r->targets * sizeof(r->target),
	       insns = r->insn_count * sizeof(r->insns[0]);
	size_t len = sizeof(open) + targets + insns;

	rt_msg_init(&open.h, RT_MSG_OPEN, (uint32_t)len);
	memcpy(buf, &open, sizeof(open));
	memcpy(buf + sizeof(open), &r->target, targets);
	memcpy(buf + sizeof(open) + targets, r->insns, insns);
	return len;
}

/* ---- connections ---- */

static int greeted(void)
{
	struct rt_msg_hello hello = {.pid = 1};
	struct rt_msg_welcome w;
	int fd = rt_connect(dir, RT_SOCKET_NAME);

	assert_true(fd >= 0);
	rt_msg_init(&hello.h, RT_MSG_HELLO, sizeof(hello));
	assert_int_equal(rt_msg_send(fd, &hello.h, NULL, 0), 0);
	assert_int_equal(rt_msg_recv(fd, &w, sizeof(w), NULL, 0, NULL, WAIT_MS), sizeof(w));
	return fd;
}

/* The connection ends with an error whose text has why in it; NULL: or without one. */
static void assert_ends(int fd, const char *what, const char *why)
{
	struct rt_msg_error e;
	int n = rt_msg_recv(fd, &e, sizeof(e), NULL, 0, NULL, WAIT_MS);

	if (n == (int)sizeof(e)) {
		if (e.h.type != RT_MSG_ERROR || e.code >= 0 || !e.text[0])
			fail_msg("%s: answered by a message of type %u", what, e.h.type);
		if (why && !strstr(e.text, why))
			fail_msg("%s: '%s'", what, e.text);
		n = rt_msg_recv(fd, &e, sizeof(e), NULL, 0, NULL, WAIT_MS);
	} else if (why) {
		fail_msg("%s: no reason, but %d", what, n);
	}
	if (n != 0 && n != -ECONNRESET)
		fail_msg("%s: %d after the answer", what, n);
	close(fd);
}

/* Greets, and waits until no session is left. */
static void assert_next_reader_is_served(void)
{
	static uint64_t buf[RT_MSG_MAX / 8];
	int fd = greeted(), len;
	struct rt_msg_header h;

	rt_msg_init(&h, RT_MSG_LIST, sizeof(h));
	do {
		assert_int_equal(rt_msg_send(fd, &h, NULL, 0), 0);
		for (int i = 0; i < 2; i++)
			len = rt_msg_recv(fd, buf, sizeof(buf), NULL, 0, NULL, WAIT_MS);
		assert_true(len >= (int)sizeof(h));
		memcpy(&h, buf, sizeof(h));
		assert_int_equal(h.type, RT_MSG_SESSIONS);
		rt_msg_init(&h, RT_MSG_LIST, sizeof(h));
	} while (len >= (int)sizeof(struct rt_msg_session));
	close(fd);
}

/* why: as for assert_ends(). */
static void assert_refused(
	bool greet, const char *what, const void *msg, size_t len, const char *why)
{
	int fd = greet ? greeted() : rt_connect(dir, RT_SOCKET_NAME);

	assert_true(fd >= 0);
	assert_int_equal(send(fd, msg, len, MSG_NOSIGNAL), len);
	assert_ends(fd, what, why);
	assert_next_reader_is_served();
}

static void each_message(bool greet)
{
	static uint64_t buf[RT_MSG_MAX / 8];

	for (size_t i = 0; i < RTE_DIM(plain); i++) {
		memset(buf, 0, sizeof(buf));
		memcpy(buf, &plain[i].h, sizeof(plain[i].h));
		assert_refused(greet, plain[i].what, buf, plain[i].bytes, NULL);
	}
	for (size_t i = 0; i < RTE_DIM(requests); i++) {
		size_t len = put_request((uint8_t *)buf, &requests[i]);

		assert_refused(greet, requests[i].what, buf, len, greet ? "" : "no greeting");
	}
	for (size_t i = 0; i < 1024; i++)
		((uint8_t *)buf)[i] = (uint8_t)i;
	assert_refused(greet, "noise", buf, 1024, NULL);
}

static void test_faulty_messages_end_the_connection(void **state)
{
	each_message(true);
}

static void test_faulty_messages_before_a_greeting_end_the_connection(void **state)
{
	each_message(false);
}

/* ---- sessions ---- */

static void send_open(int fd)
{
	static const struct request good = {"good", OPEN(1, 0), ALL, 1, 0, {{0}}};
	uint64_t buf[64];
	size_t len = put_request((uint8_t *)buf, &good);

	assert_int_equal(send(fd, buf, len, MSG_NOSIGNAL), len);
}

static struct rt_msg_layout requested(int fd)
{
	struct rt_msg_layout l;

	send_open(fd);
	assert_int_equal(rt_msg_recv(fd, &l, sizeof(l), NULL, 0, NULL, WAIT_MS), sizeof(l));
	assert_int_equal(l.h.type, RT_MSG_LAYOUT);
	return l;
}

/* Memory as a reader allocates it: all pages are there. */
static int memfd(uint64_t size, bool fill)
{
	int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)size), 0);
	for (uint64_t at = 0; fill && at < size; at += 4096)
		assert_int_equal(pwrite(fd, "", 1, (off_t)at), 1);
	return fd;
}

static void make_memory(const struct rt_msg_layout *l, int fds[RT_FD_COUNT])
{
	for (int i = 0; i < RT_FD_COUNT; i++)
		fds[i] = memfd(l->bytes[i], true);
}

static void close_memory(int fds[RT_FD_COUNT])
{
	for (int i = 0; i < RT_FD_COUNT; i++)
		close(fds[i]);
}

static void pass(int fd, const int *fds, unsigned count)
{
	struct rt_msg_header h;

	rt_msg_init(&h, RT_MSG_MEMORY, sizeof(h));
	assert_int_equal(rt_msg_send(fd, &h, fds, count), 0);
}

static void test_too_few_descriptors_are_refused(void **state)
{
	int fd = greeted(), fds[RT_FD_COUNT];
	struct rt_msg_layout l = requested(fd);

	make_memory(&l, fds);
	pass(fd, fds, RT_FD_COUNT - 1);
	assert_ends(fd, "two of three", "did not arrive");
	close_memory(fds);
	assert_next_reader_is_served();
}

static int open_files(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static void test_application_at_its_limit_of_files_is_named(void **state)
{
	int fd = greeted(), fds[RT_FD_COUNT], free, taken[8], n = 0;
	struct rt_msg_layout l = requested(fd);
	struct rlimit keep, low;

	make_memory(&l, fds);
	free = dup(0);
	close(free);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &keep), 0);
	low = (struct rlimit){(rlim_t)free, keep.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
	/* The probe has the descriptors of this process: those that it has closed meanwhile. */
	while (n < (int)RTE_DIM(taken) && (taken[n] = dup(0)) >= 0)
		n++;
	assert_true(n < (int)RTE_DIM(taken));
	pass(fd, fds, RT_FD_COUNT);
	assert_ends(fd, "at the limit", "limit of open files");
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &keep), 0);
	while (n)
		close(taken[--n]);
	close_memory(fds);
	assert_next_reader_is_served();
}

/* A refusal of probe/memory/shm_refuse_test.c ends the connection, and leaves no descriptor. */
static void test_unusable_memory_ends_the_session(void **state)
{
	for (int which = 0; which < RT_FD_COUNT; which++) {
		int fd = greeted(), fds[RT_FD_COUNT], before;
		struct rt_msg_layout l = requested(fd);

		make_memory(&l, fds);
		close(fds[which]);
		fds[which] = memfd(l.bytes[which], false);
		before = open_files();
		pass(fd, fds, RT_FD_COUNT);
		assert_ends(fd, "with holes", "it has holes");
		close_memory(fds);
		assert_next_reader_is_served();
		/* Both ends of the connection, and the memory. */
		while (open_files() > before - RT_FD_COUNT - 2)
			sched_yield();
	}
}

static int opened(int fds[RT_FD_COUNT])
{
	struct rt_msg_header h;
	int fd = greeted();
	struct rt_msg_layout l = requested(fd);

	make_memory(&l, fds);
	pass(fd, fds, RT_FD_COUNT);
	assert_int_equal(rt_msg_recv(fd, &h, sizeof(h), NULL, 0, NULL, WAIT_MS), sizeof(h));
	assert_int_equal(h.type, RT_MSG_OPENED);
	return fd;
}

static void test_filters_of_another_length_end_the_session(void **state)
{
	static const uint32_t counts[] = {1, 3, 4096, UINT32_MAX};

	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		struct {
			struct rt_msg_filter f;
			struct rt_insn insns[2];
		} m = {.f = {.insn_count = counts[i]}, .insns = {{.code = 6}, {.code = 6}}};
		int fds[RT_FD_COUNT], fd = opened(fds);

		rt_msg_init(&m.f.h, RT_MSG_FILTER, sizeof(m));
		assert_int_equal(rt_msg_send(fd, &m.f.h, NULL, 0), 0);
		assert_ends(fd, "filter", "length disagrees");
		close_memory(fds);
		assert_next_reader_is_served();
	}
}

static void test_second_session_of_a_connection_is_refused(void **state)
{
	int fds[RT_FD_COUNT], fd = opened(fds);

	send_open(fd);
	assert_ends(fd, "second", "a session already");
	close_memory(fds);
}

static void test_second_memory_of_a_session_is_refused(void **state)
{
	int fds[RT_FD_COUNT], fd = opened(fds);

	pass(fd, fds, RT_FD_COUNT);
	assert_ends(fd, "second", "no session that waits for memory");
	close_memory(fds);
}

#define probing(f) cmocka_unit_test_setup_teardown(f, start_probe, stop_probe)

int main(void)
{
	const struct CMUnitTest tests[] = {
		probing(test_faulty_messages_end_the_connection),
		probing(test_faulty_messages_before_a_greeting_end_the_connection),
		probing(test_too_few_descriptors_are_refused),
		probing(test_application_at_its_limit_of_files_is_named),
		probing(test_unusable_memory_ends_the_session),
		probing(test_filters_of_another_length_end_the_session),
		probing(test_second_session_of_a_connection_is_refused),
		probing(test_second_memory_of_a_session_is_refused),
	};

	test_eal_start();
	return cmocka_run_group_tests(tests, start_application, NULL);
}
