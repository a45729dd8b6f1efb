/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <rte_errno.h>
#include <rte_eth_ring.h>
#include <rte_ethdev.h>
#include <rte_ring.h>

#include "eal.h"
#include "ports.h"
#include "signals.h"
#include "base/util.h"

#define RING_SLOTS 1024 /* as net_ring */

static int report_no_port(const char *name)
{
	char text[RTE_ETH_NAME_MAX_LEN], list[256] = "is none: give --vdev, --ring or --pci";
	const char *why = eal_error(); /* DPDK starts although a device fails */
	uint16_t id;
	size_t n = 0;

	RTE_ETH_FOREACH_DEV(id)
	{
		if (n < sizeof(list) - 80 && !rte_eth_dev_get_name_by_port(id, text))
			n += (size_t)snprintf(
				list + n, sizeof(list) - n, "%s%u %s", n ? ", " : "are ", id, text);
	}
	return message_fail(-ENODEV, "port %s: no such port; there %s%s%s%s", name, list,
		why ? " (DPDK reported: " : "", why ? why : "",
		!why        ? ""
		: geteuid() ? "; it may need root)"
			    : "; --verbose prints all messages)");
}

static void add_port(struct ports *p, uint16_t id)
{
	for (unsigned i = 0; i < p->count; i++)
		if (p->ids[i] == id)
			return;
	p->ids[p->count++] = id;
}

/* name: a port number, a device name, or the name of a --ring. Nonzero if there is none. */
static int find(const char *name, uint16_t *id)
{
	char ring[RTE_ETH_NAME_MAX_LEN];
	uint64_t number;

	if (!parse_number(name, RTE_MAX_ETHPORTS - 1, &number) &&
		rte_eth_dev_is_valid_port((uint16_t)number)) {
		*id = (uint16_t)number;
		return 0;
	}
	snprintf(ring, sizeof(ring), "net_ring_%s", name); /* named by rte_eth_from_rings() */
	return rte_eth_dev_get_port_by_name(name, id) && rte_eth_dev_get_port_by_name(ring, id);
}

int ports_find(struct ports *p, struct link *l, const char *name)
{
	struct rte_ether_addr mac;

	if (find(name, &l->port) || rte_eth_dev_get_name_by_port(l->port, l->name))
		return report_no_port(name);
	if (!rte_eth_macaddr_get(l->port, &mac))
		memcpy(l->mac, mac.addr_bytes, sizeof(l->mac));
	add_port(p, l->port);
	return 0;
}

static int make_ring(const char *spec)
{
	char name[RTE_RING_NAMESIZE] = "";
	const char *colon = strchr(spec, ':');
	size_t len = colon ? (size_t)(colon - spec) : strlen(spec);
	uint64_t slots = RING_SLOTS;
	struct rte_ring *ring;

	if (!len || len >= sizeof(name) - 4 ||
		(colon && (parse_number(colon + 1, 1 << 24, &slots) || slots < 2)))
		return message_fail(-EINVAL,
			"--ring %s: invalid value; give NAME or NAME:SLOTS with 2 to 16777216 slots",
			spec);
	memcpy(name, spec, len);
	/* Each side is used by one thread: check_sharing(). */
	ring = rte_ring_create(name, (unsigned)slots, SOCKET_ID_ANY,
		RING_F_SP_ENQ | RING_F_SC_DEQ | RING_F_EXACT_SZ);
	if (ring && rte_eth_from_rings(name, &ring, 1, &ring, 1, SOCKET_ID_ANY) >= 0)
		return 0;
	return message_fail(
		-rte_errno, "--ring %s: cannot create it: %s", spec, rte_strerror(rte_errno));
}

int ports_make_rings(const struct fwd_config *c)
{
	int ret = 0;

	for (unsigned i = 0; i < c->ring_count && !ret; i++)
		ret = make_ring(c->rings[i]);
	return ret;
}

/* Whether a virtual device's driver hands packets on without reading or writing them. Others copy
 * them, except those of real devices. */
static bool copies(const char *driver, const char *arguments)
{
	if (!strcmp(driver, "net_ring"))
		return false;
	return strcmp(driver, "net_null") || strstr(arguments, "copy=1");
}

