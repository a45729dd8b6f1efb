/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which of ethdev's functions call the driver (the same from 22.11 to 26.07):
 * rte_eth_dev_info_get(), rte_eth_link_get_nowait() (unless the port has link interrupts),
 * rte_eth_stats_get(), rte_eth_rx_queue_info_get() and rte_eth_tx_queue_info_get(),
 * rte_eth_read_clock(). A driver may send a message through a VF's mailbox and wait for the answer,
 * or make ioctls (mlx5), so these are called for selected ports only, and seldom. The other
 * functions that are used here and in hook.c read or write memory of ethdev:
 * rte_eth_dev_is_valid_port(), rte_eth_dev_get_name_by_port(), rte_eth_macaddr_get(),
 * rte_eth_dev_get_mtu(), callbacks, rte_eth_fp_ops[].
 */
#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <rte_ethdev.h>
#include <rte_ether.h>

#include "common/atomics.h"
#include "common/clock.h"
#include "common/ipc.h"
#include "nic_time.h"
#include "build.h"
#include "given.h"
#include "port_call.h"
#include "ports.h"
#include "secondary.h"
#include "teardown.h"

static uint32_t generations[RT_MAX_PORTS];
static uint32_t dying[RTE_MAX_ETHPORTS];
static uint64_t new_ms[RTE_MAX_ETHPORTS]; /* CLOCK_MONOTONIC; 0: the port existed before the probe
					     watched */
static uint32_t top;
static void (*on_change)(uint16_t port);

/* Last result of a port's driver; control lock held. */
struct known {
	bool described, stale;
	uint32_t generation;
	uint64_t info_ms, state_ms, stats_ms; /* when it was called */
	uint32_t set_up[2];                   /* queues by direction that were set up then */
	uint32_t descriptors[2];
	struct rt_msg_port desc;
	uint64_t driver[RT_PORT_COUNTERS]; /* in the order of rt_port_stats */
	uint64_t before[RT_PORT_COUNTERS]; /* counted in earlier epochs */
	uint32_t epoch;
	char name[RT_NAME_LEN]; /* in a secondary process */
};

static struct known known[RT_MAX_PORTS];
static_assert(
	offsetof(struct rt_port_stats, epoch) == sizeof(known->driver), "counters come first");

#define YOUNG_MS 2000 /* a port that has just been created may get queues one by one */
#define STATE_MS 1000 /* age of a link state; interval between queries of a port without queues */

static uint64_t clock_ms(void)
{
	return rt_time_ns(CLOCK_MONOTONIC_COARSE) / 1000000;
}

uint32_t rt_port_generation(uint16_t port)
{
	return rt_load_acquire(&generations[port]);
}

/* Ports are created one at a time. */
static void raise_top(uint16_t port)
{
	if (port >= rt_load(&top))
		rt_store(&top, port + 1u);
}

uint32_t rt_ports_top(void)
{
	uint32_t vhost = rt_vhost_top();

	return vhost ? RTE_MAX_ETHPORTS + vhost : rt_load(&top);
}

void rt_port_vhost_changed(uint16_t port)
{
	rt_fetch_add(&generations[port], 1);
	on_change(port);
}

static int port_event(uint16_t port, enum rte_eth_event_type event, void *arg, void *ret)
{
	if (port >= RTE_MAX_ETHPORTS) /* the application's DPDK was built for more */
		return 0;
	if (event == RTE_ETH_EVENT_NEW) {
		rt_store(&new_ms[port], clock_ms());
		raise_top(port);
	}
	rt_store_release(&dying[port], event == RTE_ETH_EVENT_DESTROY);
	rt_fetch_add(&generations[port], 1);
	on_change(port);
	rt_port_call_bar(port, event == RTE_ETH_EVENT_DESTROY);
	return 0;
}

