/* SPDX-License-Identifier: BSD-3-Clause */
/* The statistics' ports, and the hooks on their queues. */
#include <stdlib.h>
#include <string.h>

#include <rte_ethdev.h>

#include "refresh.h"
#include "supply.h"
#include "probe/hook/hook.h"
#include "probe/dpdk/ports.h"

/* True: packets were passing without a hook there until now. */
static bool link_site(struct rt_stat_site *s)
{
	const struct rt_stat_port_state *state = &s->stats->port_state[s->where & UINT16_MAX];

	if (s->linked || !s->hook || rt_hook_use(s->hook))
		return false; /* ethdev refuses a hairpin queue: software never receives its
			       * packets */
	s->linked = true;
	return rt_hook_count(s->hook, s, s->column, state->generation);
}

static void unlink_site(struct rt_stat_site *s)
{
	if (!s->linked)
		return;
	s->linked = false;
	rt_hook_uncount(s->hook, s);
	rt_hook_unuse(s->hook);
}

void rt_stats_link(struct rt_stats *f, bool on)
{
	f->linked = on;
	for (struct rt_stat_site *s = f->sites; s; s = s->next) {
		if (on)
			(void)link_site(s);
		else
			unlink_site(s);
	}
}

static void give_column(struct rt_stats *f, struct rt_stat_site *s)
{
	if (s->column || s->number >= f->sites_ready)
		return;
	/* Pairs with the acquires in rt_stat_count() and rt_stat_settle(). */
	rt_store_release(&s->column, &f->rows[0].quick[s->number]);
	if (s->linked)
		rt_hook_give_column(s->hook, s, s->column);
}

void rt_stats_use_supply(struct rt_stats *f)
{
	for (struct rt_stat_site *s = f->sites; s; s = s->next)
		give_column(f, s);
	rt_store(&rt_stat_mode.threads, f->threads_ready);
}

/* The site of the queue: the one from before its port was removed and came back, which goes on
 * with its blocks, or a new one. NULL: no memory. */
static struct rt_stat_site *take_site(struct rt_stats *f, uint32_t where, enum rt_direction dir)
{
	struct rt_stat_site *s = f->port_state[where & UINT16_MAX].returned ? f->sites : NULL;

	for (; s; s = s->next) {
		if (s->where == where && s->direction == dir)
			return s;
	}
	s = aligned_alloc(RT_CACHE_LINE, sizeof(*s));
	if (!s)
		return NULL;
	memset(s, 0, sizeof(*s));
	s->rows = f->rows;
	s->number = f->site_count;
	rt_store(&f->site_count, s->number + 1);
	s->stats = f;
	s->where = where;
	s->direction = dir;
	s->next = f->sites;
	f->sites = s;
	return s;
}

static bool add_site(struct rt_stats *f, uint32_t index, uint16_t queue, enum rt_direction dir)
{
	struct rt_stat_site *s = take_site(f, index | (uint32_t)queue << 16, dir);

	if (!s)
		return false;
	s->hook = rt_hook_get(f->ports[index].port_id, queue, dir);
	give_column(f, s);
	return f->linked && link_site(s);
}

static void add_queues(struct rt_stats *f, uint32_t index)
{
	struct rt_stat_port_state *state = &f->port_state[index];
	uint32_t n[2];
	bool linked = false;

	if (rt_port_queues(f->ports[index].port_id, n))
		return;
	for (int dir = 0; dir < 2; dir++) {
		for (; state->queues[dir] < n[dir]; state->queues[dir]++)
			linked |= add_site(f, index, (uint16_t)state->queues[dir], dir);
	}
	/* A packet may have passed the new queues with its time stamp, and would be timed from its
	 * first port: see apply(). */
	if (linked)
		rt_store(&rt_stat_mode.latency_on_tsc, rt_tsc());
}

static uint32_t ports_known(const struct rt_stats *f)
{
	return RTE_MIN(f->header->port_count, (uint32_t)RT_STAT_PORTS);
}

static bool present(const struct rt_stat_port *p)
{
	return p->state == RT_IF_PRESENT;
}

/* Entry of a port id, RT_STAT_PORTS: none. */
static uint32_t find_port(const struct rt_stats *f, uint16_t id)
{
	uint32_t i = 0;

	while (i < ports_known(f) && !(present(&f->ports[i]) && f->ports[i].port_id == id))
		i++;
	return i < ports_known(f) ? i : RT_STAT_PORTS;
}

