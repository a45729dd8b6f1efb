/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Planes: ways to receive and send bursts of packets. The role code is the same on all planes.
 *
 * A packet is a struct rte_mbuf. Only the DPDK plane allocates it from a mempool and calls DPDK.
 * The packet planes use it as a plain descriptor (address and length): they use DPDK's headers, but
 * do not call DPDK. Each link has its own descriptors, and only one thread uses a link.
 */
#ifndef RINGTAP_FWD_PLANE_H
#define RINGTAP_FWD_PLANE_H

#include <stdbool.h>
#include <stdint.h>

#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "config.h"

/* A port used by one role, in one or both directions. */
struct link {
	uint16_t port;  /* DPDK: port id; packet planes: interface index, for events */
	uint16_t queue; /* DPDK: queue of both directions */
	char name[PORT_NAME_MAX];
	bool rx, tx; /* directions in use */
	uint8_t mac[6];
	struct rte_mempool *pool;   /* DPDK: for frames to send */
	struct socket_link *socket; /* packet planes */
	/* Packet planes: packets that tx() freed because the kernel rejected them permanently, such
	 * as too long ones, since count_errors() last read the field; and the last errno. */
	uint16_t errors;
	int error;
};

/* Operations of a packet plane. rx, tx and alloc return the number of packets processed. */
struct plane_ops {
	/* 0, or -errno after printing why. */
	int (*open)(struct link *l, const struct fwd_config *c);
	void (*close)(struct link *l);
	uint16_t (*rx)(struct link *l, struct rte_mbuf **m, uint16_t n);
	/* Frees the packets that it processed. Those that can never be sent are among them, and are
	 * counted in l->errors. */
	uint16_t (*tx)(struct link *l, struct rte_mbuf **m, uint16_t n);
	uint16_t (*alloc)(struct link *l, struct rte_mbuf **m, uint16_t n);
	void (*free)(struct rte_mbuf **m, uint16_t n);
	/* Packets that the kernel dropped since the start because the socket was full. */
	uint64_t (*missed)(struct link *l);
	/* packet-mmap: resumes sending, which the kernel stops when a queue is full. */
	void (*kick)(struct link *l);
	/* packet-mmap: waits until all packets are sent, none has been for a second, or ten
	 * seconds are over. Returns the number of unsent packets. */
	uint64_t (*drain)(struct link *l);
};

extern const struct plane_ops packet_ops, mmap_ops;

static inline const struct plane_ops *plane_ops(enum plane_id plane)
{
	return plane == PLANE_PACKET ? &packet_ops : &mmap_ops;
}

/* Inlined with a constant plane, only the call remains. */
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

/* To be called when there is nothing to send. */
static inline void link_kick(enum plane_id plane, struct link *l)
{
	if (plane == PLANE_MMAP)
		mmap_ops.kick(l);
}

/* Allocates all n packets or none. */
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
