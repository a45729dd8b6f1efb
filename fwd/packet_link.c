/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "packet_link.h"
#include "base/util.h"

#define SLEEP_MS 10 /* maximum delay of the end of a run */

static int fail(const struct link *l, const char *what, int error)
{
	return message_fail(-error, "%s: cannot %s: %s%s", l->name, what, strerror(error),
		error == EPERM || error == EACCES ? "; run as root or with CAP_NET_RAW" : "");
}

static int make_packets(struct socket_link *s)
{
	s->packets = calloc(PACKETS_MAX, sizeof(*s->packets));
	s->buffers = malloc((size_t)PACKETS_MAX * FRAME_MAX);
	if (!s->packets || !s->buffers)
		return -ENOMEM;
	/* Causes the page faults before the run. */
	memset(s->buffers, 0, (size_t)PACKETS_MAX * FRAME_MAX);
	for (unsigned i = 0; i < PACKETS_MAX; i++) {
		struct packet *p = &s->packets[i];

		p->home = s;
		p->own_buffer = s->buffers + (size_t)i * FRAME_MAX;
		p->m.buf_addr = p->own_buffer;
		p->m.nb_segs = 1;
		packet_idle(p);
	}
	return 0;
}

static int find_interface(struct link *l)
{
	struct ifreq r = {0};

	l->socket->ifindex = (int)if_nametoindex(l->name);
	if (!l->socket->ifindex)
		return message_fail(-ENODEV, "%s: no such interface; see 'ip link'", l->name);
	memcpy(r.ifr_name, l->name, IFNAMSIZ - 1); /* fits: the interface exists */
	if (ioctl(l->socket->fd, SIOCGIFHWADDR, &r))
		return fail(l, "read the MAC address", errno);
	memcpy(l->mac, r.ifr_hwaddr.sa_data, sizeof(l->mac));
	if (ioctl(l->socket->fd, SIOCGIFMTU, &r))
		return fail(l, "read the MTU", errno);
	l->socket->frame_max = (uint32_t)r.ifr_mtu + ETH_HLEN;
	if (ioctl(l->socket->fd, SIOCGIFFLAGS, &r))
		return fail(l, "read the interface flags", errno);
	if (!(r.ifr_flags & IFF_UP))
		return message_fail(-ENETDOWN, "%s: the interface is down; run 'ip link set %s up'",
			l->name, l->name);
	return 0;
}

void socket_sleep(struct link *l)
{
	struct pollfd p = {.fd = l->socket->fd, .events = POLLIN};

	(void)poll(&p, 1, SLEEP_MS);
}

int socket_open(struct link *l, const struct fwd_config *c)
{
	struct socket_link *s = calloc(1, sizeof(*s));

	if (!s)
		return fail(l, "open a packet socket", ENOMEM);
	l->socket = s;
	s->sleep = c->sleep;
	/* Protocol 0: nothing is received before socket_bind(). */
	s->fd = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (s->fd < 0)
		return fail(l, "open a packet socket", errno);
	if (make_packets(s))
		return fail(l, "allocate packets", ENOMEM);
	return find_interface(l);
}

int socket_bind(struct link *l)
{
	struct socket_link *s = l->socket;
	struct sockaddr_ll a = {.sll_family = AF_PACKET,
		.sll_protocol = l->rx ? htons(ETH_P_ALL) : 0,
		.sll_ifindex = s->ifindex};
	struct packet_mreq promiscuous = {.mr_ifindex = s->ifindex, .mr_type = PACKET_MR_PROMISC};
	int one = 1, room = 32 << 20;

	if (l->rx && setsockopt(s->fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one, sizeof(one)))
		return fail(l, "ignore outgoing packets (PACKET_IGNORE_OUTGOING)", errno);
	/* Exceeding net.core.rmem_max requires CAP_NET_ADMIN. */
	if (setsockopt(s->fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room)))
		(void)setsockopt(s->fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room));
	if (bind(s->fd, (struct sockaddr *)&a, sizeof(a)))
		return fail(l, "bind the packet socket", errno);
	if (l->rx && setsockopt(s->fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &promiscuous,
			     sizeof(promiscuous)))
		return fail(l, "set promiscuous mode", errno);
	return 0;
}

void socket_close(struct link *l)
{
	struct socket_link *s = l->socket;

	if (!s)
		return;
	if (s->fd >= 0)
		close(s->fd);
	free(s->packets);
	free(s->buffers);
	free(s);
	l->socket = NULL;
}

uint64_t socket_missed(struct link *l)
{
	union {
		struct tpacket_stats v1;
		struct tpacket_stats_v3 v3;
	} u = {0};
	socklen_t len = l->socket->rings ? sizeof(u.v3) : sizeof(u.v1);

	/* Reading resets the kernel's counter. */
	if (!getsockopt(l->socket->fd, SOL_PACKET, PACKET_STATISTICS, &u, &len))
		l->socket->missed += u.v1.tp_drops;
	return l->socket->missed;
}

uint16_t socket_alloc(struct link *l, struct rte_mbuf **m, uint16_t n)
{
	struct socket_link *s = l->socket;

	if (s->idle_count < n)
		return 0;
	for (uint16_t i = 0; i < n; i++) {
		struct packet *p = s->idle[--s->idle_count];

		p->m.buf_addr = p->own_buffer;
		p->m.data_off = 0;
		m[i] = &p->m;
	}
	return n;
}
