/* SPDX-License-Identifier: BSD-3-Clause */
/* What both packet planes have in common: the socket, and packets of our own. */
#ifndef RINGTAP_FWD_PACKET_LINK_H
#define RINGTAP_FWD_PACKET_LINK_H

#include "plane.h"

/* Twice what a role holds at once. */
#define PACKETS_MAX (2 * BURST_MAX)

/* A packet and where it belongs; the descriptor comes first. */
struct packet {
	struct rte_mbuf m;
	struct socket_link *home;
	uint32_t block;      /* packet-mmap: the block of the ring that it lies in */
	uint8_t *own_buffer; /* NULL: it lies in a ring */
};

struct socket_link {
	int fd;
	int ifindex;
	uint32_t frame_max; /* bytes that the interface takes */
	struct packet *packets;
	uint8_t *buffers;
	struct packet *idle[PACKETS_MAX]; /* free ones, a stack */
	unsigned idle_count;
	struct mmap_rings *rings; /* packet-mmap */
	bool sleep;               /* --sleep */
	uint64_t missed;
};

/* Opens a socket on the interface of l->name, of which nothing is received yet, and makes
 * packets. 0, or -errno after saying why. */
int socket_open(struct link *l, const struct fwd_config *c);
/* Receives from now on, if the link does: all but what goes out. Likewise. */
int socket_bind(struct link *l);
void socket_close(struct link *l);
uint64_t socket_missed(struct link *l);
/* All n packets with buffers of their own, or none. */
uint16_t socket_alloc(struct link *l, struct rte_mbuf **m, uint16_t n);

/* Waits until there is something to receive, a hundredth of a second at most. */
void socket_sleep(struct link *l);

static inline struct packet *packet_of(struct rte_mbuf *m)
{
	return (struct packet *)m;
}

/* One more packet that can never be sent. */
static inline void socket_error(struct link *l, int error)
{
	l->errors++;
	l->error = error;
}

static inline void packet_idle(struct packet *p)
{
	p->home->idle[p->home->idle_count++] = p;
}

#endif