int rt_ports_watch(void (*changed)(uint16_t port))
{
	/* RTE_ETH_ALL */
	uint16_t all = rt_build_ports();
	int ret;

	on_change = changed;
	/* Events between two watches are unknown: trust ethdev. */
	memset(dying, 0, sizeof(dying));
	for (uint16_t i = 0; i < RT_MAX_PORTS; i++) {
		rt_fetch_add(&generations[i], 1);
		if (i < RTE_MAX_ETHPORTS && rte_eth_dev_is_valid_port(i))
			raise_top(i);
	}
	rt_port_call_unbar_all();
	memset(known, 0, sizeof(known));
	ret = rte_eth_dev_callback_register(all, RTE_ETH_EVENT_NEW, port_event, NULL);
	if (ret)
		return ret;
	ret = rte_eth_dev_callback_register(all, RTE_ETH_EVENT_DESTROY, port_event, NULL);
	if (ret)
		rte_eth_dev_callback_unregister(all, RTE_ETH_EVENT_NEW, port_event, NULL);
	else
		rt_vhost_begin();
	return ret;
}

void rt_ports_unwatch(void)
{
	uint16_t all = rt_build_ports();

	rt_vhost_end();
	/* -EAGAIN: an event is being delivered just now. */
	while (rte_eth_dev_callback_unregister(all, RTE_ETH_EVENT_NEW, port_event, NULL) ==
			-EAGAIN &&
		!rt_teardown_late())
		;
	while (rte_eth_dev_callback_unregister(all, RTE_ETH_EVENT_DESTROY, port_event, NULL) ==
			-EAGAIN &&
		!rt_teardown_late())
		;
}

/* ethdev points both callback lists of a stopped port to one dummy; those of a started port are
 * two arrays of that port. Compare the port's own entry only: what another id's entry points to
 * depends on whether that port exists and runs. While ethdev writes the entry, the port may be
 * taken for a started one, with queues that are not its own. */
static bool stopped(uint16_t port)
{
	const struct rte_eth_fp_ops *ops = &rte_eth_fp_ops[port];

	return rt_load(&ops->rxq.clbk) == rt_load(&ops->txq.clbk);
}

bool rt_port_stopped(uint16_t port)
{
	return rt_port_is_vhost(port) ? !rt_vhost_alive(port) : stopped(port);
}

bool rt_ports_restless(void)
{
	uint64_t now = clock_ms();

	for (uint16_t i = 0; i < rt_load(&top); i++) {
		uint64_t since = rt_load(&new_ms[i]);

		if (rte_eth_dev_is_valid_port(i) &&
			(stopped(i) || (since && now - since < YOUNG_MS)))
			return true;
	}
	return false;
}

bool rt_ports_moved(void)
{
	static uint64_t seen[RT_MAX_PORTS];
	bool moved = false;

	for (uint16_t i = 0; i < rt_ports_top(); i++) {
		uint64_t now = (uint64_t)rt_port_generation(i) << 1 | rt_port_stopped(i);

		moved |= now != seen[i];
		seen[i] = now;
	}
	return moved;
}

/* ethdev announces a port from within its driver's probe function. The bus sets the device's
 * driver only after that has returned, and rte_eth_dev_info_get() reads it without a check. A
 * started port had its device before, also when it is stopped again, except in a secondary process,
 * where all look started; for others only time helps. */
static bool probed(uint16_t port)
{
	static uint32_t started[RTE_MAX_ETHPORTS]; /* the last generation that was, plus 1 */
	uint32_t life = rt_port_generation(port) + 1;

	if (!stopped(port) && !rt_is_secondary())
		rt_store(&started[port], life);
	return rt_load(&started[port]) == life ||
	       clock_ms() - rt_load(&new_ms[port]) >= RT_PORTS_SETTLE_MS;
}

/* The primary may have closed a port that this process still has: that clears the shared data. Not
 * asked for by its name: that takes a lock in shared memory from DPDK 23.11 on. */
static bool closed_elsewhere(uint16_t port)
{
	uint16_t mtu;

	return rt_is_secondary() && (rte_eth_dev_get_mtu(port, &mtu) || !mtu);
}

bool rt_port_alive(uint16_t port)
{
	if (rt_port_is_vhost(port))
		return rt_vhost_alive(port);
	return rte_eth_dev_is_valid_port(port) && !rt_load_acquire(&dying[port]) && probed(port) &&
	       !closed_elsewhere(port);
}

