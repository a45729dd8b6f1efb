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
 * A thread plays the application: it sends the list of the socket that is connected to, and hangs
 * up. Before a good RT_MSG_OPENED it takes the reader's memory, where there is any, and moves the
 * session there.
 */
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/ipc.h"
#include "reader/capture.h"
#include "reader/telemetry.h"
#include "reader/test_session.h"
#include "use_fates.h"

#define RUN_MAX   16u
#define MEMORY_MS 20

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char dir[] = "/tmp/ringtap-fuzz.XXXXXX";
static int telemetry_listener, probe_listener;
static struct test_session plain, with_fates, *session = &plain; /* of the input */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;         /* of the input */
static uint8_t input[1 << 16];
static size_t input_size;
static unsigned requested;

static int listen_at(const char *name)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/%s", dir, name);
	unlink(addr.sun_path);
	if (bind(fd, (struct sockaddr *)&addr, sizeof(addr)) || listen(fd, 4))
		abort();
	return fd;
}

/* The reader's memory, if it comes; else nothing. */
static void take_memory(int sock)
{
	static uint64_t buf[RT_MSG_MAX / 8];
	const struct rt_msg_header *h = (const void *)buf;
	int fds[RT_FD_COUNT], len;
	unsigned n;

	do {
		bool fits = true;

		len = rt_msg_recv(sock, buf, sizeof(buf), fds, RT_FD_COUNT, &n, MEMORY_MS);
		for (unsigned i = 0; i < n; i++)
			fits &= lseek(fds[i], 0, SEEK_END) == lseek(session->fds[i], 0, SEEK_END);
		if (n == RT_FD_COUNT && fits)
			test_session_move(session, fds);
		for (unsigned i = 0; i < n; i++)
			close(fds[i]);
	} while (len > 0 && h->type != RT_MSG_MEMORY);
}

/* A well-formed message of a type: an obstacle that the fuzzer need not learn to take. */
static void send_good(
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

	if (type == RT_MSG_OPENED)
		take_memory(sock);
	if (type == RT_MSG_LAYOUT)
		test_session_lay_out(session, &m.layout);
	if (len_body > len - sizeof(m.h))
		len_body = len - sizeof(m.h);
	memcpy((uint8_t *)&m + sizeof(m.h), body, len_body);
	rt_msg_init(&m.h, type, len);
	(void)rt_msg_send(sock, &m.h, fds, n);
}

static void send_one(int sock, uint8_t how, const uint8_t *p, size_t len)
{
	int fds[] = {session->fds[2], session->fds[0], session->fds[1]};
	unsigned n = how >> 2 & 7;
	struct {
		struct rt_msg_header h;
		uint8_t body[256];
	} m;

	if (how & 32) {
		send_good(sock, len ? p[0] : RT_MSG_WELCOME, p + 1, len ? len - 1 : 0,
			n > 3 ? fds : session->fds, n > 3 ? 3 : n);
		return;
	}
	/* The header is mended now and then, or hardly a datagram would be looked into. */
	if (how & 64 && len > sizeof(m.h)) {
		memcpy(&m, p, len);
		rt_msg_init(&m.h, m.h.type, (uint32_t)len);
		(void)rt_msg_send(sock, &m.h, n > 3 ? fds : session->fds, n > 3 ? 3 : n);
		return;
	}
	(void)send(sock, p, len, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void play(int listener, bool probe)
{
	int sock = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	const uint8_t *p = input;
	char sink[4096];
	size_t left;

	/* Whoever connected may have gone again: then this is the next input already. */
	pthread_mutex_lock(&lock);
	left = input_size;
	while (left >= 2) {
		size_t n = p[1] < left - 2 ? p[1] : left - 2;

		if (((p[0] & 3) != 0) == probe)
			send_one(sock, p[0], p + 2, n);
		p += 2 + n;
		left -= 2 + n;
	}
	pthread_mutex_unlock(&lock);
	/* Not close(): what is unread on our side would take away what they have not read yet. */
	shutdown(sock, SHUT_WR);
	while (recv(sock, sink, sizeof(sink), 0) > 0)
		;
	close(sock);
}

static void *be_application(void *arg)
{
	for (;;) {
		struct pollfd fds[2] = {{.fd = telemetry_listener, .events = POLLIN},
			{.fd = probe_listener, .events = POLLIN}};

		poll(fds, 2, -1);
		for (int i = 0; i < 2; i++) {
			if (fds[i].revents)
				play(fds[i].fd, i == 1);
		}
	}
	return NULL;
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
	pthread_t thread;

	if (telemetry_listener)
		return;
	/* What the input asks the reader for must not take the machine's memory. */
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
	if (pthread_create(&thread, NULL, be_application, NULL))
		abort();
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

/* What the reader asks for: 0 to 3. */
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
	pthread_mutex_lock(&lock);
	memcpy(input, data, size);
	input_size = size;
	requested = request_of(data, size);
	session = requested == 3 ? &with_fates : &plain;
	pthread_mutex_unlock(&lock);
	if (rt_telemetry_wake(dir, name, err, sizeof(err)) && !err[0])
		abort();
	if (size && data[0] & 128)
		list();
	else
		record();
	return 0;
}
