/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <rte_ethdev.h>

#include "common/atomics.h"
#include "common/ipc.h"
#include "nic_time.h"
#include "ports.h"

static uint32_t generations[RTE_MAX_ETHPORTS];
static uint32_t dying[RTE_MAX_ETHPORTS];
static uint64_t new_ms[RTE_MAX_ETHPORTS]; /* CLOCK_MONOTONIC; 0: was there before us */
static void (*on_change)(void);
/* What the application says of its ports. */
static char given_names[RTE_MAX_ETHPORTS][sizeof(((struct rt_msg_port *)0)->name)];
static uint64_t given_missed[RTE_MAX_ETHPORTS];
static uint32_t given_stamped[RTE_MAX_ETHPORTS];

/* What ports said last; control lock held. */
static struct {
	bool told;
	uint32_t generation;
	struct rt_msg_port desc;
} known[RTE_MAX_ETHPORTS];

#define SETTLE_MS 500

static uint64_t clock_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

uint32_t rt_port_generation(uint16_t port)
{
	return rt_load_acquire(&generations[port]);
}

static int port_event(uint16_t port, enum rte_eth_event_type event, void *arg, void *ret)
{
	if (event == RTE_ETH_EVENT_NEW)
		rt_store(&new_ms[port], clock_ms());
	rt_store_release(&dying[port], event == RTE_ETH_EVENT_DESTROY);
	rt_fetch_add(&generations[port], 1);
	on_change();
	return 0;
}

int rt_ports_watch(void (*changed)(void))
{
	int ret;

	on_change = changed;
	/* What happened while nobody watched is not known: believe ethdev. */
	memset(dying, 0, sizeof(dying));
	memset(known, 0, sizeof(known));
	ret = rte_eth_dev_callback_register(RTE_ETH_ALL, RTE_ETH_EVENT_NEW, port_event, NULL);
	if (ret)
		return ret;
	ret = rte_eth_dev_callback_register(RTE_ETH_ALL, RTE_ETH_EVENT_DESTROY, port_event, NULL);
	if (ret)
		rte_eth_dev_callback_unregister(RTE_ETH_ALL, RTE_ETH_EVENT_NEW, port_event, NULL);
	return ret;
}

void rt_ports_unwatch(void)
{
	/* -EAGAIN: an event is being delivered just now. */
	while (rte_eth_dev_callback_unregister(RTE_ETH_ALL, RTE_ETH_EVENT_NEW, port_event, NULL) ==
		-EAGAIN)
		;
	while (rte_eth_dev_callback_unregister(
		       RTE_ETH_ALL, RTE_ETH_EVENT_DESTROY, port_event, NULL) == -EAGAIN)
		;
}

/* A stopped port has the same receive function as one that does not exist. */
static bool stopped(uint16_t port)
{
	return rte_eth_fp_ops[port].rx_pkt_burst ==
	       rte_eth_fp_ops[RTE_MAX_ETHPORTS - 1].rx_pkt_burst;
}

/* ethdev announces a port from within its driver's probe function. Only when that has returned does
 * the bus tell the device who its driver is, and rte_eth_dev_info_get() looks there without asking.
 * A started port had its device by then; else time must do. */
static bool probed(uint16_t port)
{
	return !stopped(port) || clock_ms() - rt_load(&new_ms[port]) >= SETTLE_MS;
}

bool rt_port_alive(uint16_t port)
{
	return rte_eth_dev_is_valid_port(port) && !rt_load_acquire(&dying[port]) && probed(port);
}

uint16_t rt_port_next(uint16_t port)
{
	while (port < RTE_MAX_ETHPORTS && !rt_port_alive(port))
		port++;
	return port;
}

/* A port is stopped before it is closed, and closing frees what drivers answer from before ethdev
 * tells anybody. So a stopped one is asked only until it has queues; what changes then shows when
 * it has been started. */
static bool may_ask(uint16_t port)
{
	return !stopped(port) || !known[port].told ||
	       known[port].generation != rt_port_generation(port) ||
	       !(known[port].desc.nb_rx_queues + known[port].desc.nb_tx_queues);
}

static enum rt_stamps stamps(uint16_t port, const char *driver)
{
	struct rte_eth_conf conf;
	uint64_t flag;
	int offset;

	if (rt_nic_time_lookup(&offset, &flag))
		return RT_STAMPS_NONE;
	if (rt_port_stamped(port))
		return RT_STAMPS_TIME;
	/* net_pcap has no such offload, and always sets them. */
	if (strcmp(driver, "net_pcap") == 0)
		return RT_STAMPS_NIC;
	return !rte_eth_dev_conf_get(port, &conf) &&
			       conf.rxmode.offloads & RTE_ETH_RX_OFFLOAD_TIMESTAMP
		       ? RT_STAMPS_NIC
		       : RT_STAMPS_NONE;
}