bool rt_ports_changed(uint32_t *count)
{
	uint32_t before = *count;

	*count = 0;
	for (uint16_t i = 0; i < RTE_MAX_ETHPORTS; i++)
		*count += rte_eth_dev_is_valid_port(i) != 0;
	return *count != before;
}

uint32_t rt_ports_beyond(void)
{
	uint16_t end = rt_build_ports();
	uint32_t n = 0;

	for (uint16_t p = RTE_MAX_ETHPORTS; p < end; p++)
		n += rte_eth_dev_is_valid_port(p) != 0;
	return n;
}

uint16_t rt_port_next(uint16_t port)
{
	while (port < RT_MAX_PORTS && !rt_port_alive(port))
		port++;
	return port;
}

static struct known *known_of(uint16_t port)
{
	struct known *k = &known[port];
	uint32_t generation = rt_port_generation(port);

	if (k->generation != generation)
		*k = (struct known){.generation = generation};
	return k;
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
	/* The clock cannot be read, see secondary.h. */
	if (rt_is_secondary())
		return RT_STAMPS_NONE;
	return !rte_eth_dev_conf_get(port, &conf) &&
			       conf.rxmode.offloads & RTE_ETH_RX_OFFLOAD_TIMESTAMP
		       ? RT_STAMPS_NIC
		       : RT_STAMPS_NONE;
}

static bool is_due(uint64_t *last_ms, uint64_t every_ms)
{
	uint64_t now = clock_ms();

	if (*last_ms && now - *last_ms < every_ms)
		return false;
	*last_ms = now;
	return true;
}

static void ask_state(uint16_t port, struct known *k)
{
	struct rte_ether_addr mac = {0};
	struct rte_eth_link link = {0};
	struct rte_eth_rxq_info rx;
	struct rte_eth_txq_info tx;

	if (rt_is_secondary()) /* the port works as far as this process shows */
		link = (struct rte_eth_link){
			.link_status = RTE_ETH_LINK_UP, .link_speed = RTE_ETH_SPEED_NUM_UNKNOWN};
	else if (rte_eth_link_get_nowait(port, &link))
		link.link_status = RTE_ETH_LINK_DOWN;
	k->desc.link_up = link.link_status == RTE_ETH_LINK_UP;
	k->desc.link_mbps =
		link.link_speed == RTE_ETH_SPEED_NUM_UNKNOWN ? 0 : (uint32_t)link.link_speed;
	rte_eth_macaddr_get(port, &mac);
	memcpy(k->desc.mac, mac.addr_bytes, sizeof(k->desc.mac));
	rte_eth_dev_get_mtu(port, &k->desc.mtu);
	if (stopped(port) || rt_is_secondary())
		return;
	if (k->desc.nb_rx_queues && rte_eth_rx_queue_info_get(port, 0, &rx) == 0)
		k->descriptors[RT_DIR_RX] = rx.nb_desc;
	if (k->desc.nb_tx_queues && rte_eth_tx_queue_info_get(port, 0, &tx) == 0)
		k->descriptors[RT_DIR_TX] = tx.nb_desc;
}

static void read_state(uint16_t port, struct known *k)
{
	if (!rt_port_call_begin(port))
		return;
	ask_state(port, k);
	rt_port_call_end();
}

static const char *driver_of(uint16_t port, const struct rte_eth_dev_info *info)
{
	const struct rt_given *g = rt_given(port);

	return *g->driver ? g->driver : info->driver_name ? info->driver_name : "";
}

static int read_info(uint16_t port, struct known *k)
{
	struct rte_eth_dev_info info;
	int ret = -ENODEV;

	if (rt_port_call_begin(port)) {
		ret = rte_eth_dev_info_get(port, &info);
		rt_port_call_end();
	}
	if (ret)
		return -ENODEV;
	rt_str_set(k->desc.driver, sizeof(k->desc.driver), driver_of(port, &info));
	k->desc.stamps = stamps(port, k->desc.driver);
	k->desc.linktype = rt_given(port)->linktype;
	k->desc.nb_rx_queues = info.nb_rx_queues;
	k->desc.nb_tx_queues = info.nb_tx_queues;
	return 0;
}

