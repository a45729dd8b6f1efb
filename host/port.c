/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rte_dev.h>
#include <rte_ethdev.h>

#include "frame.h"
#include "host.h"
#include "order.h"
#include "sockets.h"
#include "link.h"
#include "ringtap/probe.h"

#define DESCRIPTORS 2048

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
	if (!p->socket_count)
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
	char name[RTE_ETH_NAME_MAX_LEN];
	const char *args = strchr(p->vdev, ',');
	int ret;

	if (sockets_wanted(p)) {
		snprintf(name, sizeof(name), "net_null_%s", p->iface);
		args = NULL;
	} else {
		snprintf(name, sizeof(name), "%.*s", (int)strcspn(p->vdev, ","), p->vdev);
	}
	ret = rte_eal_hotplug_add("vdev", name, args ? args + 1 : "");
	if (!ret)
		ret = rte_eth_dev_get_port_by_name(name, &p->id);
	p->plugged = !ret;
	return ret;
}

/* Address and MTU, which net_null does not know. They are for show. */
static void show_interface(const struct port *p)
{
	struct ifreq r = {0};

	snprintf(r.ifr_name, sizeof(r.ifr_name), "%s", p->iface);
	if (p->linktype == LINK_ETHERNET && !ioctl(p->sockets[0], SIOCGIFHWADDR, &r))
		rte_eth_dev_default_mac_addr_set(
			p->id, (struct rte_ether_addr *)r.ifr_hwaddr.sa_data);
	if (!ioctl(p->sockets[0], SIOCGIFMTU, &r))
		rte_eth_dev_set_mtu(p->id, (uint16_t)RTE_MIN(r.ifr_mtu, UINT16_MAX));
}

/* Packets of a port that net_null made. */
static int open_sockets(struct port *p)
{
	struct ringtap_probe_source source;
	int ret = sockets_open(p);

	if (ret)
		return ret;
	frame_source(p, &source);
	return ringtap_probe_port_source(p->id, &source);
}

static int start(struct host *h, struct port *p)
{
	int ret = configure(h, p);

	if (!ret && p->socket_count) {
		show_interface(p);
		order_start(p);
	}
	return ret;
}

int port_open(struct host *h, struct port *p)
{
	int ret;

	p->ifindex = if_nametoindex(p->iface);
	if (!p->ifindex && strcmp(p->iface, "any")) {
		complain("%s: %s", p->iface, strerror(errno));
		return -errno;
	}
	ret = h->promiscuous && p->ifindex ? be_promiscuous(p) : 0;
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
	ringtap_probe_port_name(p->id, p->iface);
	ret = sockets_wanted(p) ? open_sockets(p) : 0;
	if (ret) {
		complain("%s: opening a packet socket: %s%s", p->iface, strerror(-ret),
			ret == -ENOMEM ? "; give a smaller --buffer" : "");
		return ret;
	}
	ret = start(h, p);
	if (ret)
		complain("%s: starting the DPDK port: %s; --verbose prints DPDK's messages",
			p->iface, strerror(-ret));
	return ret;
}

void port_close(struct port *p)
{
	if (p->plugged) {
		rte_eth_dev_stop(p->id);
		rte_eth_dev_close(p->id);
	}
	sockets_close(p);
	if (p->promiscuous >= 0)
		close(p->promiscuous);
}

void port_watch(struct port *p)
{
	char name[IF_NAMESIZE];

	p->dropped += sockets_dropped(p);
	if (p->socket_count)
		ringtap_probe_port_missed(p->id, p->dropped);
	if (p->ifindex && !p->gone && !if_indextoname(p->ifindex, name)) {
		p->gone = true;
		complain("%s: the interface has gone", p->iface);
	}
}