static int ask(uint16_t port, struct rt_msg_port *out)
{
	char name[RTE_ETH_NAME_MAX_LEN];
	struct rte_eth_dev_info info;
	struct rte_ether_addr mac = {0};
	struct rte_eth_link link = {0};

	memset(out, 0, sizeof(*out));
	if (rte_eth_dev_get_name_by_port(port, name) || rte_eth_dev_info_get(port, &info))
		return -ENODEV;
	rte_eth_macaddr_get(port, &mac);
	if (rte_eth_link_get_nowait(port, &link))
		link.link_status = RTE_ETH_LINK_DOWN;
	rte_eth_dev_get_mtu(port, &out->mtu);
	rt_str_set(out->name, sizeof(out->name), name);
	rt_str_set(out->driver, sizeof(out->driver), info.driver_name ? info.driver_name : "");
	memcpy(out->mac, mac.addr_bytes, sizeof(out->mac));
	out->port_id = port;
	out->link_up = link.link_status == RTE_ETH_LINK_UP;
	out->stamps = stamps(port, out->driver);
	if (link.link_speed != RTE_ETH_SPEED_NUM_UNKNOWN)
		out->link_mbps = link.link_speed;
	out->nb_rx_queues = info.nb_rx_queues;
	out->nb_tx_queues = info.nb_tx_queues;
	return 0;
}

int rt_port_describe(uint16_t port, struct rt_msg_port *out)
{
	uint32_t generation = rt_port_generation(port);

	if (may_ask(port)) {
		known[port].told = !ask(port, &known[port].desc);
		known[port].generation = generation;
	}
	if (!known[port].told)
		return -ENODEV;
	*out = known[port].desc;
	out->link_up &= !stopped(port);
	if (*given_names[port])
		rt_str_set(out->name, sizeof(out->name), given_names[port]);
	return 0;
}

int rt_port_queues(uint16_t port, uint32_t out[2])
{
	struct rt_msg_port *desc = &known[port].desc, whole;
	struct rte_eth_dev_info info;

	if (stopped(port)) {
		if (rt_port_describe(port, &whole))
			return -ENODEV;
	} else {
		if (rte_eth_dev_info_get(port, &info))
			return -ENODEV;
		desc->nb_rx_queues = info.nb_rx_queues;
		desc->nb_tx_queues = info.nb_tx_queues;
	}
	out[RT_DIR_RX] = desc->nb_rx_queues;
	out[RT_DIR_TX] = desc->nb_tx_queues;
	return 0;
}

int rt_port_stats(uint16_t port, struct rte_eth_stats *out)
{
	/* A port is stopped before it is closed, and closing frees what drivers count with before
	 * ethdev tells anybody. */
	if (stopped(port) || rte_eth_stats_get(port, out))
		return -ENODEV;
	out->imissed += rt_load(&given_missed[port]);
	return 0;
}

int rt_port_counters(uint16_t port, uint64_t out[RT_NIC_COUNTERS])
{
	struct rte_eth_stats s;

	if (rt_port_stats(port, &s))
		return -ENODEV;
	out[0] = s.ipackets;
	out[1] = s.opackets;
	out[2] = s.imissed;
	out[3] = s.ierrors;
	out[4] = s.rx_nombuf;
	out[5] = s.oerrors;
	return 0;
}

int rt_port_set_name(uint16_t port, const char *name)
{
	if (port >= RTE_MAX_ETHPORTS)
		return -EINVAL;
	rt_str_set(given_names[port], sizeof(given_names[port]), name);
	return 0;
}

int rt_port_set_missed(uint16_t port, uint64_t packets)
{
	if (port >= RTE_MAX_ETHPORTS)
		return -EINVAL;
	rt_store(&given_missed[port], packets);
	return 0;
}

int rt_port_set_stamped(uint16_t port)
{
	if (port >= RTE_MAX_ETHPORTS)
		return -EINVAL;
	rt_store(&given_stamped[port], 1);
	return 0;
}

bool rt_port_stamped(uint16_t port)
{
	return rt_load(&given_stamped[port]);
}

bool rt_port_matches(const struct rt_msg_port *port, const char *want)
{
	char id[8];

	snprintf(id, sizeof(id), "%u", port->port_id);
	return !want[0] || strcmp(want, port->name) == 0 || strcmp(want, id) == 0;
}
