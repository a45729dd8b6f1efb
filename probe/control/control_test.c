/* SPDX-License-Identifier: BSD-3-Clause */
/* The control thread and its socket, with libringtap and with raw messages at the other end. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include <rte_eal.h>
#include <rte_ethdev.h>

#include "common/ipc.h"
#include "conns.h"
#include "control.h"
#include "reader/capture/capture.h"
#include "reader/find/telemetry.h"
#include "ringtap/monitor.h"
#include "ringtap/probe.h"
#include "ringtap/reader.h"
#include "probe/test_eal.h"
#include "probe/test_ports.h"
#include "probe/tunables.h"

#define RUN_MAX 64u

static const struct ringtap_target all = {.queue = -1, .directions = RINGTAP_RX | RINGTAP_TX};
static const struct ringtap_capture_options small = {
	.size = sizeof(small), .buffer_size = TEST_RING};
static const char *dir;
static pthread_t poller;
static uint32_t quit;

static void *forward(void *arg)
{
	for (unsigned i = 0; !rt_load(&quit); i++) {
		test_port_forward(0);
		if (i % 64 == 0)
			sched_yield();
	}
	return NULL;
}

static int start_application(void **state)
{
	assert_int_equal(test_port_make("net_ring_c"), 0);
	for (uint32_t i = 0; i < 64; i++) {
		struct rte_mbuf *m = test_frame(i, 60 + i);

		assert_int_equal(rte_eth_tx_burst(0, 0, &m, 1), 1);
	}
	dir = rte_eal_get_runtime_dir();
	return pthread_create(&poller, NULL, forward, NULL);
}

static int stop_application(void **state)
{
	rt_store(&quit, 1);
	return pthread_join(poller, NULL);
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

/* ---- start and end of the thread ---- */

static void test_probe_starts_once_and_again_after_stop(void **state)
{
	for (int i = 0; i < 20; i++) {
		assert_int_equal(ringtap_probe_start(), 0);
		assert_int_equal(ringtap_probe_start(), -EALREADY);
		ringtap_probe_stop();
		ringtap_probe_stop();
	}
	assert_int_equal(rt_connect(dir, RT_SOCKET_NAME), -ENOENT);
	/* Telemetry queries do not start a stopped probe. */
	assert_int_equal(rt_control_start(false), -ESHUTDOWN);
}

static void test_socket_is_the_users_own(void **state)
{
	char path[256];
	struct stat st;

	snprintf(path, sizeof(path), "%s/" RT_SOCKET_NAME, dir);
	assert_int_equal(stat(path, &st), 0);
	assert_true(S_ISSOCK(st.st_mode));
	assert_int_equal(st.st_mode & 0777, 0600);
}

/* ---- with the reader ---- */

/* Reads until this number of packets, or to the end. Returns how it ended. */
static int read_packets(struct ringtap_capture *cap, uint64_t limit, uint64_t *got, uint64_t *last)
{
	struct ringtap_run runs[RUN_MAX];
	int n = 0;

	while (*got < limit && (n = ringtap_capture_next(cap, runs, RUN_MAX, 5000)) > 0) {
		for (int i = 0; i < n; i++) {
			assert_true(runs[i].first_ns >= *last);
			*last = runs[i].last_ns;
			*got += runs[i].packets;
		}
		ringtap_capture_release(cap);
	}
	return n;
}

static void assert_complete(struct ringtap_capture *cap, uint64_t got)
{
	struct ringtap_stats s = {.size = sizeof(s)};
	uint64_t lost = 0;

	ringtap_capture_stats(cap, &s);
	for (int i = 0; i < RINGTAP_LOST_MAX; i++)
		lost += s.total.lost[i];
	assert_int_equal(s.total.captured, got);
	assert_int_equal(
		s.total.seen, s.total.captured + s.total.filtered + s.total.not_sampled + lost);
}

static void test_capture_is_complete_once_stopped(void **state)
{
	struct ringtap_capture *cap = test_capture(dir);
	uint64_t got = 0, last = 0;

	assert_true(read_packets(cap, 5000, &got, &last) > 0);
	assert_int_equal(ringtap_capture_stop(cap), 0);
	assert_int_equal(read_packets(cap, UINT64_MAX, &got, &last), -EPIPE);
	assert_complete(cap, got);
	ringtap_capture_close(cap);
}

