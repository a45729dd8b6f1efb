/* SPDX-License-Identifier: BSD-3-Clause */
/* Ports of rt_play: net_ring ports, whose other side the program owns, and hot-plugged devices. */
#ifndef RINGTAP_E2E_APPS_RT_PORTS_H
#define RINGTAP_E2E_APPS_RT_PORTS_H

#include <stdint.h>

#include <rte_ring.h>

#define PORTS_MAX  32
#define QUEUES_MAX 16

struct port_rings {
	struct rte_ring *rx[QUEUES_MAX]; /* packets that the port will receive */
	struct rte_ring *tx[QUEUES_MAX]; /* packets that the port has sent */
};

/* Rings of ports made by port_make_ring(); all NULL for others. */
extern struct port_rings port_rings[PORTS_MAX];

/* All return the port id or 0, or -errno. Ports come up configured and started. */
int port_make_ring(const char *name, uint16_t rxq, uint16_t txq);
int port_plug(const char *name, const char *args, uint16_t rxq, uint16_t txq);
int port_unplug(const char *name);
int port_reconfigure(uint16_t port, uint16_t rxq, uint16_t txq);

/* RX and TX callbacks that ethdev would call for the port's queues. */
unsigned port_callbacks(uint16_t port);

#endif
