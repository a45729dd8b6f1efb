/* SPDX-License-Identifier: BSD-3-Clause */
/* Packet sockets with one read() or write() per packet. */
#include <errno.h>
#include <unistd.h>

#include "packet_link.h"

static int packet_open(struct link *l, const struct fwd_config *c)
{
	int ret = socket_open(l, c);

	return ret ? ret : socket_bind(l);
}

static uint16_t read_packets(struct link *l, struct rte_mbuf **m, uint16_t n)
{
	struct socket_link *s = l->socket;
	uint16_t got = 0;

	while (got < n && s->idle_count) {
		struct packet *p = s->idle[s->idle_count - 1];
		ssize_t len = read(s->fd, p->own_buffer, FRAME_MAX);

		if (len <= 0)
			break;
		s->idle_count--;
		p->m.data_off = 0;
		p->m.data_len = (uint16_t)len;
		p->m.pkt_len = (uint32_t)len;
		m[got++] = &p->m;
	}
	return got;
}

static uint16_t packet_rx(struct link *l, struct rte_mbuf **m, uint16_t n)
{
	uint16_t got = read_packets(l, m, n);

	if (got || !l->socket->sleep)
		return got;
	socket_sleep(l);
	return read_packets(l, m, n);
}

static void packet_free(struct rte_mbuf **m, uint16_t n)
{
	for (uint16_t i = 0; i < n; i++)
		packet_idle(packet_of(m[i]));
}

static uint16_t packet_tx(struct link *l, struct rte_mbuf **m, uint16_t n)
{
	uint16_t sent = 0;

	for (; sent < n; sent++) {
		if (write(l->socket->fd, rte_pktmbuf_mtod(m[sent], void *), m[sent]->data_len) >= 0)
			continue;
		if (errno == EAGAIN || errno == ENOBUFS || errno == EINTR)
			break;
		socket_error(l, errno);
	}
	packet_free(m, sent);
	return sent;
}

const struct plane_ops packet_ops = {
	.open = packet_open,
	.close = socket_close,
	.rx = packet_rx,
	.tx = packet_tx,
	.alloc = socket_alloc,
	.free = packet_free,
	.missed = socket_missed,
};