static void test_sample_is_complete_once_stopped(void **state)
{
	static const struct rt_insn none = {.code = 6};
	struct ringtap_capture_options o = small;

	for (int ids = 0; ids < 2; ids++) {
		struct ringtap_stats s = {.size = sizeof(s)};
		uint64_t got = 0, last = 0;
		struct ringtap_capture *cap;

		o.sample = 4;
		o.ids = ids ? RINGTAP_IDS : RINGTAP_NO_IDS;
		assert_int_equal(ringtap_capture_create(&cap, NULL), 0);
		assert_int_equal(ringtap_capture_attach(cap, dir, &all, 1, &o), 0);
		assert_true(read_packets(cap, 2000, &got, &last) > 0);
		assert_int_equal(
			ringtap_capture_filter(cap, (const struct ringtap_insn *)&none, 1), 0);
		while (!s.total.filtered && !ringtap_capture_stats(cap, &s))
			sched_yield();
		assert_int_equal(ringtap_capture_stop(cap), 0);
		assert_int_equal(read_packets(cap, UINT64_MAX, &got, &last), -EPIPE);
		assert_complete(cap, got);
		assert_int_equal(ringtap_capture_stats(cap, &s), 0);
		/* About 3 of 4, with all that fits between. */
		assert_in_range(s.total.not_sampled, s.total.seen / 2, s.total.seen / 8 * 7);
		ringtap_capture_close(cap);
	}
}

static void test_capture_ends_with_the_probe(void **state)
{
	struct ringtap_stats s = {.size = sizeof(s)};
	struct ringtap_capture *cap = test_capture(dir);
	uint64_t got = 0, last = 0;

	assert_true(read_packets(cap, 1000, &got, &last) > 0);
	ringtap_probe_stop();
	assert_int_equal(read_packets(cap, UINT64_MAX, &got, &last), -EPIPE);
	assert_complete(cap, got);
	ringtap_capture_stats(cap, &s);
	assert_int_equal(s.apps_dead, 1);
	ringtap_capture_close(cap);
	assert_int_equal(ringtap_probe_start(), 0);
}

static void test_detached_probe_sleeps_until_it_is_woken(void **state)
{
	struct ringtap_capture *cap = test_capture(dir);
	uint64_t got = 0, last = 0;
	struct ringtap_conn *conn;
	char err[256];

	assert_true(read_packets(cap, 1000, &got, &last) > 0);
	assert_int_equal(ringtap_conn_open(&conn, dir, NULL, err, sizeof(err)), 0);
	assert_int_equal(ringtap_conn_detach(conn, err, sizeof(err)), 0);
	ringtap_conn_close(conn);
	assert_int_equal(read_packets(cap, UINT64_MAX, &got, &last), -EPIPE);
	assert_complete(cap, got);
	ringtap_capture_close(cap);
	assert_int_equal(rt_control_start(false), -EUNATCH);
	rt_control_wake();
	assert_int_equal(rt_control_start(false), 0);
	/* The application's own start wakes it as well. */
	assert_int_equal(ringtap_conn_open(&conn, dir, NULL, err, sizeof(err)), 0);
	assert_int_equal(ringtap_conn_detach(conn, err, sizeof(err)), 0);
	ringtap_conn_close(conn);
	assert_int_equal(ringtap_probe_start(), 0);
	assert_int_equal(rt_control_start(false), 0);
}

static size_t sessions_now(void)
{
	struct ringtap_list *list;
	struct ringtap_conn *conn;
	size_t ns;
	char err[256];

	assert_int_equal(ringtap_conn_open(&conn, dir, NULL, err, sizeof(err)), 0);
	assert_int_equal(ringtap_conn_list(conn, &list), 0);
	assert_int_equal(list->port_count, 1);
	assert_string_equal(ringtap_list_port(list, 0)->name, "net_ring_c");
	ns = list->session_count;
	ringtap_list_free(list);
	ringtap_conn_close(conn);
	return ns;
}

static void test_session_ends_with_its_reader(void **state)
{
	struct ringtap_capture *a = test_capture(dir), *b = test_capture(dir);

	assert_int_equal(sessions_now(), 2);
	ringtap_capture_close(a);
	while (sessions_now() != 1)
		sched_yield();
	ringtap_capture_close(b);
	while (sessions_now() != 0)
		sched_yield();
}

static uint64_t buffer_now(struct ringtap_conn *conn)
{
	struct ringtap_list *list;
	uint64_t bytes;

	assert_int_equal(ringtap_conn_list(conn, &list), 0);
	assert_int_equal(list->session_count, 1);
	bytes = ringtap_list_session(list, 0)->buffer_size;
	ringtap_list_free(list);
	return bytes;
}

