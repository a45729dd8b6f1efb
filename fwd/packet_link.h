/* SPDX-License-Identifier: BSD-3-Clause */
/* Common part of the packet planes: the socket and the packet descriptors. */
#ifndef RINGTAP_FWD_PACKET_LINK_H
#define RINGTAP_FWD_PACKET_LINK_H

#include "plane.h"

/* A role holds up to BURST_MAX packets and receives up to BURST_MAX more. */
#define PACKETS_MAX (2 * BURST_MAX)

/* A packet descriptor. The mbuf is the first member: packet_of(). */
struct packet {
	struct rte_mbuf m;
	struct socket_link *home;
	uint32_t block;      /* packet-mmap: the ring block that holds the packet */
	uint8_t *own_buffer; /* FRAME_MAX bytes */
};

struct socket_link {
	int fd;
	int ifindex;
	uint32_t frame_max; /* bytes: MTU and Ethernet header */
	struct packet *packets;
	uint8_t *buffers;
	struct packet *idle[PACKETS_MAX]; /* stack of free packets */
	unsigned idle_count;
	struct mmap_rings *rings; /* packet-mmap */
	bool sleep;               /* --sleep */
	uint64_t missed;
};

/* Opens a socket for the interface l->name, which does not receive yet, and allocates packets. 0,
 * or -errno after printing why. */
int socket_open(struct link *l, const struct fwd_config *c);
/* Binds the socket to the interface. With l->rx it receives from now on, except outgoing packets.
 * 0, or -errno after printing why. */
int socket_bind(struct link *l);
void socket_close(struct link *l);
uint64_t socket_missed(struct link *l);
/* Allocates n packets with their own buffers, or none. Returns the number. */
uint16_t socket_alloc(struct link *l, struct rte_mbuf **m, uint16_t n);

/* Waits up to 10 ms for packets. */
void socket_sleep(struct link *l);

static inline struct packet *packet_of(struct rte_mbuf *m)
{
	return (struct packet *)m;
}

/* Counts a packet that the kernel rejected permanently. */
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
