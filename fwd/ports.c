/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
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

#define RING_SLOTS 1024 /* as net_ring's own */

static int say_none(const char *name)
{
	char text[RTE_ETH_NAME_MAX_LEN], list[256] = "is none: give --vdev, --ring or --pci";
	const char *why = eal_said(); /* a device that fails does not keep DPDK from starting */
	uint16_t id;
	size_t n = 0;

	RTE_ETH_FOREACH_DEV(id)
	{
		if (n < sizeof(list) - 80 && !rte_eth_dev_get_name_by_port(id, text))
			n += (size_t)snprintf(
				list + n, sizeof(list) - n, "%s%u %s", n ? ", " : "are ", id, text);
	}
	say("port %s: no such port; there %s%s%s%s", name, list, why ? " (DPDK said: " : "",
		why ? why : "",
		!why        ? ""
		: geteuid() ? "; it may take root's rights)"
			    : "; see --verbose)");
	return -ENODEV;
}

static void remember(struct ports *p, uint16_t id)
{
	for (unsigned i = 0; i < p->count; i++)
		if (p->ids[i] == id)
			return;
	p->ids[p->count++] = id;
}

/* A number, a device's name, or that of a --ring. */
static int find(const char *name, uint16_t *id)
{
	char ring[RTE_ETH_NAME_MAX_LEN];
	uint64_t number;

	if (!parse_number(name, RTE_MAX_ETHPORTS - 1, &number) &&
		rte_eth_dev_is_valid_port((uint16_t)number)) {
		*id = (uint16_t)number;
		return 0;
	}
	snprintf(ring, sizeof(ring), "net_ring_%s", name); /* so rte_eth_from_rings() calls it */
	return rte_eth_dev_get_port_by_name(name, id) && rte_eth_dev_get_port_by_name(ring, id);
}

int ports_find(struct ports *p, struct link *l, const char *name)
{
	struct rte_ether_addr mac;

	if (find(name, &l->port) || rte_eth_dev_get_name_by_port(l->port, l->name))
		return say_none(name);
	if (!rte_eth_macaddr_get(l->port, &mac))
		memcpy(l->mac, mac.addr_bytes, sizeof(l->mac));
	remember(p, l->port);
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
		(colon && (parse_number(colon + 1, 1 << 24, &slots) || slots < 2))) {
		say("--ring %s: not understood; give NAME or NAME:SLOTS with 2 to 16777216 slots",
			spec);
		return -EINVAL;
	}
	memcpy(name, spec, len);
	/* Each side has one thread: checked when the roles were set up. */
	ring = rte_ring_create(name, (unsigned)slots, SOCKET_ID_ANY,
		RING_F_SP_ENQ | RING_F_SC_DEQ | RING_F_EXACT_SZ);
	if (ring && rte_eth_from_rings(name, &ring, 1, &ring, 1, SOCKET_ID_ANY) >= 0)
		return 0;
	say("--ring %s: %s", spec, rte_strerror(rte_errno));
	return -rte_errno;
}

int ports_make_rings(const struct fwd_config *c)
{
	int ret = 0;

	for (unsigned i = 0; i < c->ring_count && !ret; i++)
		ret = make_ring(c->rings[i]);
	return ret;
}

/* External memory is beyond what these can pass on to the other side. */
static int check_driver(
	uint16_t port, const struct fwd_config *c, const struct rte_eth_dev_info *info)
{
	char name[RTE_ETH_NAME_MAX_LEN] = "";
	bool zero_copy = false;

	if (c->memory == MEMORY_DPDK)
		return 0;
	rte_eth_dev_get_name_by_port(port, name);
	for (unsigned i = 0; i < c->vdev_count; i++)
		zero_copy |= !strncmp(c->vdevs[i], name, strlen(name)) &&
			     strstr(c->vdevs[i], "zero-copy=yes");
	if (strcmp(info->driver_name, "net_virtio_user") &&
		strcmp(info->driver_name, "net_af_xdp") &&
		(strcmp(info->driver_name, "net_memif") || !zero_copy))
		return 0;
	say("--memory %s: %s shares DPDK's own memory with its other side; leave --memory out%s",
		memory_names[c->memory], name, zero_copy ? ", or zero-copy" : "");
	return -ENOTSUP;
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
	/* All packets are of one pool and have one owner. */
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
		say("port %u: cannot be started: %s; see --verbose", port, rte_strerror(-ret));
	else
		(void)rte_eth_promiscuous_enable(port); /* not all devices know it */
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
	say("port %s: the link is down; bring up its other side or give a longer --link-wait",
		l->name);
	return -ENETDOWN;
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
