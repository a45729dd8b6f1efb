/* SPDX-License-Identifier: BSD-3-Clause */
/* The end of the HTTP server beside clients. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/test_util.h"
#include "common/test_now.h"
#include "serve.h"

#define CLIENTS 40u

static struct serve server;

static enum MHD_Result answer(
	void *ctx, struct MHD_Connection *c, const char *url, const char *method)
{
	return serve_text(c, MHD_HTTP_OK, "yes\n", NULL);
}

static void start(struct serve_options *o)
{
	char url[128];
	int fd;

	*o = (struct serve_options){.command = "export", .listen = "127.0.0.1:0", .answer = answer};
	fd = serve_listen(&server, o, url, sizeof(url));
	assert_true(fd >= 0);
	assert_int_equal(serve_start(&server, fd), 0);
}

static int connect_there(void)
{
	struct sockaddr_in a = {.sin_family = AF_INET,
		.sin_port = htons((uint16_t)server.port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	return fd;
}

static bool is_over(int fd)
{
	char c;

	return poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, 10000) == 1 &&
	       recv(fd, &c, 1, 0) <= 0;
}

/* By then the server has accepted all that connected before. */
static int answered(void)
{
	static const char request[] = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
	int fd = connect_there();
	char text[1000];

	assert_int_equal(send(fd, request, strlen(request), 0), strlen(request));
	assert_true(recv(fd, text, sizeof(text), 0) > 0);
	assert_memory_equal(text, "HTTP/1.1 200", 12);
	return fd;
}

/* libmicrohttpd refuses these itself. */
static void beside_bytes_that_are_not_a_request(void **state)
{
	struct serve_options options;
	char text[100000];
	int fds[CLIENTS], last;

	memset(text, 'a', sizeof(text));
	for (unsigned round = 0; round < 200; round++) {
		start(&options);
		for (unsigned i = 0; i < CLIENTS; i++)
			fds[i] = connect_there();
		last = answered();
		for (unsigned i = 0; i < CLIENTS; i++)
			(void)send(fds[i], text, sizeof(text), MSG_NOSIGNAL | MSG_DONTWAIT);
		serve_stop(&server);
		for (unsigned i = 0; i < CLIENTS; i++)
			close(fds[i]);
		close(last);
	}
}

static void connections_are_closed(void **state)
{
	struct serve_options options;
	int idle, half, last;

	start(&options);
	idle = connect_there();
	half = connect_there();
	assert_int_equal(send(half, "GET / HT", 8, 0), 8);
	last = answered();
	serve_stop(&server);
	assert_true(is_over(idle) && is_over(half));
	close(idle);
	close(half);
	close(last);
	serve_stop(&server); /* has no effect */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(beside_bytes_that_are_not_a_request),
		cmocka_unit_test(connections_are_closed),
	};

	test_now_set(TEST_NOW_MONO_NS, TEST_NOW_REAL_NS);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
