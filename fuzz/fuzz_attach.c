/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The attach path: what an application's sockets answer. The input is a list of datagrams:
 *    1 byte   bits 0-1: 0 telemetry socket, else the probe's, and the largest of all says what is
 *             requested: 1 packets, 2 with ids, 3 fates; bits 2-4: how many of the three
 *             descriptors go with it (more: all, in the wrong order); bit 5: a good message of the
 *             type in the low byte of what follows replaces the data; what else follows goes over
 *             its body
 *    1 byte   length
 *    n bytes  the datagram
 * The application is played by the reader's own calls: before each wait it takes connections, sends
 * the list of the socket that was connected to, and hangs up. Before a good RT_MSG_OPENED it takes
 * the reader's memory, where there is any, and moves the session there. A wait that nothing ends
 * takes no time: the clock is set forward instead (see fuzz/meson.build for the calls).
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "common/ipc.h"
#include "reader/capture/capture.h"
#include "reader/find/telemetry.h"
#include "reader/test_session.h"
#include "use_fates.h"
#include "reader/tunables.h"

#define RUN_MAX   16u
#define CONNS_MAX 8

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char dir[] = "/tmp/ringtap-fuzz.XXXXXX";
static int telemetry_listener, probe_listener;
static struct test_session plain, with_fates, *session = &plain; /* the input's session */
static uint8_t input[1 << 16];
static size_t input_size;
static unsigned requested;
static uint64_t skipped_ns; /* that the clock is ahead */
static bool playing;        /* the application, which waits for nothing */
static bool blocked;        /* the reader, unless the application sends something */

/* A connection to the application. */
struct conn {
	int sock;
	bool probe;        /* else telemetry */
	const uint8_t *at; /* in the input; NULL: has hung up */
};

static struct conn conns[CONNS_MAX];
static unsigned conn_count;

static int listen_at(const char *name)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/%s", dir, name);
	unlink(addr.sun_path);
	if (bind(fd, (struct sockaddr *)&addr, sizeof(addr)) || listen(fd, 4))
		abort();
	return fd;
}

/* The reader's memory, if it has come. Returns false if the connection has no message. */
static bool take_memory(int sock)
{
	static uint64_t buf[RT_MSG_MAX / 8];
	const struct rt_msg_header *h = (const void *)buf;
	int fds[RT_FD_COUNT], len;
	unsigned n;

	do {
		bool fits = true;

		len = rt_msg_recv(sock, buf, sizeof(buf), fds, RT_FD_COUNT, &n, 0);
		for (unsigned i = 0; i < n; i++)
			fits &= lseek(fds[i], 0, SEEK_END) == lseek(session->fds[i], 0, SEEK_END);
		if (n == RT_FD_COUNT && fits)
			test_session_move(session, fds);
		for (unsigned i = 0; i < n; i++)
			close(fds[i]);
	} while (len > 0 && h->type != RT_MSG_MEMORY);
	return len >= 0;
}

/* A well-formed message of a type: an obstacle that the fuzzer need not learn to take. */
static int send_good(
	int sock, uint16_t type, const uint8_t *body, size_t len_body, const int *fds, unsigned n)
{
	union {
		struct rt_msg_header h;
		struct rt_msg_welcome welcome;
		struct rt_msg_error error;
		struct rt_msg_layout layout;
	} m = {0};
	uint32_t len = type == RT_MSG_WELCOME  ? sizeof(m.welcome)
		       : type == RT_MSG_ERROR  ? sizeof(m.error)
		       : type == RT_MSG_LAYOUT ? sizeof(m.layout)
					       : sizeof(m.h);

	if (type == RT_MSG_LAYOUT)
		test_session_lay_out(session, &m.layout);
	if (len_body > len - sizeof(m.h))
		len_body = len - sizeof(m.h);
	memcpy((uint8_t *)&m + sizeof(m.h), body, len_body);
	rt_msg_init(&m.h, type, len);
	return rt_msg_send(sock, &m.h, fds, n);
}

