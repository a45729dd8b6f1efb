/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rte_dev.h>
#include <rte_ethdev.h>

#include "host.h"
#include "ringtap/probe.h"

#define DESCRIPTORS 2048
#define FDS_MAX     1024

static bool is_packet_socket(int fd)
{
	int domain = 0;
	socklen_t len = sizeof(domain);

	return !getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) && domain == AF_PACKET;
}

static bool known(const struct host *h, int fd)
{
	for (unsigned i = 0; i < h->port_count; i++) {
		const struct port *p = &h->ports[i];

		if (p->promiscuous == fd)
			return true;
		for (unsigned s = 0; s < p->socket_count; s++)
			if (p->sockets[s] == fd)
				return true;
	}
	return false;
}

/* Sockets of this kind that no other port has are the driver's for this port. Their order
 * is not that of the queues if another thread, such as telemetry's, closed a descriptor in
 * between. */
static void find_sockets(const struct host *h, struct port *p)
{
	for (int fd = 0; fd < FDS_MAX && p->socket_count < QUEUES_MAX; fd++)
		if (is_packet_socket(fd) && !known(h, fd))
			p->sockets[p->socket_count++] = fd;
}

/* Unlike the driver's way, this ends with the process, however that ends. */
static int be_promiscuous(struct port *p)
{
	struct packet_mreq m = {.mr_ifindex = (int)p->ifindex, .mr_type = PACKET_MR_PROMISC};

	/* Protocol 0: it receives nothing itself. */
	p->promiscuous = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	if (p->promiscuous >= 0 &&
		!setsockopt(p->promiscuous, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &m, sizeof(m)))
		return 0;
	return -errno;
}

static int configure(struct host *h, struct port *p)
{
	struct rte_eth_conf conf = {0};
	struct rte_eth_dev_info info;
	uint16_t descriptors = DESCRIPTORS, unused = 64;
	int ret = rte_eth_dev_info_get(p->id, &info);

	if (ret)
		return ret;
	p->queues = RTE_MIN(h->queues, info.max_rx_queues);
	ret = rte_eth_dev_configure(p->id, p->queues, p->queues, &conf);
	if (!ret)
		ret = rte_eth_dev_adjust_nb_rx_tx_desc(p->id, &descriptors, &unused);
	/* Nothing is sent, but drivers require their send queues to be set up. */
	for (uint16_t q = 0; q < p->queues && !ret; q++) {
		ret = rte_eth_rx_queue_setup(p->id, q, descriptors, SOCKET_ID_ANY, NULL, h->pool);
		if (!ret)
			ret = rte_eth_tx_queue_setup(p->id, q, unused, SOCKET_ID_ANY, NULL);
	}
	return ret ? ret : rte_eth_dev_start(p->id);
}

static int plug(struct port *p)
{
	size_t len = strcspn(p->vdev, ",");
	char *name = strndup(p->vdev, len);
	const char *args = p->vdev[len] ? p->vdev + len + 1 : "";
	int ret = name ? rte_eal_hotplug_add("vdev", name, args) : -ENOMEM;

	if (!ret)
		ret = rte_eth_dev_get_port_by_name(name, &p->id);
	p->plugged = !ret;
	free(name);
	return ret;
}

int port_open(struct host *h, struct port *p)
{
	int ret;

	p->ifindex = if_nametoindex(p->iface);
	if (!p->ifindex) {
		complain("%s: %s", p->iface, strerror(errno));
		return -errno;
	}
	ret = h->promiscuous ? be_promiscuous(p) : 0;
	if (ret) {
		complain("%s: making it promiscuous: %s", p->iface, strerror(-ret));
		return ret;
	}
	ret = plug(p);
	if (ret) {
		complain("%s: making a DPDK port of it: %s; --verbose prints DPDK's messages",
			p->iface, strerror(-ret));
		return ret;
	}
	find_sockets(h, p);
	ringtap_probe_port_name(p->id, p->iface);
	ret = order_open(p);
	if (ret) {
		complain("%s: reading the kernel's time stamps: %s", p->iface, strerror(-ret));
		return ret;
	}
	ret = configure(h, p);
	if (!ret)
		ret = order_start(p);
	if (ret)
		complain("%s: starting the DPDK port: %s; --verbose prints DPDK's messages",
			p->iface, strerror(-ret));
	return ret;
}

void port_close(struct port *p)
{
	order_close(p);
	if (p->plugged) {
		rte_eth_dev_stop(p->id);
		rte_eth_dev_close(p->id);
	}
	if (p->promiscuous >= 0)
		close(p->promiscuous);
}

/* Each answer counts from the one before. */
static uint64_t drops(int fd)
{
	struct tpacket_stats stats;
	socklen_t len = sizeof(stats);

	return getsockopt(fd, SOL_PACKET, PACKET_STATISTICS, &stats, &len) ? 0 : stats.tp_drops;
}

void port_watch(struct port *p)
{
	char name[IF_NAMESIZE];

	for (unsigned i = 0; i < p->socket_count; i++)
		p->dropped += drops(p->sockets[i]);
	if (p->socket_count)
		ringtap_probe_port_missed(p->id, p->dropped);
	if (!p->gone && !if_indextoname(p->ifindex, name)) {
		p->gone = true;
		complain("%s: the interface has gone", p->iface);
	}
}