static uint32_t count_set_up(void *const *queues)
{
	uint32_t n = 0;

	while (queues && n < RTE_MAX_QUEUES_PER_PORT && rt_load(&queues[n]))
		n++;
	return n;
}

/* Numbers of queues change while a port is stopped, which may be too short to be noticed. ethdev
 * keeps a pointer per queue, so a change of their number shows in memory. */
static bool queues_changed(uint16_t port, struct known *k)
{
	const struct rte_eth_fp_ops *ops = &rte_eth_fp_ops[port];
	uint32_t n[2] = {
		count_set_up(rt_load(&ops->rxq.data)), count_set_up(rt_load(&ops->txq.data))};
	bool changed = memcmp(n, k->set_up, sizeof(n)) != 0;

	memcpy(k->set_up, n, sizeof(n));
	return changed;
}

/* A port is stopped before it is closed, and closing frees memory that drivers read, before
 * ethdev announces it. So a stopped port's driver is called only until the port has queues;
 * later changes show once it has been started. */
static struct known *look(uint16_t port)
{
	struct known *k = known_of(port);
	bool has_queues = k->desc.nb_rx_queues + k->desc.nb_tx_queues;
	/* In a secondary the pointers are those of its start, and may be freed memory. */
	bool changed = !stopped(port) && !rt_is_secondary() && queues_changed(port, k);

	k->stale |= changed || !k->described;
	/* In a secondary it never looks stopped. */
	if (!k->stale && (has_queues || (!stopped(port) && !rt_is_secondary())))
		return k;
	if ((changed || is_due(&k->info_ms, STATE_MS)) && read_info(port, k) == 0) {
		k->stale = false;
		k->described = true;
	}
	return k->described ? k : NULL;
}

int rt_port_name(uint16_t port, char out[RT_NAME_LEN])
{
	struct known *k = rt_is_secondary() ? known_of(port) : NULL;
	char name[RTE_ETH_NAME_MAX_LEN];

	if (rt_port_is_vhost(port))
		return rt_vhost_name(port, out);
	if (k && k->name[0]) {
		rt_str_set(out, RT_NAME_LEN, k->name);
		return 0;
	}
	/* Takes a lock in shared memory from DPDK 23.11 on, so in a secondary once. */
	if (rte_eth_dev_get_name_by_port(port, name))
		return -ENODEV;
	rt_str_set(out, RT_NAME_LEN, *rt_given(port)->name ? rt_given(port)->name : name);
	if (k)
		rt_str_set(k->name, sizeof(k->name), out);
	return 0;
}

int rt_port_describe(uint16_t port, struct rt_msg_port *out)
{
	struct known *k = rt_port_is_vhost(port) ? NULL : look(port);

	if (rt_port_is_vhost(port))
		return rt_vhost_describe(port, out);
	if (!k || rt_port_name(port, k->desc.name))
		return -ENODEV;
	/* In a secondary once: the primary's driver clears the pointer to the address when it
	 * closes the port, before ethdev shows that. */
	if ((!k->state_ms || (!stopped(port) && !rt_is_secondary())) &&
		is_due(&k->state_ms, STATE_MS))
		read_state(port, k);
	k->desc.port_id = port;
	*out = k->desc;
	out->link_up &= !stopped(port);
	return 0;
}

int rt_port_queues(uint16_t port, uint32_t out[2])
{
	const struct known *k;

	if (rt_port_is_vhost(port))
		return rt_vhost_queues(port, out);
	k = look(port);
	if (!k)
		return -ENODEV;
	out[RT_DIR_RX] = k->desc.nb_rx_queues;
	out[RT_DIR_TX] = k->desc.nb_tx_queues;
	return 0;
}

void rt_port_descriptors(uint16_t port, uint32_t out[2])
{
	memcpy(out, known_of(port)->descriptors, sizeof(known->descriptors));
}

