/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"
#include "collector.h"
#include "common/now.h"

#define RETRY_NS   (10 * NS_PER_S)
#define CONNECT_MS 3000
#define HOST_LEN   256

/* ---- addresses ---- */

/* "HOST", "HOST:PORT", "[IPV6]:PORT", "IPV6". False: the host is too long, or empty. */
static bool split(const char *text, char host[HOST_LEN], const char **port)
{
	const char *end = strrchr(text, ':'), *from = text;
	size_t len;

	if (*text == '[') {
		from++;
		end = strchr(text, ']');
		if (!end || (end[1] && end[1] != ':'))
			return false;
		*port = end[1] ? end + 2 : *port;
	} else if (end && end == strchr(text, ':')) {
		*port = end + 1;
	} else {
		end = text + strlen(text);
	}
	len = (size_t)(end - from);
	if (!len || len >= HOST_LEN)
		return false;
	memcpy(host, from, len);
	host[len] = '\0';
	return true;
}

static int resolve(struct collector *c, const char *command, const char *option, const char *text,
	const char *port)
{
	const struct addrinfo hints = {.ai_flags = AI_NUMERICSERV,
		.ai_family = AF_UNSPEC,
		.ai_socktype = c->stream ? SOCK_STREAM : SOCK_DGRAM};
	struct addrinfo *found = NULL;
	char host[HOST_LEN];
	uint64_t number;
	int ret;

	if (!split(text, host, &port) || parse_number(port, 65535, &number) || !number)
		return message_fail(-EINVAL,
			"%s: --%s %s: it is not an address; give HOST, HOST:PORT or [IPV6]:PORT",
			command, option, c->text);
	ret = getaddrinfo(host, port, &hints, &found);
	if (ret)
		return message_fail(-EHOSTUNREACH, "%s: --%s %s: cannot resolve '%s': %s", command,
			option, c->text, host, gai_strerror(ret));
	memcpy(&c->address, found->ai_addr, found->ai_addrlen);
	c->address_len = found->ai_addrlen;
	freeaddrinfo(found);
	return 0;
}

/* ---- connections ---- */

static int disconnect(struct collector *c)
{
	const int error = errno;

	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
	c->connecting = false;
	c->not_sent += c->rest_len > 0;
	c->rest_len = 0;
	c->retry_ns = rt_now_ns(CLOCK_MONOTONIC) + RETRY_NS;
	return -error;
}

/* Begins a connection. 0 or -errno. */
static int begin(struct collector *c)
{
	const int type = (c->stream ? SOCK_STREAM : SOCK_DGRAM) | SOCK_CLOEXEC | SOCK_NONBLOCK;

	c->fd = socket(c->address.ss_family, type, 0);
	if (c->fd < 0)
		return disconnect(c);
	c->connecting = true;
	if (!connect(c->fd, (const struct sockaddr *)&c->address, c->address_len)) {
		c->connecting = false;
		c->connections++;
		return 0;
	}
	return errno == EINPROGRESS ? 0 : disconnect(c);
}

/* Whether the connection stands after ns at most. 0, -EAGAIN: not yet, or -errno. */
static int connected(struct collector *c, uint64_t ns)
{
	struct pollfd p = {.fd = c->fd, .events = POLLOUT};
	socklen_t len = sizeof(int);
	int error = 0;

	if (!c->connecting)
		return 0;
	if (rt_poll_ns(&p, 1, ns) <= 0)
		return -EAGAIN;
	if (!getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &len) && !error) {
		c->connecting = false;
		c->connections++;
		return 0;
	}
	errno = error ?: EIO;
	return disconnect(c);
}

int collector_open(struct collector *c, const char *command, const char *option, const char *text,
	const char *port, bool tcp_allowed)
{
	int ret;

	*c = (struct collector){.text = text, .fd = -1};
	if (tcp_allowed && !strncmp(text, "tcp:", 4)) {
		c->stream = true;
		text += 4;
	}
	ret = resolve(c, command, option, text, port);
	if (ret)
		return ret;
	ret = begin(c);
	if (!ret)
		ret = connected(c, CONNECT_MS * 1000000ull);
	if (ret)
		return message_fail(ret, "%s: --%s %s: cannot connect: %s", command, option,
			c->text, strerror(ret == -EAGAIN ? ETIMEDOUT : -ret));
	return 0;
}

void collector_close(struct collector *c)
{
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
}

/* ---- messages ---- */

/* Rest of a message that TCP has not taken whole: the next one must not begin before its
 * end. */
static void send_rest(struct collector *c)
{
	ssize_t n = send(c->fd, c->rest, c->rest_len, MSG_NOSIGNAL | MSG_DONTWAIT);

	if (n < 0) {
		if (errno != EAGAIN && errno != EINTR)
			(void)disconnect(c);
		return;
	}
	c->rest_len -= (size_t)n;
	memmove(c->rest, c->rest + n, c->rest_len);
	c->sent += !c->rest_len;
}

bool collector_ready(struct collector *c)
{
	if (c->fd < 0 && rt_now_ns(CLOCK_MONOTONIC) >= c->retry_ns)
		(void)begin(c);
	if (c->fd < 0 || connected(c, 0))
		return false;
	if (c->rest_len)
		send_rest(c);
	return c->fd >= 0 && !c->rest_len;
}

void collector_send(struct collector *c, const struct wire *m)
{
	ssize_t n;

	if (!collector_ready(c)) {
		c->not_sent++;
		return;
	}
	n = send(c->fd, m->p, m->len, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (n < 0 && errno == ECONNREFUSED && !c->stream) {
		/* The answer to an earlier datagram: nobody received that one. */
		c->not_sent += c->sent > 0;
		c->sent -= c->sent > 0;
		n = send(c->fd, m->p, m->len, MSG_NOSIGNAL | MSG_DONTWAIT);
	}
	if (n < 0 && c->stream && (errno == EAGAIN || errno == EINTR))
		n = 0;
	if (n == (ssize_t)m->len) {
		c->sent++;
	} else if (n >= 0 && c->stream) {
		c->rest_len = m->len - (size_t)n;
		memcpy(c->rest, m->p + n, c->rest_len);
	} else {
		c->not_sent++;
		if (c->stream)
			(void)disconnect(c);
	}
}

void collector_drain(struct collector *c, int timeout_ms)
{
	const uint64_t end = rt_now_ns(CLOCK_MONOTONIC) + (uint64_t)timeout_ms * 1000000;

	while (c->fd >= 0 && c->rest_len) {
		struct pollfd p = {.fd = c->fd, .events = POLLOUT};
		const uint64_t now = rt_now_ns(CLOCK_MONOTONIC);

		if (now >= end || rt_poll_ns(&p, 1, end - now) <= 0)
			return;
		send_rest(c);
	}
}

size_t collector_source(const struct collector *c, uint8_t address[16])
{
	struct sockaddr_storage a = {.ss_family = AF_UNSPEC};
	socklen_t len = sizeof(a);

	if (c->fd < 0 || getsockname(c->fd, (struct sockaddr *)&a, &len))
		return 0;
	if (a.ss_family == AF_INET6) {
		memcpy(address, &((const struct sockaddr_in6 *)&a)->sin6_addr, 16);
		return 16;
	}
	memcpy(address, &((const struct sockaddr_in *)&a)->sin_addr, 4);
	return 4;
}
