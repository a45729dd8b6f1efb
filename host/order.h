/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets with the kernel's time stamps, in order. */
#ifndef RINGTAP_HOST_ORDER_H
#define RINGTAP_HOST_ORDER_H

#include "frame.h"

#define BURST 64

/* Queues of one thread: all of packet sockets, or none. */
struct share {
	struct queue queues[PORTS_MAX * QUEUES_MAX];
	unsigned count;
	bool busy_poll;
};

/* When the port has been started. */
void order_start(const struct port *p);
/* Receives from all queues, in the order of time. Returns the number of packets. */
unsigned order_receive(struct share *s);

#endif
