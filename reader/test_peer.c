/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/atomics.h"
#include "common/ipc.h"
#include "reader/find/telemetry.h"
#include "test_peer.h"

#define CONNS_MAX 8

static int listen_at(const char *dir, const char *name)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/%s", dir, name);
	if (fd < 0 || bind(fd, (struct sockaddr *)&addr, sizeof(addr)) || listen(fd, CONNS_MAX))
		abort();
	return fd;
}

void test_peer_send(int sock, uint16_t type, const int *fds, unsigned fd_count)
{
	struct rt_msg_header h;

	rt_msg_init(&h, type, sizeof(h));
	(void)rt_msg_send(sock, &h, fds, fd_count);
}

void test_peer_grown(int sock, int code, const char *text)
{
	struct rt_msg_grown m = {.code = code};

	rt_msg_init(&m.h, RT_MSG_GROWN, sizeof(m));
	rt_str_set(m.text, sizeof(m.text), text);
	(void)rt_msg_send(sock, &m.h, NULL, 0);
}

static void test_peer_refuse(int sock, const char *text)
{
	struct rt_msg_error m = {.code = -EINVAL};

	rt_msg_init(&m.h, RT_MSG_ERROR, sizeof(m));
	rt_str_set(m.text, sizeof(m.text), text);
	(void)rt_msg_send(sock, &m.h, NULL, 0);
}

bool test_peer_answer(struct test_peer *p, int sock, uint16_t type)
{
	struct rt_msg_welcome w = {
		.pid = 77, .prefix = "test", .program = "peer", .dpdk = "DPDK 0", .probe = "0.0"};
	struct rt_msg_layout layout;

	switch (type) {
	case RT_MSG_HELLO:
		rt_msg_init(&w.h, RT_MSG_WELCOME, sizeof(w));
		return rt_msg_send(sock, &w.h, NULL, 0) == 0;
	case RT_MSG_OPEN:
	case RT_MSG_OPEN_IDS:
		if ((p->open.flags & RT_OPEN_GROWS && !p->first) || p->open.flags & p->unknown) {
			test_peer_refuse(sock, "request refused: unknown option");
			return false;
		}
		test_session_lay_out(p->session, &layout);
		if (p->open.flags & RT_OPEN_GROWS)
			layout.bytes[RT_FD_DATA] = p->first;
		return rt_msg_send(sock, &layout.h, NULL, 0) == 0;
	case RT_MSG_MEMORY:
		if (p->fd_count != RT_FD_COUNT)
			return false;
		test_session_move(p->session, p->fds);
		test_peer_send(sock, RT_MSG_OPENED, NULL, 0);
		return true;
	case RT_MSG_GROW:
		if (p->fd_count != 1 || !test_session_grow(p->session, p->fds[0]))
			return false;
		test_peer_grown(sock, 0, "");
		return true;
	case RT_MSG_MONITOR: test_peer_send(sock, RT_MSG_MONITORING, &p->stats_fd, 1); return true;
	case RT_MSG_START: test_peer_send(sock, RT_MSG_STARTED, NULL, 0); return true;
	case RT_MSG_STOP: test_peer_send(sock, RT_MSG_STOPPED, NULL, 0); return true;
	default: return false;
	}
}

static void take_open(struct test_peer *p, const void *msg)
{
	const char *end;

	memcpy(&p->open, msg, sizeof(p->open));
	end = (const char *)msg + p->open.h.len;
	if (p->open.flags & RT_OPEN_FIRST) {
		end -= sizeof(p->first_of);
		memcpy(&p->first_of, end, sizeof(p->first_of));
	}
	if (p->open.flags & RT_OPEN_SAMPLE)
		memcpy(&p->sample, end - sizeof(p->sample), sizeof(p->sample));
}

static bool serve(struct test_peer *p, int sock)
{
	static _Thread_local uint64_t buf[RT_MSG_MAX / 8];
	const struct rt_msg_header *h = (const void *)buf;

	bool more;

	if (rt_msg_recv(sock, buf, sizeof(buf), p->fds, RT_FD_COUNT, &p->fd_count, 0) <= 0)
		return false;
	if (h->type == RT_MSG_MONITOR)
		memcpy(&p->request, buf, sizeof(p->request));
	if (h->type == RT_MSG_OPEN || h->type == RT_MSG_OPEN_IDS)
		take_open(p, buf);
	more = p->answer ? p->answer(p, sock, h->type) : test_peer_answer(p, sock, h->type);
	while (p->fd_count)
		close(p->fds[--p->fd_count]);
	return more;
}