/* Real reader, real probe: packets flow before, and while it grows. */
static void test_buffer_of_a_session_grows(void **state)
{
	const struct ringtap_capture_options large = {
		.size = sizeof(large), .buffer_size = 40 << 20};
	struct ringtap_ring ring = {.size = sizeof(ring)};
	uint64_t got = 0, last = 0;
	struct ringtap_capture *cap;
	struct ringtap_conn *conn;
	char err[256];

	assert_int_equal(ringtap_conn_open(&conn, dir, NULL, err, sizeof(err)), 0);
	assert_int_equal(ringtap_capture_create(&cap, NULL), 0);
	assert_int_equal(ringtap_capture_attach(cap, dir, &all, 1, &large), 0);
	assert_int_equal(buffer_now(conn), 16 << 20);
	assert_true(read_packets(cap, 3000, &got, &last) > 0);
	while (buffer_now(conn) != 40 << 20)
		assert_true(read_packets(cap, got + 100, &got, &last) > 0);
	do
		assert_true(read_packets(cap, got + 100, &got, &last) > 0);
	while (ringtap_capture_ring(cap, 0, &ring) || ring.buffer_size != 40 << 20);
	assert_int_equal(ringtap_capture_stop(cap), 0);
	assert_int_equal(read_packets(cap, UINT64_MAX, &got, &last), -EPIPE);
	assert_complete(cap, got);
	ringtap_capture_close(cap);
	while (sessions_now() != 0)
		sched_yield();
	ringtap_conn_close(conn);
}

static void test_session_that_was_never_started_ends(void **state)
{
	struct ringtap_capture *cap;

	for (int i = 0; i < 5; i++) {
		assert_int_equal(ringtap_capture_create(&cap, NULL), 0);
		assert_int_equal(ringtap_capture_attach(cap, dir, &all, 1, &small), 0);
		ringtap_capture_close(cap);
	}
	while (sessions_now() != 0)
		sched_yield();
}

static void test_invalid_tail_ends_only_its_session(void **state)
{
	struct ringtap_capture *liar = test_capture(dir), *honest = test_capture(dir);
	struct ringtap_run runs[RUN_MAX];
	uint64_t got = 0, last = 0;
	int n;

	for (uint32_t i = 0; i < liar->sources[0].seg.h.ring_count; i++)
		rt_store(&liar->sources[0].seg.tails[i].tail, UINT64_MAX / 2);
	/* Nothing is released, as a release would correct the tails. */
	while ((n = ringtap_capture_next(liar, runs, RUN_MAX, 5000)) > 0)
		;
	assert_int_equal(n, -EPIPE);
	assert_string_equal(
		ringtap_capture_error(liar), "the reader has written an impossible tail");
	ringtap_capture_close(liar);
	assert_true(read_packets(honest, 3000, &got, &last) > 0);
	assert_int_equal(ringtap_capture_stop(honest), 0);
	ringtap_capture_close(honest);
}

static void test_refusals_have_a_reason(void **state)
{
	static const struct ringtap_insn endless = {.code = 0x30};
	struct ringtap_target target = all;
	struct ringtap_capture *cap;

	assert_int_equal(ringtap_capture_create(&cap, NULL), 0);
	target.port = "eth7";
	assert_int_equal(ringtap_capture_attach(cap, dir, &target, 1, NULL), -ENODEV);
	assert_string_equal(ringtap_capture_error(cap), "no port 'eth7'; there is net_ring_c");
	target = all;
	target.filter = &endless;
	target.filter_len = 1;
	assert_int_equal(ringtap_capture_attach(cap, dir, &target, 1, NULL), -EINVAL);
	assert_non_null(strstr(ringtap_capture_error(cap), "refuses the filter"));
	target = all;
	target.directions = 0;
	assert_int_equal(ringtap_capture_attach(cap, dir, &target, 1, NULL), -EINVAL);
	assert_non_null(strstr(ringtap_capture_error(cap), "direction"));
	ringtap_capture_close(cap);
	assert_int_equal(sessions_now(), 0);
}

/* ---- another filter ---- */

/* Reads packets; those of runs that are not stale must be longer than min. */
static uint64_t read_longer_than(struct ringtap_capture *cap, uint32_t min, unsigned batches)
{
	struct ringtap_run runs[RUN_MAX];
	const struct ringtap_packet *p;
	struct ringtap_packets *it;
	uint64_t fresh = 0;

	assert_int_equal(ringtap_packets_create(&it), 0);

	while (batches--) {
		int n = ringtap_capture_next(cap, runs, RUN_MAX, 5000);

		assert_true(n > 0);
		for (int i = 0; i < n; i++) {
			ringtap_packets_start(it, &runs[i]);
			for (; !runs[i].stale && (p = ringtap_packet_next(it)); fresh++)
				assert_true(p->length > min);
			assert_int_equal(ringtap_packets_error(it), 0);
		}
		ringtap_capture_release(cap);
	}
	ringtap_packets_free(it);
	return fresh;
}

