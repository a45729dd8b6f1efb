/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <rte_dev.h>
#include <rte_eal.h>
#include <rte_eth_ring.h>
#include <rte_ethdev.h>

#include "rt_ports.h"

#define DESCRIPTORS 512
#define RING_SLOTS  4096

struct port_rings port_rings[PORTS_MAX];

/* Drivers that generate packets allocate them here. */
static struct rte_mempool *rx_pool(void)
{
	static struct rte_mempool *pool;

	if (!pool)
		pool = rte_pktmbuf_pool_create(
			"rx", 2047, 256, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
	return pool;
}

int port_reconfigure(uint16_t port, uint16_t rxq, uint16_t txq)
{
	struct rte_eth_conf conf = {0};
	int rc = rte_eth_dev_stop(port);

	if (!rc)
		rc = rte_eth_dev_configure(port, rxq, txq, &conf);
	for (uint16_t q = 0; !rc && q < rxq; q++)
		rc = rte_eth_rx_queue_setup(port, q, DESCRIPTORS, SOCKET_ID_ANY, NULL, rx_pool());
	for (uint16_t q = 0; !rc && q < txq; q++)
		rc = rte_eth_tx_queue_setup(port, q, DESCRIPTORS, SOCKET_ID_ANY, NULL);
	return rc ? rc : rte_eth_dev_start(port);
}

static int make_rings(const char *name, const char *side, struct rte_ring **rings, uint16_t count)
{
	char text[RTE_RING_NAMESIZE];

	for (uint16_t q = 0; q < count; q++) {
		snprintf(text, sizeof(text), "%s-%s%u", name, side, q);
		rings[q] = rte_ring_create(text, RING_SLOTS, SOCKET_ID_ANY, 0);
		if (!rings[q])
			return -rte_errno;
	}
	return 0;
}

int port_make_ring(const char *name, uint16_t rxq, uint16_t txq)
{
	struct port_rings rings = {0};
	int port, rc;

	if (rxq > QUEUES_MAX || txq > QUEUES_MAX)
		return -EINVAL;
	rc = make_rings(name, "r", rings.rx, rxq);
	if (!rc)
		rc = make_rings(name, "t", rings.tx, txq);
	if (rc)
		return rc;
	port = rte_eth_from_rings(name, rings.rx, rxq, rings.tx, txq, 0);
	if (port < 0 || port >= PORTS_MAX)
		return -rte_errno;
	port_rings[port] = rings;
	rc = port_reconfigure(port, rxq, txq);
	return rc ? rc : port;
}

int port_plug(const char *name, const char *args, uint16_t rxq, uint16_t txq)
{
	uint16_t port;
	int rc = rte_eal_hotplug_add("vdev", name, args);

	if (!rc)
		rc = rte_eth_dev_get_port_by_name(name, &port);
	if (!rc)
		rc = port_reconfigure(port, rxq, txq);
	return rc ? rc : port;
}

int port_unplug(const char *name)
{
	uint16_t port;
	int rc = rte_eth_dev_get_port_by_name(name, &port);

	if (!rc)
		rc = rte_eth_dev_stop(port);
	return rc ? rc : rte_eal_hotplug_remove("vdev", name);
}

unsigned port_callbacks(uint16_t port)
{
	struct rte_eth_dev_info info;
	struct rte_eth_fp_ops *ops = &rte_eth_fp_ops[port];
	unsigned found = 0;

	if (rte_eth_dev_info_get(port, &info))
		return 0;
	for (uint16_t q = 0; q < info.nb_rx_queues; q++)
		found += ops->rxq.clbk[q] != NULL;
	for (uint16_t q = 0; q < info.nb_tx_queues; q++)
		found += ops->txq.clbk[q] != NULL;
	return found;
}
