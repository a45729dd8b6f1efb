/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Planes: how bursts of packets come and go. The role code is the same over each.
 *
 * A packet is a struct rte_mbuf everywhere, but only the DPDK plane takes them from a mempool and
 * calls DPDK. The packet planes use it as a plain descriptor (address and length; headers of
 * DPDK only, no call into it, no EAL): each link has a few of its own, and only one thread uses a
 * link.
 */
#ifndef RINGTAP_FWD_PLANE_H
#define RINGTAP_FWD_PLANE_H

#include <stdbool.h>
#include <stdint.h>

#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "config.h"

/* A port as one role uses it in one or both directions. */
struct link {
	uint16_t port;  /* DPDK: its id; packet planes: the kernel's index, for events */
	uint16_t queue; /* DPDK: of both directions */
	char name[PORT_NAME_MAX];
	bool rx, tx; /* what it is used for */
	uint8_t mac[6];
	struct rte_mempool *pool;   /* DPDK: frames to send come from here */
	struct socket_link *socket; /* packet planes */
	/* Packet planes: packets among those that tx() was done with that the kernel refused for
	 * good, such as too long ones, since the field was last read; and the errno of the last
	 * one. */
	uint16_t errors;
	int error;
};

/* Of a packet plane. Each returns how many of n packets it was done for. */
struct plane_ops {
	/* Says what is wrong, -errno. */
	int (*open)(struct link *l, const struct fwd_config *c);
	void (*close)(struct link *l);
	uint16_t (*rx)(struct link *l, struct rte_mbuf **m, uint16_t n);
	/* Packets that it was done for are the link's again; those that can never be sent are
	 * counted in l->errors. */
	uint16_t (*tx)(struct link *l, struct rte_mbuf **m, uint16_t n);
	uint16_t (*alloc)(struct link *l, struct rte_mbuf **m, uint16_t n);
	void (*free)(struct rte_mbuf **m, uint16_t n);
	/* Packets that the kernel lost since the start, for want of room. */
	uint64_t (*missed)(struct link *l);
	/* packet-mmap: makes the kernel try packets again that it has not sent yet, as it stops
	 * when a queue is full. */
	void (*kick)(struct link *l);
	/* packet-mmap: at the end, does so for a second at most. Returns how many remain unsent. */
	uint64_t (*drain)(struct link *l);
};

extern const struct plane_ops packet_ops, mmap_ops;

static inline const struct plane_ops *plane_ops(enum plane_id plane)
{
	return plane == PLANE_PACKET ? &packet_ops : &mmap_ops;
}

/* With a constant plane, the compiler leaves just the call. */
static inline uint16_t link_rx(enum plane_id plane, struct link *l, struct rte_mbuf **m, uint16_t n)
{
	if (plane == PLANE_DPDK)
		return rte_eth_rx_burst(l->port, l->queue, m, n);
	return plane_ops(plane)->rx(l, m, n);
}

static inline uint16_t link_tx(enum plane_id plane, struct link *l, struct rte_mbuf **m, uint16_t n)
{
	if (plane == PLANE_DPDK)
		return rte_eth_tx_burst(l->port, l->queue, m, n);
	return plane_ops(plane)->tx(l, m, n);
}

/* When there is nothing to be sent. */
static inline void link_kick(enum plane_id plane, struct link *l)
{
	if (plane == PLANE_MMAP)
		mmap_ops.kick(l);
}

/* All n or none. */
static inline bool link_alloc(enum plane_id plane, struct link *l, struct rte_mbuf **m, uint16_t n)
{
	if (plane == PLANE_DPDK)
		return !rte_pktmbuf_alloc_bulk(l->pool, m, n);
	return plane_ops(plane)->alloc(l, m, n) == n;
}

static inline void link_free(enum plane_id plane, struct rte_mbuf **m, uint16_t n)
{
	if (plane == PLANE_DPDK)
		rte_pktmbuf_free_bulk(m, n);
	else
		plane_ops(plane)->free(m, n);
}

#endif