static void test_filter_applies_from_its_answer_on(void **state)
{
	/* About "greater 100"; frames have 60 to 123 bytes. */
	static const struct ringtap_insn longer[] = {{.code = 0x80},
		{.code = 0x25, .jf = 1, .k = 100}, {.code = 0x06, .k = 262144}, {.code = 0x06}};
	struct ringtap_capture *cap = test_capture(dir);

	for (int i = 0; i < 20; i++) {
		assert_true(read_longer_than(cap, 59, 3) > 0);
		assert_int_equal(ringtap_capture_filter(cap, longer, 4), 0);
		while (!read_longer_than(cap, 100, 3))
			;
		assert_int_equal(ringtap_capture_filter(cap, NULL, 0), 0);
		while (!read_longer_than(cap, 59, 3))
			;
	}
	ringtap_capture_close(cap);
}

static void test_refused_filter_does_not_end_the_capture(void **state)
{
	static const struct ringtap_insn endless = {.code = 0x30};
	struct ringtap_capture *cap = test_capture(dir);
	uint64_t got = 0, last = 0;

	assert_int_equal(ringtap_capture_filter(cap, &endless, 1), -EINVAL);
	assert_non_null(strstr(ringtap_capture_error(cap), "refuses the filter"));
	assert_true(read_packets(cap, 3000, &got, &last) > 0);
	assert_int_equal(ringtap_capture_stop(cap), 0);
	assert_int_equal(read_packets(cap, UINT64_MAX, &got, &last), -EPIPE);
	assert_complete(cap, got);
	ringtap_capture_close(cap);
}

/* ---- with raw messages ---- */

static int greeted(void)
{
	struct rt_msg_hello hello = {.pid = 1};
	struct rt_msg_welcome w;
	int fd = rt_connect(dir, RT_SOCKET_NAME);

	assert_true(fd >= 0);
	rt_msg_init(&hello.h, RT_MSG_HELLO, sizeof(hello));
	assert_int_equal(rt_msg_send(fd, &hello.h, NULL, 0), 0);
	assert_int_equal(rt_msg_recv(fd, &w, sizeof(w), NULL, 0, NULL, 5000), sizeof(w));
	assert_int_equal(w.pid, getpid());
	return fd;
}

/* The answer, if any, is an error; then the connection is closed. */
static void assert_disconnected(int fd)
{
	struct rt_msg_error e;
	int n = rt_msg_recv(fd, &e, sizeof(e), NULL, 0, NULL, 5000);

	if (n == (int)sizeof(e)) {
		assert_int_equal(e.h.type, RT_MSG_ERROR);
		assert_true(e.code < 0 && e.text[0]);
		n = rt_msg_recv(fd, &e, sizeof(e), NULL, 0, NULL, 5000);
	}
	assert_true(n == 0 || n == -ECONNRESET);
	close(fd);
}

static void assert_refused(uint16_t type, uint32_t len)
{
	static uint64_t buf[RT_MSG_MAX / 8];
	struct rt_msg_header *h = (void *)buf;
	int fd = greeted();

	rt_msg_init(h, type, len);
	assert_int_equal(rt_msg_send(fd, h, NULL, 0), 0);
	assert_disconnected(fd);
}

static void test_unexpected_messages_end_the_connection(void **state)
{
	assert_refused(RT_MSG_START, sizeof(struct rt_msg_header));
	assert_refused(RT_MSG_STOP, sizeof(struct rt_msg_header));
	assert_refused(RT_MSG_WELCOME, sizeof(struct rt_msg_header));
	assert_refused(0, sizeof(struct rt_msg_header));
	assert_refused(RT_MSG_HELLO, sizeof(struct rt_msg_header));
	assert_refused(RT_MSG_OPEN, sizeof(struct rt_msg_header));
	assert_refused(RT_MSG_OPEN, sizeof(struct rt_msg_open));
	assert_refused(RT_MSG_OPEN, 100000);
	assert_int_equal(sessions_now(), 0);
}

static void test_invalid_messages_end_the_connection(void **state)
{
	static const char *const nonsense[] = {"x", "GET / HTTP/1.0\r\n\r\n", "rtap", "rtap\1\0\1"};

	for (size_t i = 0; i < sizeof(nonsense) / sizeof(nonsense[0]); i++) {
		int fd = rt_connect(dir, RT_SOCKET_NAME);

		assert_true(fd >= 0);
		assert_true(send(fd, nonsense[i], strlen(nonsense[i]), 0) > 0);
		assert_disconnected(fd);
	}
}

