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

#include "port.h"

struct host {
	struct port ports[PORTS_MAX];
	unsigned port_count;
	uint16_t queues;    /* queues of each port */
	uint32_t data_room; /* bytes of an mbuf; longer packets take several */
	uint32_t mbufs;     /* per queue */
	bool promiscuous, busy_poll, verbose;
	struct rte_mempool *pool;
};

/* One line on standard error, as the ringtap command's. */
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
