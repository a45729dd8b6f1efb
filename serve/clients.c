/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who is connected, and what of a request shows where it comes from.
 *
 * A client that sends a byte now and then is not silent. So a request has a time as a whole, and
 * where many are connected, the oldest makes room, of the address that has most.
 */
#include <arpa/inet.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/util.h"
#include "clients.h"
#include "common/now.h"

#define REQUEST_NS (10 * NS_PER_S) /* since the last one of the connection */

static const struct sockaddr *address_of(struct MHD_Connection *c)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(c, MHD_CONNECTION_INFO_CLIENT_ADDRESS);

	return info ? info->client_addr : NULL;
}

static int descriptor_of(struct MHD_Connection *c)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);

	return info ? info->connect_fd : -1;
}

/* Without the port. */
static void take_address(struct client *c, const struct sockaddr *a)
{
	memset(c->address, 0, sizeof(c->address));
	if (a && a->sa_family == AF_INET)
		memcpy(c->address, &((const struct sockaddr_in *)a)->sin_addr, 4);
	else if (a && a->sa_family == AF_INET6)
		memcpy(c->address, &((const struct sockaddr_in6 *)a)->sin6_addr, 16);
}

static unsigned neighbours(const struct clients *all, const struct client *c)
{
	unsigned n = 0;

	for (unsigned i = 0; i < all->count; i++)
		n += !memcmp(all->list[i].address, c->address, sizeof(c->address));
	return n;
}

/* Its end is noticed by the server, which closes it. */
static void end(struct client *c)
{
	c->ended = true;
	shutdown(c->fd, SHUT_RDWR);
}

void clients_add(struct clients *all, int fd, const struct sockaddr *a, uint64_t now)
{
	struct client new = {.fd = fd, .since_ns = now}, *oldest = NULL;
	unsigned most = 0;

	take_address(&new, a);
	pthread_mutex_lock(&all->lock);
	for (unsigned i = 0; all->count >= CLIENTS_KEPT && i < all->count; i++) {
		struct client *c = &all->list[i];
		unsigned n = c->ended || c->streams ? 0 : neighbours(all, c);

		if (n > most || (n && n == most && c->since_ns < oldest->since_ns)) {
			oldest = c;
			most = n;
		}
	}
	if (oldest)
		end(oldest);
	if (all->count < CLIENTS_MAX)
		all->list[all->count++] = new;
	pthread_cond_broadcast(&all->changed);
	pthread_mutex_unlock(&all->lock);
}

void clients_remove(struct clients *all, int fd)
{
	pthread_mutex_lock(&all->lock);
	for (unsigned i = 0; i < all->count; i++)
		if (all->list[i].fd == fd) {
			all->list[i] = all->list[--all->count];
			break;
		}
	pthread_cond_broadcast(&all->changed);
	pthread_mutex_unlock(&all->lock);
}

void clients_served(struct clients *all, int fd, uint64_t now)
{
	pthread_mutex_lock(&all->lock);
	for (unsigned i = 0; i < all->count; i++)
		if (all->list[i].fd == fd)
			all->list[i].since_ns = now;
	pthread_mutex_unlock(&all->lock);
}

void clients_stream(struct clients *all, struct MHD_Connection *c)
{
	int fd = descriptor_of(c);

	pthread_mutex_lock(&all->lock);
	for (unsigned i = 0; i < all->count; i++)
		if (all->list[i].fd == fd)
			all->list[i].streams = true;
	pthread_mutex_unlock(&all->lock);
}

void clients_expire(struct clients *all, uint64_t now)
{
	pthread_mutex_lock(&all->lock);
	for (unsigned i = 0; i < all->count; i++)
		if (!all->list[i].ended && !all->list[i].streams &&
			now - all->list[i].since_ns > REQUEST_NS)
			end(&all->list[i]);
	pthread_mutex_unlock(&all->lock);
}

void clients_end(struct clients *all)
{
	const uint64_t until = now_ns(CLOCK_MONOTONIC) + NS_PER_S;

	pthread_mutex_lock(&all->lock);
	for (uint64_t now; all->count && (now = now_ns(CLOCK_MONOTONIC)) < until;) {
		for (unsigned i = 0; i < all->count; i++)
			if (!all->list[i].ended)
				end(&all->list[i]);
		rt_cond_wait_ns(&all->changed, &all->lock, until - now);
	}
	pthread_mutex_unlock(&all->lock);
}

void clients_notify(
	void *arg, struct MHD_Connection *c, void **state, enum MHD_ConnectionNotificationCode code)
{
	struct clients *all = arg;
	int fd = descriptor_of(c);

	if (code == MHD_CONNECTION_NOTIFY_STARTED) {
		setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &all->vanished_ms,
			sizeof(all->vanished_ms));
		clients_add(all, fd, address_of(c), now_ns(CLOCK_MONOTONIC));
	} else {
		clients_remove(all, fd);
	}
}

void clients_completed(
	void *arg, struct MHD_Connection *c, void **state, enum MHD_RequestTerminationCode code)
{
	clients_served(arg, descriptor_of(c), now_ns(CLOCK_MONOTONIC));
}

bool clients_has_gone(struct MHD_Connection *c)
{
	struct pollfd p = {.fd = descriptor_of(c), .events = POLLRDHUP};

	return poll(&p, 1, 0) > 0;
}

/* ---- where a request comes from */

static bool is_loopback(const struct sockaddr *a)
{
	const struct sockaddr_in *v4 = (const void *)a;
	const struct sockaddr_in6 *v6 = (const void *)a;

	if (a->sa_family == AF_INET)
		return ntohl(v4->sin_addr.s_addr) >> 24 == 127;
	return a->sa_family == AF_INET6 &&
	       (IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr) ||
		       (IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr) && v6->sin6_addr.s6_addr[12] == 127));
}

bool clients_is_local(struct MHD_Connection *c)
{
	/* A proxy on this host forwards what comes from elsewhere. */
	static const char *const proxied[] = {
		"Forwarded", "Via", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-IP"};
	const struct sockaddr *a = address_of(c);

	for (size_t i = 0; i < sizeof(proxied) / sizeof(proxied[0]); i++)
		if (MHD_lookup_connection_value(c, MHD_HEADER_KIND, proxied[i]))
			return false;
	return a && is_loopback(a);
}

static bool is_address(const char *host)
{
	char plain[INET6_ADDRSTRLEN], in[sizeof(struct in6_addr)];
	size_t len = strlen(host);

	if (inet_pton(AF_INET, host, in) == 1)
		return true;
	if (len < 2 || host[0] != '[' || host[len - 1] != ']' || len - 2 >= sizeof(plain))
		return false;
	memcpy(plain, host + 1, len - 2);
	plain[len - 2] = '\0';
	return inet_pton(AF_INET6, plain, in) == 1;
}

bool clients_is_host(const char *header, const char *const *names, unsigned count)
{
	const char *port = header ? strrchr(header, ':') : NULL;
	char host[256], own[256] = "";
	size_t len;

	if (!header)
		return true; /* HTTP/1.0: no browser */
	/* A colon within brackets is not before the port. */
	len = port && !strchr(port, ']') ? (size_t)(port - header) : strlen(header);
	if (len >= sizeof(host))
		return false;
	memcpy(host, header, len);
	host[len] = '\0';
	if (len && host[len - 1] == '.')
		host[len - 1] = '\0';
	gethostname(own, sizeof(own) - 1);
	for (unsigned i = 0; i < count; i++)
		if (!strcasecmp(host, names[i]))
			return true;
	return is_address(host) || !strcasecmp(host, "localhost") ||
	       (*own && !strcasecmp(host, own));
}
