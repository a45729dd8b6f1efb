/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/util.h"
#include "peer.h"

static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

/* An address and port, both in network order. */
struct end {
	uint8_t address[16];
	uint16_t port;
};

static int end_of(int fd, int (*get)(int, struct sockaddr *, socklen_t *), struct end *e)
{
	struct sockaddr_storage a;
	const struct sockaddr_in *v4 = (const void *)&a;
	const struct sockaddr_in6 *v6 = (const void *)&a;
	socklen_t len = sizeof(a);

	if (get(fd, (struct sockaddr *)&a, &len))
		return -errno;
	if (a.ss_family == AF_INET) {
		memcpy(e->address, mapped, sizeof(mapped));
		memcpy(e->address + sizeof(mapped), &v4->sin_addr, 4);
		e->port = v4->sin_port;
	} else if (a.ss_family == AF_INET6) {
		memcpy(e->address, &v6->sin6_addr, 16);
		e->port = v6->sin6_port;
	} else {
		return -EAFNOSUPPORT;
	}
	return 0;
}

static bool is_v4(const uint8_t address[16])
{
	return !memcmp(address, mapped, sizeof(mapped));
}

/* sock_diag(7): the socket whose own end is peer, and that is bound to a device, if any. */
static void fill_query(
	struct inet_diag_req_v2 *q, const struct end *peer, const struct end *own, unsigned device)
{
	unsigned skip = is_v4(peer->address) ? sizeof(mapped) : 0;

	*q = (struct inet_diag_req_v2){.sdiag_family = skip ? AF_INET : AF_INET6,
		.sdiag_protocol = IPPROTO_TCP,
		.idiag_states = UINT32_MAX,
		.id = {.idiag_sport = peer->port,
			.idiag_dport = own->port,
			.idiag_if = device,
			.idiag_cookie = {INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE}}};
	memcpy(q->id.idiag_src, peer->address + skip, 16 - skip);
	memcpy(q->id.idiag_dst, own->address + skip, 16 - skip);
}

/* The kernel reports no user of a socket that has ended, but root. */
static bool has_user(const struct inet_diag_msg *m)
{
	return m->idiag_state == TCP_ESTABLISHED ||
	       ((m->idiag_state == TCP_FIN_WAIT1 || m->idiag_state == TCP_FIN_WAIT2 ||
			m->idiag_state == TCP_CLOSE_WAIT) &&
		       m->idiag_inode);
}

/* 0; -ENOENT: this network namespace has no such socket; or another -errno. */
static int ask(const struct end *peer, const struct end *own, unsigned device, uid_t *uid)
{
	struct {
		struct nlmsghdr h;
		struct inet_diag_req_v2 q;
	} query = {.h = {.nlmsg_len = sizeof(query),
			   .nlmsg_type = SOCK_DIAG_BY_FAMILY,
			   .nlmsg_flags = NLM_F_REQUEST}};
	union {
		struct nlmsghdr h;
		uint8_t bytes[1024];
	} got;
	const struct inet_diag_msg *m = NLMSG_DATA(&got.h);
	const struct nlmsgerr *e = NLMSG_DATA(&got.h);
	int fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG), ret = -EPROTO;
	ssize_t n;

	if (fd < 0)
		return -errno;
	fill_query(&query.q, peer, own, device);
	n = send(fd, &query, sizeof(query), 0);
	if (n == sizeof(query))
		n = recv(fd, &got, sizeof(got), 0);
	if (n < 0)
		ret = -errno;
	close(fd);
	if (n < 0 || !NLMSG_OK(&got.h, (size_t)n))
		return ret;
	if (got.h.nlmsg_type == NLMSG_ERROR && got.h.nlmsg_len >= NLMSG_LENGTH(sizeof(*e)))
		return e->error ? e->error : ret;
	if (got.h.nlmsg_type != SOCK_DIAG_BY_FAMILY || got.h.nlmsg_len < NLMSG_LENGTH(sizeof(*m)))
		return ret;
	*uid = has_user(m) ? m->idiag_uid : PEER_UNKNOWN_USER;
	return 0;
}

