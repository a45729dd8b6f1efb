/* SPDX-License-Identifier: BSD-3-Clause */
/* The statistics' extended statistics of drivers. */
#include <string.h>

#include "common/ipc.h"
#include "probe/dpdk/ports.h"
#include "probe/dpdk/xstats.h"
#include "refresh.h"

#define NO_NUMBER UINT32_MAX

static uint32_t known(const struct rt_stats *f)
{
	return RTE_MIN(f->header->xstat_count, (uint32_t)RT_STAT_XSTATS);
}

/* A port's entries while its names are read. */
struct own {
	struct rt_stat_xstat *list[RT_STAT_PORT_XSTATS];
	uint32_t count, next; /* the next one is expected to have the next name */
	uint32_t numbered;
};

static void find_own(const struct rt_stats *f, uint32_t port, struct own *o)
{
	o->count = o->next = o->numbered = 0;
	for (uint32_t i = 0; i < known(f) && o->count < RT_STAT_PORT_XSTATS; i++) {
		if (f->xstats[i].port_index != port)
			continue;
		rt_store(&f->xstats[i].number, NO_NUMBER);
		o->list[o->count++] = &f->xstats[i];
	}
}

static struct rt_stat_xstat *find_name(struct own *o, const char *name)
{
	for (uint32_t i = 0; i < o->count; i++) {
		uint32_t k = (o->next + i) % o->count;

		if (strcmp(o->list[k]->name, name))
			continue;
		o->next = k + 1;
		return o->list[k];
	}
	return NULL;
}

static bool has_room(const struct rt_stats *f, const struct own *o)
{
	return known(f) < RT_STAT_XSTATS && o->count < RT_STAT_PORT_XSTATS;
}

/* NULL: there is no room for it. */
static struct rt_stat_xstat *add_name(
	struct rt_stats *f, uint32_t port, struct own *o, const char *name)
{
	uint32_t n = known(f);
	struct rt_stat_xstat *e = &f->xstats[n];

	if (!has_room(f, o))
		return NULL;
	memset(e, 0, sizeof(*e));
	rt_str_set(e->name, sizeof(e->name), name);
	e->port_index = (uint16_t)port;
	e->number = NO_NUMBER;
	/* Pairs with the acquire in take_count(). */
	rt_store_release(&f->header->xstat_count, n + 1);
	o->list[o->count++] = e;
	o->next = o->count;
	return e;
}

/* False: they are unknown for now. */
static bool read_names(struct rt_stats *f, uint32_t port, uint32_t count)
{
	static struct rte_eth_xstat_name names[RT_XSTATS_MAX]; /* control lock */
	static struct own own;
	struct rt_stat_port_state *state = &f->port_state[port];

	if (rt_port_xstat_names(f->ports[port].port_id, names, count))
		return false;
	find_own(f, port, &own);
	state->xstats_beyond = 0;
	for (uint32_t i = 0; i < count; i++) {
		struct rt_stat_xstat *e = NULL;

		names[i].name[sizeof(names[i].name) - 1] = '\0';
		if (own.numbered < own.count || has_room(f, &own))
			e = find_name(&own, names[i].name);
		if (!e)
			e = add_name(f, port, &own, names[i].name);
		/* The first of two with one name is shown. */
		if (e && e->number == NO_NUMBER) {
			rt_store(&e->number, i);
			own.numbered++;
		} else {
			state->xstats_beyond++;
		}
	}
	return true;
}

/* Names depend on the port and on its configuration, which may change while it is stopped. */
static bool names_are_current(struct rt_stats *f, uint32_t port, uint32_t count)
{
	struct rt_stat_port_state *state = &f->port_state[port];
	const struct rt_stat_port *p = &f->ports[port];

	if (state->xstat_count == count && state->xstat_queues[RT_DIR_RX] == p->nb_rx_queues &&
		state->xstat_queues[RT_DIR_TX] == p->nb_tx_queues)
		return true;
	state->xstat_count = 0;
	if (!read_names(f, port, count))
		return false;
	state->xstat_count = count;
	state->xstat_queues[RT_DIR_RX] = p->nb_rx_queues;
	state->xstat_queues[RT_DIR_TX] = p->nb_tx_queues;
	return true;
}

static void show(struct rt_stat_xstat *e, uint64_t value, uint64_t now_ns)
{
	rt_stat_show(&e->read_ns, &e->value, value, now_ns);
	rt_store(&e->state, RT_IF_PRESENT);
}

static void show_port(struct rt_stats *f, uint32_t port, const struct rte_eth_xstat *values,
	uint32_t count, uint64_t now_ns)
{
	static const struct rte_eth_xstat *by_number[RT_XSTATS_MAX]; /* control lock */

	memset(by_number, 0, count * sizeof(by_number[0]));
	for (uint32_t i = 0; i < count; i++)
		if (values[i].id < count)
			by_number[values[i].id] = &values[i];
	for (uint32_t i = 0; i < known(f); i++) {
		struct rt_stat_xstat *e = &f->xstats[i];

		if (e->port_index != port)
			continue;
		if (e->number < count && by_number[e->number])
			show(e, by_number[e->number]->value, now_ns);
		else
			rt_store(&e->state, RT_IF_GONE);
	}
}

/* None of them has an entry: there are beyond. */
static void show_none(struct rt_stats *f, uint32_t port, uint32_t beyond)
{
	f->port_state[port].xstat_count = 0;
	f->port_state[port].xstats_beyond = beyond;
	for (uint32_t i = 0; i < known(f); i++)
		if (f->xstats[i].port_index == port)
			rt_store(&f->xstats[i].state, RT_IF_GONE);
}

static void read_port(struct rt_stats *f, uint32_t port, uint64_t now_ns)
{
	static struct rte_eth_xstat values[RT_XSTATS_MAX]; /* control lock */
	struct rt_stat_port_state *state = &f->port_state[port];
	uint16_t id = f->ports[port].port_id;
	int n = rt_port_xstats(id, values);

	if (n < 0 || rt_port_generation(id) != state->generation)
		state->xstat_count = 0; /* other names, maybe, when it is started again */
	else if (n <= RT_XSTATS_MAX && names_are_current(f, port, (uint32_t)n))
		show_port(f, port, values, (uint32_t)n, now_ns);
	else
		show_none(f, port, (uint32_t)n);
}

void rt_stats_refresh_xstats(struct rt_stats *f, uint64_t now_ns)
{
	uint32_t ports = RTE_MIN(f->header->port_count, (uint32_t)RT_STAT_PORTS), beyond = 0;

	for (uint32_t i = 0; i < ports; i++) {
		if (f->ports[i].state == RT_IF_PRESENT)
			read_port(f, i, now_ns);
		else
			show_none(f, i, 0);
		beyond += f->port_state[i].xstats_beyond;
	}
	rt_store(&f->header->xstats_beyond, beyond);
}

void rt_stats_begin_xstats(struct rt_stats *f, uint64_t now_ns)
{
	for (uint32_t i = 0; i < RT_STAT_PORTS; i++)
		f->port_state[i].xstat_count = 0;
	rt_stats_refresh_xstats(f, now_ns);
}