/* The application may reset its drivers' counters at any time, and drivers do when they start. */
static void follow_stats(struct known *k, const uint64_t now[RT_PORT_COUNTERS])
{
	bool fell = false;

	for (int i = 0; i < RT_PORT_COUNTERS; i++)
		fell |= now[i] < k->driver[i];
	k->epoch += fell;
	for (int i = 0; i < RT_PORT_COUNTERS; i++) {
		k->before[i] += fell ? k->driver[i] : 0;
		k->driver[i] = now[i];
	}
}

static void add_given(struct rte_eth_stats *s, const struct rt_given *g)
{
	s->imissed += rt_load(&g->missed);
	s->ipackets += rt_load(&g->ipackets);
	s->ibytes += rt_load(&g->ibytes);
	s->opackets += rt_load(&g->opackets);
	s->obytes += rt_load(&g->obytes);
}

static int ask_stats(uint16_t port, struct known *k)
{
	struct rte_eth_stats s;
	int ret = -ENODEV;

	if (rt_port_call_begin(port)) {
		ret = rte_eth_stats_get(port, &s);
		rt_port_call_end();
	}
	if (ret)
		return -ENODEV;
	add_given(&s, rt_given(port));
	follow_stats(k, (const uint64_t[RT_PORT_COUNTERS]){s.ipackets, s.opackets, s.ibytes,
				s.obytes, s.imissed, s.ierrors, s.rx_nombuf, s.oerrors});
	return 0;
}

static int read_stats(uint16_t port, uint32_t age_ms, struct rt_port_stats *out)
{
	struct known *k = known_of(port);
	uint64_t sum[RT_PORT_COUNTERS];

	if (rt_is_secondary() || rt_port_is_vhost(port))
		return -ENODEV;
	if (!k->stats_ms || clock_ms() - k->stats_ms >= age_ms) {
		k->stats_ms = 0;
		if (ask_stats(port, k))
			return -ENODEV;
		k->stats_ms = clock_ms();
	}
	for (int i = 0; i < RT_PORT_COUNTERS; i++)
		sum[i] = k->before[i] + k->driver[i];
	memcpy(out, sum, sizeof(sum));
	out->epoch = k->epoch;
	return 0;
}

int rt_port_stats(uint16_t port, uint32_t age_ms, struct rt_port_stats *out)
{
	/* See look(): closing also frees the drivers' counters. */
	return rt_port_stopped(port) ? -ENODEV : read_stats(port, age_ms, out);
}

static int pick(int ret, const struct rt_port_stats *s, uint64_t out[RT_NIC_COUNTERS])
{
	if (ret)
		return ret;
	out[0] = s->ipackets;
	out[1] = s->opackets;
	out[2] = s->imissed;
	out[3] = s->ierrors;
	out[4] = s->rx_nombuf;
	out[5] = s->oerrors;
	return 0;
}

int rt_port_counters(uint16_t port, uint32_t age_ms, uint64_t out[RT_NIC_COUNTERS])
{
	struct rt_port_stats s;

	return pick(rt_port_stats(port, age_ms, &s), &s, out);
}

int rt_port_first_counters(uint16_t port, uint64_t out[RT_NIC_COUNTERS])
{
	struct rt_port_stats s;

	return pick(read_stats(port, 0, &s), &s, out);
}

bool rt_port_matches(uint16_t port, const char *wanted)
{
	char id[8], name[RT_NAME_LEN];

	snprintf(id, sizeof(id), "%u", port);
	if (!wanted[0] || strcmp(wanted, id) == 0)
		return true;
	return rt_port_name(port, name) == 0 && strcmp(wanted, name) == 0;
}

bool rt_target_matches(uint16_t port, const struct rt_msg_target *target)
{
	return target->linktype == rt_given(port)->linktype && rt_port_matches(port, target->port);
}

bool rt_port_same(
	const struct rt_msg_port *port, const char *name, const char *driver, const uint8_t mac[6])
{
	const struct rte_ether_addr *now = (const void *)port->mac;

	/* Software drivers choose a new address whenever a port is created. */
	return strcmp(port->name, name) == 0 && strcmp(port->driver, driver) == 0 &&
	       (rte_is_local_admin_ether_addr(now) || memcmp(port->mac, mac, 6) == 0);
}