static void show_state(struct rt_stat_port *p, const struct rt_msg_port *desc)
{
	uint32_t descriptors[2];

	rt_port_descriptors(p->port_id, descriptors);
	rt_store(&p->link_up, desc->link_up);
	rt_store(&p->link_mbps, desc->link_mbps);
	rt_store(&p->nb_rx_queues, desc->nb_rx_queues);
	rt_store(&p->nb_tx_queues, desc->nb_tx_queues);
	rt_store(&p->mtu, desc->mtu);
	rt_store(&p->nb_rxd, descriptors[RT_DIR_RX]);
	rt_store(&p->nb_txd, descriptors[RT_DIR_TX]);
}

static void counters_of(struct rt_stat_port *p, uint64_t *to[RT_PORT_COUNTERS])
{
	uint64_t *all[RT_PORT_COUNTERS] = {&p->ipackets, &p->opackets, &p->ibytes, &p->obytes,
		&p->imissed, &p->ierrors, &p->rx_nombuf, &p->oerrors};

	memcpy(to, all, sizeof(all));
}

/* The entry of a port that comes back goes on from its last counts, in a new epoch. */
static void begin_counting(struct rt_stat_port *p, struct rt_stat_port_state *state)
{
	*state = (struct rt_stat_port_state){.returned = p->state == RT_IF_GONE};
	if (state->returned)
		state->before = (struct rt_port_stats){p->ipackets, p->opackets, p->ibytes,
			p->obytes, p->imissed, p->ierrors, p->rx_nombuf, p->oerrors, p->epoch + 1};
}

/* The entry for a port that was added: the one from before its removal, or a new one.
 * RT_STAT_PORTS: none left. */
static uint32_t take_entry(const struct rt_stats *f, const struct rt_msg_port *desc)
{
	uint32_t i, n = ports_known(f);

	for (i = 0; i < n; i++) {
		const struct rt_stat_port *p = &f->ports[i];

		if (!present(p) && rt_port_same(desc, p->name, p->driver, f->port_state[i].mac))
			break;
	}
	return i;
}

/* By the driver's counters, of a port that was stopped before anything counted its packets. */
static bool has_counted(uint16_t id)
{
	uint64_t c[RT_NIC_COUNTERS];

	return !rt_port_first_counters(id, c) && (c[0] || c[1]);
}

static uint32_t add_port(struct rt_stats *f, uint16_t id)
{
	/* Before the port's description, which may else be that of the next port with this id. */
	uint32_t generation = rt_port_generation(id), i;
	struct rt_stat_port *p;
	struct rt_msg_port desc;

	if (f->beyond[id] == generation + 1 || rt_port_describe(id, &desc))
		return RT_STAT_PORTS;
	i = take_entry(f, &desc);
	if (i == RT_STAT_PORTS) {
		f->beyond[id] = generation + 1; /* the driver is not called again */
		return RT_STAT_PORTS;
	}
	p = &f->ports[i];
	memcpy(p->name, desc.name, sizeof(p->name));
	memcpy(p->driver, desc.driver, sizeof(p->driver));
	rt_store(&p->port_id, id);
	rt_store(&p->stopped_ns, 0);
	rt_store(&p->used, rt_port_stopped(id) && has_counted(id));
	show_state(p, &desc);
	begin_counting(p, &f->port_state[i]);
	memcpy(f->port_state[i].mac, desc.mac, sizeof(desc.mac));
	f->port_state[i].generation = generation;
	rt_store(&p->state, RT_IF_PRESENT);
	/* Pairs with the acquire in take_count(). */
	if (i == ports_known(f))
		rt_store_release(&f->header->port_count, i + 1);
	return i;
}

static void drop_port(struct rt_stats *f, uint32_t index)
{
	rt_store(&f->ports[index].state, RT_IF_GONE);
	for (struct rt_stat_site *s = f->sites; s; s = s->next) {
		if ((s->where & UINT16_MAX) == index) {
			unlink_site(s);
			s->hook = NULL;
		}
	}
}

void rt_stats_scan_ports(struct rt_stats *f)
{
	uint32_t beyond = rt_ports_beyond();

	for (uint32_t i = 0; i < ports_known(f); i++) {
		uint16_t id = f->ports[i].port_id;

		if (present(&f->ports[i]) &&
			(!rt_port_alive(id) ||
				rt_port_generation(id) != f->port_state[i].generation))
			drop_port(f, i);
	}
	for (uint16_t p = rt_port_next(0); p < RT_MAX_PORTS; p = rt_port_next(p + 1)) {
		uint32_t i = find_port(f, p);

		if (i == RT_STAT_PORTS)
			i = add_port(f, p);
		if (i < RT_STAT_PORTS)
			add_queues(f, i);
		else
			beyond += ports_known(f) == RT_STAT_PORTS;
	}
	rt_store(&f->header->ports_beyond, beyond);
}