static void test_requests_without_a_greeting_are_refused(void **state)
{
	int fd = rt_connect(dir, RT_SOCKET_NAME);
	struct rt_msg_header h;

	assert_true(fd >= 0);
	rt_msg_init(&h, RT_MSG_LIST, sizeof(h));
	assert_int_equal(rt_msg_send(fd, &h, NULL, 0), 0);
	assert_disconnected(fd);
}

static void assert_lists(int fd)
{
	struct rt_msg_header h;
	uint8_t answer[8192];

	rt_msg_init(&h, RT_MSG_LIST, sizeof(h));
	assert_int_equal(rt_msg_send(fd, &h, NULL, 0), 0);
	for (int i = 0; i < 2; i++)
		assert_true(rt_msg_recv(fd, answer, sizeof(answer), NULL, 0, NULL, 5000) > 0);
	assert_int_equal(((const struct rt_msg_header *)answer)->type, RT_MSG_SESSIONS);
}

static void test_silent_connections_make_room(void **state)
{
	int fds[3 * RT_CONNS_MAX];

	for (unsigned i = 0; i < RTE_DIM(fds); i++) {
		fds[i] = i % 2 ? rt_connect(dir, RT_SOCKET_NAME) : greeted();
		assert_true(fds[i] >= 0);
	}
	for (int i = 0; i < 2; i++)
		assert_lists(fds[RTE_DIM(fds) - 2]);
	assert_disconnected(fds[0]);
	for (unsigned i = 1; i < RTE_DIM(fds); i++)
		close(fds[i]);
}

static void test_connections_that_do_not_greet_end(void **state)
{
	int fd = rt_connect(dir, RT_SOCKET_NAME);

	rt_store(&rt_probe_limits.greeting_ms, 1);
	assert_true(fd >= 0);
	assert_disconnected(fd);
	rt_store(&rt_probe_limits.greeting_ms, 5000);
}

static void test_readers_in_use_stay_and_further_ones_get_a_reason(void **state)
{
	const struct ringtap_monitor_options opts = {.size = sizeof(opts)};
	struct ringtap_monitor *monitors[RT_CONNS_MAX - 1];
	struct ringtap_capture *cap = test_capture(dir);
	uint64_t got = 0, last = 0;
	struct ringtap_conn *conn;
	char err[256] = "";

	for (unsigned i = 0; i < RTE_DIM(monitors); i++)
		assert_int_equal(
			ringtap_monitor_open(&monitors[i], dir, &opts, err, sizeof(err)), 0);
	for (int i = 0; i < 10; i++) {
		assert_int_equal(ringtap_conn_open(&conn, dir, NULL, err, sizeof(err)), -EBUSY);
		assert_non_null(strstr(err, "has 32 readers"));
	}
	assert_true(read_packets(cap, 1000, &got, &last) > 0);
	ringtap_capture_close(cap);
	for (unsigned i = 0; i < RTE_DIM(monitors); i++)
		ringtap_monitor_close(monitors[i]);
	while (ringtap_conn_open(&conn, dir, NULL, err, sizeof(err)))
		assert_non_null(strstr(err, "has 32 readers"));
	ringtap_conn_close(conn);
}

#define probing(f) cmocka_unit_test_setup_teardown(f, start_probe, stop_probe)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_probe_starts_once_and_again_after_stop),
		probing(test_socket_is_the_users_own),
		probing(test_capture_is_complete_once_stopped),
		probing(test_sample_is_complete_once_stopped),
		probing(test_capture_ends_with_the_probe),
		probing(test_detached_probe_sleeps_until_it_is_woken),
		probing(test_session_ends_with_its_reader),
		probing(test_buffer_of_a_session_grows),
		probing(test_session_that_was_never_started_ends),
		probing(test_invalid_tail_ends_only_its_session),
		probing(test_refusals_have_a_reason),
		probing(test_filter_applies_from_its_answer_on),
		probing(test_refused_filter_does_not_end_the_capture),
		probing(test_unexpected_messages_end_the_connection),
		probing(test_invalid_messages_end_the_connection),
		probing(test_requests_without_a_greeting_are_refused),
		probing(test_silent_connections_make_room),
		probing(test_connections_that_do_not_greet_end),
		probing(test_readers_in_use_stay_and_further_ones_get_a_reason),
	};

	test_eal_start();
	return cmocka_run_group_tests(tests, start_application, stop_application);
}