/* A socket that is bound to a device is found by that only. */
static int user_of(const struct end *peer, const struct end *own, uid_t *uid)
{
	struct if_nameindex *devices;
	int ret = ask(peer, own, 0, uid);

	if (ret != -ENOENT || !(devices = if_nameindex()))
		return ret;
	for (struct if_nameindex *d = devices; ret == -ENOENT && d->if_index; d++)
		ret = ask(peer, own, d->if_index, uid);
	if_freenameindex(devices);
	return ret;
}

/* An address of an interface of this host. True also where that cannot be known. */
static bool is_own(const uint8_t address[16])
{
	unsigned skip = is_v4(address) ? sizeof(mapped) : 0;
	struct ifaddrs *all;
	bool own = skip && address[skip] == 127; /* all of 127.0.0.0/8 */

	if (getifaddrs(&all))
		return true;
	for (const struct ifaddrs *i = all; i && !own; i = i->ifa_next) {
		const struct sockaddr_in *v4 = (const void *)i->ifa_addr;
		const struct sockaddr_in6 *v6 = (const void *)i->ifa_addr;

		if (!i->ifa_addr || i->ifa_addr->sa_family != (skip ? AF_INET : AF_INET6))
			continue;
		own = skip ? !memcmp(address + skip, &v4->sin_addr, 4)
			   : !memcmp(address, &v6->sin6_addr, 16);
	}
	freeifaddrs(all);
	return own;
}

static void write_name(const struct end *e, char name[PEER_NAME_LEN])
{
	unsigned skip = is_v4(e->address) ? sizeof(mapped) : 0;
	char text[INET6_ADDRSTRLEN];

	inet_ntop(skip ? AF_INET : AF_INET6, e->address + skip, text, sizeof(text));
	snprintf(name, PEER_NAME_LEN, skip ? "%s:%u" : "[%s]:%u", text, ntohs(e->port));
}

static int find_tcp(int fd, struct peer *p)
{
	struct end own, peer;
	int ret = end_of(fd, getsockname, &own);

	if (!ret)
		ret = end_of(fd, getpeername, &peer);
	if (ret)
		return ret;
	memcpy(p->address, peer.address, sizeof(p->address));
	write_name(&peer, p->name);
	if (!user_of(&peer, &own, &p->uid)) {
		p->here = true;
		return 0;
	}
	/* Its socket may have ended, and a kernel may lack tcp_diag. */
	p->here = is_own(peer.address);
	return 0;
}

int peer_find(int fd, struct peer *p)
{
	int family;
	struct ucred c;
	socklen_t len = sizeof(family);

	*p = (struct peer){.uid = PEER_UNKNOWN_USER};
	if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &len))
		return -errno;
	if (family != AF_UNIX)
		return find_tcp(fd, p);
	len = sizeof(c);
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &c, &len))
		return -errno;
	p->here = true;
	p->uid = c.uid;
	snprintf(p->name, sizeof(p->name), "process %d", c.pid);
	return 0;
}

int peer_network_parse(const char *text, struct peer_network *n)
{
	const char *slash = strchr(text, '/');
	char address[INET6_ADDRSTRLEN];
	size_t len = slash ? (size_t)(slash - text) : strlen(text);
	uint64_t bits;

	if (len >= sizeof(address))
		return -EINVAL;
	memcpy(address, text, len);
	address[len] = '\0';
	memcpy(n->address, mapped, sizeof(mapped));
	n->bits = 128;
	if (inet_pton(AF_INET, address, n->address + sizeof(mapped)) == 1) {
		if (!slash)
			return 0;
		if (parse_number(slash + 1, 32, &bits))
			return -EINVAL;
		n->bits = 96 + (unsigned)bits;
		return 0;
	}
	if (inet_pton(AF_INET6, address, n->address) != 1)
		return -EINVAL;
	if (slash && parse_number(slash + 1, 128, &bits))
		return -EINVAL;
	n->bits = slash ? (unsigned)bits : 128;
	return 0;
}

bool peer_is_in(const struct peer *p, const struct peer_network *n)
{
	unsigned bytes = n->bits / 8, rest = n->bits % 8;

	if (memcmp(p->address, n->address, bytes))
		return false;
	return !rest || (p->address[bytes] ^ n->address[bytes]) >> (8 - rest) == 0;
}