/* As rte_telemetry: a greeting, then an answer to each command. */
static void serve_telemetry(struct test_peer *p)
{
	int sock = accept(p->telemetry_listener, NULL, NULL);
	char cmd[256];

	if (rt_fetch_add(&p->requests, 1) < p->telemetry_busy) {
		close(sock);
		return;
	}
	/* As a thread that is late: a client may have left. */
	if (p->telemetry_late)
		poll(&(struct pollfd){.fd = sock}, 1, 20);
	if (send(sock, "{\"version\":\"DPDK\"}", 18, MSG_NOSIGNAL) < 0)
		rt_fetch_add(&p->left_early, 1);
	if (recv(sock, cmd, sizeof(cmd), 0) > 0) {
		if (p->telemetry_wakes)
			p->listener = listen_at(p->dir, p->socket ? p->socket : RT_SOCKET_NAME);
		if (!p->telemetry_silent)
			(void)send(sock, p->telemetry, strlen(p->telemetry), MSG_NOSIGNAL);
		else
			(void)!recv(sock, cmd, sizeof(cmd), 0);
	}
	close(sock);
}

static void *run(void *arg)
{
	struct test_peer *p = arg;
	struct pollfd fds[3 + CONNS_MAX];
	int conns = 0;
	char byte;

	for (;;) {
		fds[0] = (struct pollfd){.fd = p->quit[0], .events = POLLIN};
		fds[1] = (struct pollfd){.fd = p->listener, .events = POLLIN};
		fds[2] = (struct pollfd){.fd = p->telemetry_listener, .events = POLLIN};
		if (poll(fds, 3 + (nfds_t)conns, -1) < 0)
			break;
		/* The read orders the changes that the test made to the sockets before, for
		 * ThreadSanitizer. */
		if (fds[0].revents && read(p->quit[0], &byte, 1) == 1)
			break;
		for (int i = conns - 1; i >= 0; i--) {
			struct pollfd *c = &fds[3 + i];

			if (c->revents && !serve(p, c->fd)) {
				close(c->fd);
				*c = fds[3 + --conns];
			}
		}
		if (fds[1].revents && conns < CONNS_MAX)
			fds[3 + conns++] = (struct pollfd){
				.fd = accept(p->listener, NULL, NULL), .events = POLLIN};
		if (fds[2].revents)
			serve_telemetry(p);
	}
	while (conns)
		close(fds[3 + --conns].fd);
	return NULL;
}

void test_peer_start(struct test_peer *p, bool awake)
{
	strcpy(p->dir, "/tmp/ringtap-test.XXXXXX");
	if (!mkdtemp(p->dir) || pipe(p->quit))
		abort();
	p->requests = 0;
	p->listener = awake ? listen_at(p->dir, RT_SOCKET_NAME) : -1;
	p->telemetry_listener = p->telemetry ? listen_at(p->dir, RT_TELEMETRY_SOCKET) : -1;
	if (pthread_create(&p->thread, NULL, run, p))
		abort();
}

static void remove_socket(const struct test_peer *p, const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", p->dir, name);
	unlink(path);
}

void test_peer_die(struct test_peer *p)
{
	if (write(p->quit[1], "", 1) != 1 || pthread_join(p->thread, NULL))
		abort();
	close(p->quit[0]);
	close(p->quit[1]);
	if (p->listener >= 0)
		close(p->listener);
	if (p->telemetry_listener >= 0)
		close(p->telemetry_listener);
}

void test_peer_bury(struct test_peer *p)
{
	remove_socket(p, p->socket ? p->socket : RT_SOCKET_NAME);
	remove_socket(p, RT_TELEMETRY_SOCKET);
	rmdir(p->dir);
}

void test_peer_stop(struct test_peer *p)
{
	test_peer_die(p);
	test_peer_bury(p);
}

int test_capture_open(struct test_session *session, struct test_peer *peer,
	struct ringtap_capture **cap, uint32_t rings, bool attach)
{
	const struct ringtap_target all = {.queue = -1, .directions = RINGTAP_RX | RINGTAP_TX};
	int ret;

	test_session_make(session, rings, TEST_RING);
	*peer = (struct test_peer){.session = session};
	test_peer_start(peer, true);
	ret = ringtap_capture_create(cap, NULL);
	if (ret || !attach)
		return ret;
	ret = ringtap_capture_attach(*cap, peer->dir, &all, 1, NULL);
	return ret ? ret : ringtap_capture_start(*cap);
}

int test_capture_close(
	struct test_session *session, struct test_peer *peer, struct ringtap_capture *cap)
{
	ringtap_capture_close(cap);
	test_peer_stop(peer);
	test_session_free(session);
	return 0;
}
