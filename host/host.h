/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ringtap-host: a DPDK application that does nothing but receive from kernel interfaces, so that
 * the probe in it can show the packets. `ringtap host` finds out how, and starts it.
 */
#ifndef RINGTAP_HOST_HOST_H
#define RINGTAP_HOST_HOST_H

#include <stdbool.h>
#include <stdint.h>

#include <rte_mempool.h>

#define PORTS_MAX  32
#define QUEUES_MAX 64 /* of a port */
#define BURST      64

struct port {
	const char *iface;
	/* Names change, and others take them over. */
	unsigned ifindex;
	const char *vdev; /* name and arguments of the DPDK device */
	uint16_t id;
	uint16_t queues;
	/* The driver's AF_PACKET sockets: it does not read their counts of drops. */
	int sockets[QUEUES_MAX];
	unsigned socket_count;
	/* The sockets' packet buffers, mapped; frame_count 0: they have no time stamps. */
	const uint8_t *frames[QUEUES_MAX];
	uint32_t frame_size, frame_count;
	uint64_t dropped;
	int promiscuous; /* the mode lasts as long as this socket; -1: none */
	bool plugged, gone;
};

struct queue {
	uint16_t port, queue;
	const uint8_t *frames; /* as the port's; NULL: the driver's packets have no time stamps */
	uint32_t frame_size, frame_count;
	uint32_t next; /* frame that the driver reads next */
};

/* Queues of one thread. All of them have time stamps, or none. */
struct share {
	struct queue queues[PORTS_MAX * QUEUES_MAX];
	unsigned count;
	bool busy_poll;
};

struct host {
	struct port ports[PORTS_MAX];
	unsigned port_count;
	uint16_t queues;    /* of each port */
	uint32_t data_room; /* bytes of an mbuf */
	uint32_t mbufs;     /* per queue */
	bool promiscuous, busy_poll, verbose;
	struct rte_mempool *pool;
};

/* One line on standard error, as the ringtap command's. */
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- port.c. 0 or -errno, printed. */
int port_open(struct host *h, struct port *p);
void port_close(struct port *p);
/* Reads the kernel's count of drops, and whether the interface still exists. */
void port_watch(struct port *p);

/* ---- order.c: packets with the kernel's time stamps, in order. */

/* Maps the packet buffers of a port that is not started. 0, also if there are none, or -errno. */
int order_open(struct port *p);
/* When it has been started. */
int order_start(struct port *p);
void order_close(struct port *p);
/* Receives from all queues, in the order of time. Returns the number of packets. */
unsigned order_receive(struct share *s);

/* ---- poll.c: a thread on every worker lcore, sharing out the queues. */
int poll_start(const struct host *h);
void poll_stop(void);

#endif