/* Returns 0 or -errno. */
static int send_one(int sock, uint8_t how, const uint8_t *p, size_t len)
{
	int fds[] = {session->fds[2], session->fds[0], session->fds[1]};
	unsigned n = how >> 2 & 7;
	struct {
		struct rt_msg_header h;
		uint8_t body[256];
	} m;

	if (how & 32) {
		return send_good(sock, len ? p[0] : RT_MSG_WELCOME, p + 1, len ? len - 1 : 0,
			n > 3 ? fds : session->fds, n > 3 ? 3 : n);
	}
	/* The header is mended now and then, or hardly a datagram would be looked into. */
	if (how & 64 && len > sizeof(m.h)) {
		memcpy(&m, p, len);
		rt_msg_init(&m.h, m.h.type, (uint32_t)len);
		return rt_msg_send(sock, &m.h, n > 3 ? fds : session->fds, n > 3 ? 3 : n);
	}
	return send(sock, p, len, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno : 0;
}

/* Is the datagram a good RT_MSG_OPENED, which a reader expects after it has sent its memory? */
static bool needs_memory(const struct conn *c, size_t len)
{
	return c->at[0] & 32 && len && c->at[2] == RT_MSG_OPENED;
}

/* Sends what the input has for the connection, up to a message that has to wait for the reader. */
static void send_list(struct conn *c)
{
	const uint8_t *end = input + input_size;

	while (end - c->at >= 2) {
		size_t left = (size_t)(end - c->at) - 2, n = c->at[1] < left ? c->at[1] : left;

		if (((c->at[0] & 3) != 0) == c->probe) {
			if (needs_memory(c, n) && !take_memory(c->sock) && !blocked)
				return;
			if (send_one(c->sock, c->at[0], c->at + 2, n))
				break; /* full, or closed */
		}
		c->at += 2 + n;
	}
	c->at = NULL;
	/* Not close(): what the reader has sent would discard what it has not received yet. */
	shutdown(c->sock, SHUT_WR);
}

static void accept_all(int listener, bool probe)
{
	int sock;

	while (conn_count < CONNS_MAX &&
		(sock = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0)
		conns[conn_count++] = (struct conn){.sock = sock, .probe = probe, .at = input};
}

static void play(void)
{
	char sink[4096];

	playing = true;
	accept_all(telemetry_listener, false);
	accept_all(probe_listener, true);
	for (unsigned i = conn_count; i-- > 0;) {
		ssize_t got = 1;

		if (conns[i].at)
			send_list(&conns[i]);
		while (!conns[i].at && (got = recv(conns[i].sock, sink, sizeof(sink), 0)) > 0)
			;
		if (got == 0) {
			close(conns[i].sock);
			conns[i] = conns[--conn_count];
		}
	}
	playing = false;
}

/* Leaves no connection to the next input. */
static void end_all(void)
{
	do {
		play();
		while (conn_count)
			close(conns[--conn_count].sock);
		accept_all(telemetry_listener, false);
		accept_all(probe_listener, true);
	} while (conn_count);
}

/* The linker puts these in the place of the functions without the prefix. */
int __real_clock_gettime(clockid_t clock, struct timespec *t);
int __real_poll(struct pollfd *fds, nfds_t n, int timeout_ms);
int __wrap_clock_gettime(clockid_t clock, struct timespec *t);
int __wrap_nanosleep(const struct timespec *time, struct timespec *left);
int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout_ms);
int __wrap_ppoll(struct pollfd *fds, nfds_t n, const struct timespec *time, const sigset_t *mask);
int __wrap_rt_collapse_aside(void (*f)(void *arg), void *arg, int timeout_ms);

static uint64_t ns_of(const struct timespec *t)
{
	return (uint64_t)t->tv_sec * 1000000000 + (uint64_t)t->tv_nsec;
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *t)
{
	int ret = __real_clock_gettime(clock, t);
	uint64_t ns = ns_of(t) + skipped_ns;

	*t = (struct timespec){(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
	return ret;
}

int __wrap_nanosleep(const struct timespec *time, struct timespec *left)
{
	(void)left;
	skipped_ns += ns_of(time);
	play();
	return 0;
}

int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout_ms)
{
	int ret;

	if (playing)
		return __real_poll(fds, n, 0);
	for (int i = 0; i < 2; i++) {
		blocked = i == 1;
		play();
		ret = __real_poll(fds, n, 0);
		if (ret)
			return ret;
	}
	if (timeout_ms < 0)
		abort(); /* for ever */
	skipped_ns += (uint64_t)timeout_ms * 1000000;
	return 0;
}

int __wrap_ppoll(struct pollfd *fds, nfds_t n, const struct timespec *time, const sigset_t *mask)
{
	int ret = __wrap_poll(fds, n, 0);

	(void)mask;
	if (!ret)
		skipped_ns += ns_of(time);
	return ret;
}

/* A process for each input would take most of the time. */
int __wrap_rt_collapse_aside(void (*f)(void *arg), void *arg, int timeout_ms)
{
	(void)f;
	(void)arg;
	(void)timeout_ms;
	return -1;
}

static void clean_up(void)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", dir, RT_SOCKET_NAME);
	unlink(path);
	snprintf(path, sizeof(path), "%s/%s", dir, RT_TELEMETRY_SOCKET);
	unlink(path);
	rmdir(dir);
}

static void put_some(struct test_session *s)
{
	for (uint32_t i = 0; i < 8; i++)
		test_put(s, i % 2, 1700000000000000000ull + i, i % 2, 60);
	test_publish(s, 0, 1700000000000000000ull);
	test_publish(s, 1, 1700000000000000000ull);
}

static void set_up(void)
{
	static const struct rlimit small = {16 << 20, 16 << 20};

	if (telemetry_listener)
		return;
	rt_reader_limits.telemetry_ms = 50; /* some attempts */
	/* The input's requests to the reader must not take the machine's memory. */
	signal(SIGXFSZ, SIG_IGN);
	if (setrlimit(RLIMIT_FSIZE, &small) || !mkdtemp(dir))
		abort();
	atexit(clean_up);
	test_session_make(&plain, 2, TEST_RING);
	put_some(&plain);
	test_session_make_fates(&with_fates, 2, TEST_RING);
	put_some(&with_fates);
	put_fates(&with_fates);
	telemetry_listener = listen_at(RT_TELEMETRY_SOCKET);
	probe_listener = listen_at(RT_SOCKET_NAME);
}

static void list(void)
{
	struct ringtap_list *list;
	struct ringtap_conn *conn;
	char err[RT_TEXT_LEN] = "";

	if (ringtap_conn_open(&conn, dir, NULL, err, sizeof(err))) {
		if (!err[0] || conn)
			abort();
		return;
	}
	if (ringtap_conn_list(conn, &list) == 0)
		ringtap_list_free(list);
	else if (list)
		abort();
	ringtap_conn_close(conn);
}

static void record(void)
{
	static const struct ringtap_target all = {
		.queue = -1, .directions = RINGTAP_RX | RINGTAP_TX};
	const struct ringtap_capture_options options = {.size = sizeof(options),
		.ids = requested == 2 ? RINGTAP_IDS : RINGTAP_NO_IDS,
		.fates = requested == 3};
	struct ringtap_run runs[RUN_MAX];
	struct ringtap_capture *cap;

	if (ringtap_capture_create(&cap, NULL))
		return;
	if (ringtap_capture_attach(cap, dir, &all, 1, &options) == 0) {
		int n = 0;

		for (int i = 0; i < 20 && n >= 0; i++) {
			n = ringtap_capture_next(cap, runs, RUN_MAX, 1);
			ringtap_capture_release(cap);
		}
		use_fates(cap);
		(void)ringtap_capture_stop(cap);
	} else if (!ringtap_capture_error(cap)[0]) {
		abort();
	}
	ringtap_capture_close(cap);
}

/* Number of the reader's request: 0 to 3. */
static unsigned request_of(const uint8_t *data, size_t size)
{
	unsigned most = 0;

	for (size_t i = 0; i + 2 <= size; i += 2 + data[i + 1])
		most = (data[i] & 3u) > most ? data[i] & 3u : most;
	return most;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char err[RT_TEXT_LEN] = "", name[RT_SOCKET_NAME_MAX];

	set_up();
	if (size > sizeof(input))
		return -1;
	memcpy(input, data, size);
	input_size = size;
	requested = request_of(data, size);
	session = requested == 3 ? &with_fates : &plain;
	if (rt_telemetry_wake(dir, name, err, sizeof(err)) && !err[0])
		abort();
	if (size && data[0] & 128)
		list();
	else
		record();
	end_all();
	return 0;
}