/* Packets that the application has passed to the port's TX queues; those that it passes a second
 * time, after a refusal, count twice. */
static uint64_t passed_to_tx(const struct rt_stats *f, uint32_t index)
{
	uint32_t n = rt_load(&f->header->hook_count);
	uint64_t packets = 0;

	for (uint32_t i = 0; i < n && i < RT_STAT_HOOKS; i++) {
		const struct rt_stat_hook *b = &f->hooks[i];

		/* Pairs with the release in rt_stat_claim_block(). */
		if (!rt_load_acquire(&b->generation) || b->port_index != index ||
			b->direction != RT_DIR_TX)
			continue;
		for (uint64_t k = 1; k <= RT_STAT_BURSTS; k++)
			packets += k * rt_load(&b->burst[k]);
		packets += rt_load(&b->big_packets);
	}
	return packets;
}

/* Packets that were passed to TX since the reading before, and are not in the driver's counters. */
static uint64_t unaccounted(
	const struct rt_stat_port *p, const struct rt_stat_reading *r, uint64_t opackets)
{
	uint64_t passed = r->tx_after - p->tx_before, sent = opackets - p->opackets;

	return passed > sent ? passed - sent : 0;
}

static void show_counters(struct rt_stat_port *p, const struct rt_stat_port_state *state,
	const struct rt_stat_reading *r, uint64_t now_ns)
{
	const struct rt_port_stats *s = &r->driver, *b = &state->before;
	const uint64_t now[RT_PORT_COUNTERS] = {b->ipackets + s->ipackets,
		b->opackets + s->opackets, b->ibytes + s->ibytes, b->obytes + s->obytes,
		b->imissed + s->imissed, b->ierrors + s->ierrors, b->rx_nombuf + s->rx_nombuf,
		b->oerrors + s->oerrors};
	uint64_t *to[RT_PORT_COUNTERS];
	uint32_t epoch = b->epoch + s->epoch;

	counters_of(p, to);
	/* Pairs with the fence in read_counters(). */
	rt_store(&p->read_ns, 0);
	rt_fence_release();
	if (epoch != p->epoch)
		rt_store(&p->tx_unknown, p->tx_unknown + unaccounted(p, r, now[1]));
	rt_store(&p->epoch, epoch);
	for (int k = 0; k < RT_PORT_COUNTERS; k++)
		rt_store(to[k], now[k]);
	rt_store(&p->tx_before, r->tx_before);
	rt_store(&p->tx_after, r->tx_after);
	rt_store_release(&p->read_ns, now_ns);
}

/* False: the port is stopped. It may be about to be closed, so its driver is not called. Or its id
 * has just passed to another port. */
static bool read_driver(const struct rt_stats *f, uint32_t index, struct rt_stat_reading *r)
{
	uint16_t id = f->ports[index].port_id;

	r->tx_before = passed_to_tx(f, index);
	if (rt_port_stats(id, 0, &r->driver) ||
		rt_port_generation(id) != f->port_state[index].generation)
		return false;
	/* Counts of before the reading would make the bound too low. */
	rt_fence_acquire();
	r->tx_after = passed_to_tx(f, index);
	return true;
}

/* ethdev calls no hook of a stopped port, which refuses all packets. */
static void show_stop(struct rt_stat_port *p, uint64_t now_ns)
{
	if (!rt_port_stopped(p->port_id))
		rt_store(&p->stopped_ns, 0);
	else if (!p->stopped_ns)
		rt_store(&p->stopped_ns, now_ns);
}

void rt_stats_refresh_ports(struct rt_stats *f, uint64_t now_ns)
{
	for (uint32_t i = 0; i < ports_known(f); i++) {
		struct rt_stat_port *p = &f->ports[i];
		struct rt_stat_reading r;
		struct rt_msg_port desc;

		if (!present(p))
			continue;
		show_stop(p, now_ns);
		if (!read_driver(f, i, &r))
			continue;
		rt_trace_ports(f, i, &r);
		show_counters(p, &f->port_state[i], &r, now_ns);
		if (r.driver.ipackets || r.driver.opackets || r.tx_after)
			rt_store(&p->used, 1);
		if (rt_port_describe(p->port_id, &desc) == 0)
			show_state(p, &desc);
	}
}
