/* SPDX-License-Identifier: BSD-3-Clause */
/* A kernel interface as a port of DPDK. */
#ifndef RINGTAP_HOST_PORT_H
#define RINGTAP_HOST_PORT_H

#include <stdbool.h>
#include <stdint.h>

#define PORTS_MAX  32
#define QUEUES_MAX 64 /* queues of a port */

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

/* 0 or -errno, printed. */
struct host;
int port_open(struct host *h, struct port *p);
void port_close(struct port *p);
/* Reads the kernel's count of drops, and whether the interface still exists. */
void port_watch(struct port *p);

#endif