static const char *vdev_of(const struct fwd_config *c, const char *name)
{
	for (unsigned i = 0; i < c->vdev_count; i++)
		if (!strncmp(c->vdevs[i], name, strlen(name)))
			return c->vdevs[i];
	return "";
}

/* Rejects drivers that cannot share external memory with their peer, or not access it. */
static int check_driver(
	uint16_t port, const struct fwd_config *c, const struct rte_eth_dev_info *info)
{
	char name[RTE_ETH_NAME_MAX_LEN] = "";
	const char *vdev;
	bool zero_copy;

	if (c->memory == MEMORY_DPDK)
		return 0;
	rte_eth_dev_get_name_by_port(port, name);
	vdev = vdev_of(c, name);
	zero_copy = strstr(vdev, "zero-copy=yes");
	if (c->memory == MEMORY_GPU && vdev[0] && copies(info->driver_name, vdev))
		return message_fail(-ENOTSUP,
			"--pool-memory gpu: the CPU cannot access the packets, which %s copies; "
			"give a network card, net_null or net_ring",
			name);
	if (strcmp(info->driver_name, "net_virtio_user") &&
		strcmp(info->driver_name, "net_af_xdp") &&
		(strcmp(info->driver_name, "net_memif") || !zero_copy))
		return 0;
	return message_fail(-ENOTSUP,
		"--pool-memory %s: %s can share only DPDK's own memory with its peer; remove --pool-memory%s",
		memory_names[c->memory], name, zero_copy ? " or zero-copy" : "");
}

static int start(uint16_t port, const struct fwd_config *c, struct rte_mempool *pool)
{
	struct rte_eth_conf conf = {0};
	struct rte_eth_dev_info info;
	uint16_t rxd = c->descriptors, txd = c->descriptors;
	int ret = rte_eth_dev_info_get(port, &info);

	if (!ret)
		ret = check_driver(port, c, &info);
	if (ret)
		return ret;
	/* The condition of FAST_FREE: all packets are from one pool and have a reference count
	 * of 1. */
	conf.txmode.offloads = info.tx_offload_capa & RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE;
	ret = rte_eth_dev_configure(port, 1, 1, &conf);
	if (!ret)
		ret = rte_eth_dev_adjust_nb_rx_tx_desc(port, &rxd, &txd);
	if (!ret)
		ret = rte_eth_rx_queue_setup(port, 0, rxd, SOCKET_ID_ANY, NULL, pool);
	if (!ret)
		ret = rte_eth_tx_queue_setup(port, 0, txd, SOCKET_ID_ANY, NULL);
	if (!ret)
		ret = rte_eth_dev_start(port);
	if (ret)
		message_print("cannot start port %u: %s; --verbose prints DPDK's messages", port,
			rte_strerror(-ret));
	else
		(void)rte_eth_promiscuous_enable(port); /* not all devices support it */
	return ret;
}

int ports_start(struct ports *p, const struct fwd_config *c)
{
	int ret = memory_make(&p->memory, c, p->ids, p->count);

	for (unsigned i = 0; i < p->count && !ret; i++)
		ret = start(p->ids[i], c, p->memory.pool);
	return ret;
}

int ports_wait(const struct link *l, uint64_t ns)
{
	uint64_t end = now_ns(CLOCK_MONOTONIC) + ns;
	struct rte_eth_link link;

	for (;;) {
		if (rte_eth_link_get_nowait(l->port, &link) || link.link_status)
			return 0;
		if (now_ns(CLOCK_MONOTONIC) >= end)
			break;
		if (signals_wait(10000000))
			return -EINTR;
	}
	return message_fail(-ENETDOWN,
		"port %s: the link is down; bring up its peer or give a longer --link-wait",
		l->name);
}

void ports_stop(struct ports *p)
{
	for (unsigned i = 0; i < p->count; i++)
		(void)rte_eth_dev_stop(p->ids[i]);
	memory_detach(&p->memory, p->ids, p->count);
	for (unsigned i = 0; i < p->count; i++)
		(void)rte_eth_dev_close(p->ids[i]);
	memory_free(&p->memory);
}
