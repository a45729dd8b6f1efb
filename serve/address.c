/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "address.h"
#include "base/util.h"

static int split(const char *listen, char *host, size_t size, const char **port)
{
	const char *colon = strrchr(listen, ':');
	size_t len;

	if (!colon) {
		*port = listen;
		return snprintf(host, size, "127.0.0.1") < 0 ? -EINVAL : 0;
	}
	*port = colon + 1;
	len = (size_t)(colon - listen);
	if (len && listen[0] == '[' && listen[len - 1] == ']') {
		listen++;
		len -= 2;
	}
	if (len >= size)
		return -EINVAL;
	memcpy(host, listen, len);
	host[len] = '\0';
	return 0;
}

void address_host(const char *listen, char host[ADDRESS_HOST_LEN])
{
	const char *port;

	if (split(listen, host, ADDRESS_HOST_LEN, &port))
		*host = '\0';
}

static int open_socket(const struct addrinfo *a, int queue)
{
	int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int one = 1;

	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (!bind(fd, a->ai_addr, a->ai_addrlen) && !listen(fd, queue))
		return fd;
	one = errno;
	close(fd);
	return -one;
}

unsigned address_url(int fd, char *url, size_t size)
{
	struct sockaddr_storage a;
	socklen_t len = sizeof(a);
	char host[64], port[16];

	if (getsockname(fd, (struct sockaddr *)&a, &len) ||
		getnameinfo((struct sockaddr *)&a, len, host, sizeof(host), port, sizeof(port),
			NI_NUMERICHOST | NI_NUMERICSERV)) {
		snprintf(url, size, "?");
		return 0;
	}
	snprintf(
		url, size, a.ss_family == AF_INET6 ? "http://[%s]:%s" : "http://%s:%s", host, port);
	return (unsigned)atoi(port);
}

static const char accepted[] = "give PORT, ADDRESS:PORT, [IPV6]:PORT or :PORT";

/* 0, or -EINVAL after a message. The caller frees *found with freeaddrinfo(). */
static int find_address(const char *command, const char *listen, struct addrinfo **found)
{
	const struct addrinfo hints = {.ai_flags = AI_PASSIVE | AI_NUMERICSERV,
		.ai_family = AF_UNSPEC,
		.ai_socktype = SOCK_STREAM};
	char host[ADDRESS_HOST_LEN];
	const char *port;
	uint64_t number;
	int ret;

	if (split(listen, host, sizeof(host), &port))
		return message_fail(-EINVAL, "%s: --listen %s: the address is too long; %s",
			command, listen, accepted);
	/* getaddrinfo() takes the lower 16 bits of any number. */
	if (parse_number(port, 65535, &number))
		return message_fail(-EINVAL,
			"%s: --listen %s: '%s' is not a port number from 0 to 65535; %s", command,
			listen, port, accepted);
	ret = getaddrinfo(*host ? host : NULL, port, &hints, found);
	if (ret)
		message_print("%s: --listen %s: cannot resolve '%s': %s; %s", command, listen, host,
			gai_strerror(ret), accepted);
	return ret ? -EINVAL : 0;
}

static const char *why_no_socket(int error)
{
	switch (error) {
	case -EADDRINUSE:
		return "another program listens there; end it, or choose another address or port";
	case -EADDRNOTAVAIL:
		return "this host does not have the address; choose one that 'ip address' shows";
	case -EACCES: return "this port is for root only; choose one from 1024 on";
	default: return NULL;
	}
}

int address_listen(const char *command, const char *listen, int queue)
{
	struct addrinfo *found = NULL;
	int ret = find_address(command, listen, &found);

	if (ret)
		return ret;
	ret = open_socket(found, queue);
	if (ret < 0)
		message_print("%s: --listen %s: %s%s", command, listen,
			why_no_socket(ret) ? why_no_socket(ret) : strerror(-ret),
			why_no_socket(ret) ? "" : "; choose another address or port");
	freeaddrinfo(found);
	return ret;
}
