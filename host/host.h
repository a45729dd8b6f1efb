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
	/* Names change, and others take them over. 0: of all interfaces */
	unsigned ifindex;
	const char *vdev; /* name and arguments of the DPDK device, or PACKET_DEVICE and its */
	uint16_t id;
	uint16_t queues;
	uint16_t linktype; /* LINKTYPE_… */
	/* Packet sockets, one for each queue, and their buffers, mapped. */
	int sockets[QUEUES_MAX];
	unsigned socket_count;
	uint8_t *frames[QUEUES_MAX];
	uint32_t frame_size, frame_count;
	uint64_t dropped;
	int promiscuous; /* the mode lasts as long as this socket; -1: none */
	bool plugged, gone;
};

struct queue {
	uint16_t port, queue;
	uint16_t linktype;
	uint8_t *frames; /* as the port's; NULL: a driver receives */
	uint32_t frame_size, frame_count;
	uint32_t next; /* frame to be read */
};

/* Queues of one thread: all of packet sockets, or none. */
struct share {
	struct queue queues[PORTS_MAX * QUEUES_MAX];
	unsigned count;
	bool busy_poll;
};

struct host {
	struct port ports[PORTS_MAX];
	unsigned port_count;
	uint16_t queues;    /* of each port */
	uint32_t data_room; /* bytes of an mbuf; longer packets take several */
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

/* ---- sockets.c: packet sockets. */

/* Instead of a driver's name, followed by ",link=LINKTYPE,queues=N,framesz=…,blocksz=…,framecnt=…".
 */
#define PACKET_DEVICE "packet"
bool sockets_wanted(const struct port *p);
/* Opens and maps one for each queue; packets come from then on. 0 or -errno. */
int sockets_open(struct port *p);
void sockets_close(struct port *p);
/* Packets that the kernel had no room for, since the last call. */
uint64_t sockets_dropped(const struct port *p);

/* ---- frame.c: packets in the buffers of packet sockets. */

/* Registers what mbufs need. 0 or -errno. */
int frame_init(struct rte_mempool *pool);
struct ringtap_probe_source;
/* What the probe has to know of a port. */
void frame_source(const struct port *p, struct ringtap_probe_source *out);
/* Time of the packet that is the k-th from now on in the buffer. 0: it has not come. */
uint64_t frame_time(const struct queue *q, uint32_t k);
/* The next packet, copied, with its time stamp; *sent: by this host. NULL: no memory; try again. */
struct rte_mbuf *frame_take(struct queue *q, bool *sent);
/* False: it is the next packet's other appearance, on the loopback. Releases it. */
bool frame_counts(struct queue *q);
void frame_set_time(struct rte_mbuf *m, uint64_t ns);

/* ---- order.c: packets with the kernel's time stamps, in order. */

/* When the port has been started. */
void order_start(const struct port *p);
/* Receives from all queues, in the order of time. Returns the number of packets. */
unsigned order_receive(struct share *s);

/* ---- poll.c: a thread on every worker lcore, sharing out the queues. */
int poll_start(const struct host *h);
void poll_stop(void);

#endif
