/* SPDX-License-Identifier: BSD-3-Clause */
/* The figures' ports, and the hooks on their queues. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_ethdev.h>

#include "figures.h"
#include "hook.h"
#include "port_call.h"
#include "ports.h"

static void link_site(struct rt_fig_site *s)
{
	const struct rt_fig_port_state *state = &s->figures->port_state[s->where & UINT16_MAX];

	if (s->linked || !s->hook || rt_hook_use(s->hook))
		return; /* ethdev refuses: a hairpin queue, of which software sees nothing */
	s->linked = true;
	rt_hook_count(s->hook, s, state->generation);
}

static void unlink_site(struct rt_fig_site *s)
{
	if (!s->linked)
		return;
	s->linked = false;
	rt_hook_uncount(s->hook, s);
	rt_hook_unuse(s->hook);
}

void rt_figures_link(struct rt_figures *f, bool on)
{
	f->linked = on;
	for (struct rt_fig_site *s = f->sites; s; s = s->next) {
		if (on)
			link_site(s);
		else
			unlink_site(s);
	}
}

static void add_site(struct rt_figures *f, uint32_t index, uint16_t queue, enum rt_direction dir)
{
	struct rt_fig_site *s = aligned_alloc(RT_CACHE_LINE, sizeof(*s));

	if (!s)
		return;
	memset(s, 0, sizeof(*s));
	s->own = f->own;
	s->figures = f;
	s->where = index | (uint32_t)queue << 16;
	s->direction = dir;
	s->hook = rt_hook_get(f->ports[index].port_id, queue, dir);
	s->next = f->sites;
	f->sites = s;
	if (f->linked)
		link_site(s);
}

static void add_queues(struct rt_figures *f, uint32_t index)
{
	struct rt_fig_port_state *state = &f->port_state[index];
	uint32_t n[2];

	if (rt_port_queues(f->ports[index].port_id, n))
		return;
	for (int dir = 0; dir < 2; dir++) {
		for (; state->queues[dir] < n[dir]; state->queues[dir]++)
			add_site(f, index, (uint16_t)state->queues[dir], dir);
	}
}

static uint32_t ports_known(const struct rt_figures *f)
{
	return RTE_MIN(f->header->port_count, (uint32_t)RT_FIG_PORTS);
}

static bool present(const struct rt_fig_port *p)
{
	return p->state == RT_IF_PRESENT;
}

/* Entry of a port id, RT_FIG_PORTS: none. */
static uint32_t find_port(const struct rt_figures *f, uint16_t id)
{
	uint32_t i = 0;

	while (i < ports_known(f) && !(present(&f->ports[i]) && f->ports[i].port_id == id))
		i++;
	return i < ports_known(f) ? i : RT_FIG_PORTS;
}

static void show_state(struct rt_fig_port *p, const struct rt_msg_port *desc)
{
	rt_store(&p->link_up, desc->link_up);
	rt_store(&p->link_mbps, desc->link_mbps);
	rt_store(&p->nb_rx_queues, desc->nb_rx_queues);
	rt_store(&p->nb_tx_queues, desc->nb_tx_queues);
	rt_store(&p->mtu, desc->mtu);
}

static uint32_t add_port(struct rt_figures *f, uint16_t id)
{
	uint32_t i = ports_known(f);
	struct rt_fig_port *p = &f->ports[i];
	uint32_t generation =
		rt_port_generation(id); /* before its description: else of the next holder */
	struct rt_msg_port desc;

	if (i == RT_FIG_PORTS || rt_port_describe(id, &desc))
		return RT_FIG_PORTS;
	memcpy(p->name, desc.name, sizeof(p->name));
	memcpy(p->driver, desc.driver, sizeof(p->driver));
	p->port_id = id;
	show_state(p, &desc);
	p->state = RT_IF_PRESENT;
	f->port_state[i].generation = generation;
	/* Pairs with the acquire in reader/monitor.c. */
	rt_store_release(&f->header->port_count, i + 1);
	return i;
}

static void drop_port(struct rt_figures *f, uint32_t index)
{
	rt_store(&f->ports[index].state, RT_IF_GONE);
	for (struct rt_fig_site *s = f->sites; s; s = s->next) {
		if ((s->where & UINT16_MAX) == index) {
			unlink_site(s);
			s->hook = NULL;
		}
	}
}

void rt_figures_scan_ports(struct rt_figures *f)
{
	uint32_t beyond = 0;

	for (uint32_t i = 0; i < ports_known(f); i++) {
		uint16_t id = f->ports[i].port_id;

		if (present(&f->ports[i]) &&
			(!rt_port_alive(id) ||
				rt_port_generation(id) != f->port_state[i].generation))
			drop_port(f, i);
	}
	for (uint16_t p = rt_port_next(0); p < RTE_MAX_ETHPORTS; p = rt_port_next(p + 1)) {
		uint32_t i = find_port(f, p);

		if (i == RT_FIG_PORTS)
			i = add_port(f, p);
		if (i < RT_FIG_PORTS)
			add_queues(f, i);
		else
			beyond += ports_known(f) == RT_FIG_PORTS;
	}
	rt_store(&f->header->ports_beyond, beyond);
}

static void refresh_state(struct rt_fig_port *p)
{
	struct rt_msg_port desc;
	struct rte_eth_rxq_info rx;
	struct rte_eth_txq_info tx;

	if (rt_port_describe(p->port_id, &desc))
		return;
	show_state(p, &desc);
	if (!rt_port_call_begin(p->port_id))
		return;
	if (desc.nb_rx_queues && rte_eth_rx_queue_info_get(p->port_id, 0, &rx) == 0)
		rt_store(&p->nb_rxd, rx.nb_desc);
	if (desc.nb_tx_queues && rte_eth_tx_queue_info_get(p->port_id, 0, &tx) == 0)
		rt_store(&p->nb_txd, tx.nb_desc);
	rt_port_call_end();
}

static void show_counters(struct rt_fig_port *p, const struct rte_eth_stats *s, uint64_t now_ns)
{
	rt_store(&p->ipackets, s->ipackets);
	rt_store(&p->opackets, s->opackets);
	rt_store(&p->ibytes, s->ibytes);
	rt_store(&p->obytes, s->obytes);
	rt_store(&p->imissed, s->imissed);
	rt_store(&p->ierrors, s->ierrors);
	rt_store(&p->rx_nombuf, s->rx_nombuf);
	rt_store(&p->oerrors, s->oerrors);
	rt_store_release(&p->read_ns, now_ns);
}

void rt_figures_refresh_ports(struct rt_figures *f, uint64_t now_ns)
{
	for (uint32_t i = 0; i < ports_known(f); i++) {
		struct rt_fig_port *p = &f->ports[i];
		uint64_t handed = rt_trace_ports_before(f, i);
		struct rte_eth_stats s;

		/* A stopped port may be about to be closed: nothing is asked of it. */
		if (!present(p) || rt_port_stats(p->port_id, &s))
			continue;
		rt_trace_ports_after(f, i, handed, &s);
		show_counters(p, &s, now_ns);
		refresh_state(p);
	}
}
