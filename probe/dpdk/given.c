/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>

#include <rte_config.h>

#include "common/atomics.h"
#include "common/ipc.h"
#include "given.h"
#include "ports.h"
#include "ringtap/probe.h"

static struct rt_given given[RT_MAX_PORTS];

const struct rt_given *rt_given(uint16_t port)
{
	return &given[port];
}

int rt_port_set_name(uint16_t port, const char *name)
{
	if (port >= RTE_MAX_ETHPORTS)
		return -EINVAL;
	rt_str_set(given[port].name, sizeof(given[port].name), name);
	return 0;
}

int rt_port_set_missed(uint16_t port, uint64_t packets)
{
	if (port >= RTE_MAX_ETHPORTS)
		return -EINVAL;
	rt_store(&given[port].missed, packets);
	return 0;
}

int rt_port_set_stamped(uint16_t port)
{
	if (port >= RTE_MAX_ETHPORTS)
		return -EINVAL;
	rt_store(&given[port].stamped, 1);
	return 0;
}

int rt_port_set_source(uint16_t port, const struct ringtap_probe_source *source)
{
	struct rt_given *g = &given[port];

	if (port >= RTE_MAX_ETHPORTS)
		return -EINVAL;
	rt_str_set(g->driver, sizeof(g->driver), source->driver);
	g->linktype = source->linktype == RT_LINKTYPE_ETHERNET ? 0 : source->linktype;
	g->wire_offset = source->wire_offset;
	g->wire_flag = source->wire_flag;
	g->is_source = true;
	return rt_port_set_stamped(port);
}

int rt_port_count(uint16_t port, const struct ringtap_probe_counts *more)
{
	struct rt_given *g = &given[port];

	if (port >= RTE_MAX_ETHPORTS)
		return -EINVAL;
	rt_fetch_add(&g->ipackets, more->rx_packets);
	rt_fetch_add(&g->ibytes, more->rx_bytes);
	rt_fetch_add(&g->opackets, more->tx_packets);
	rt_fetch_add(&g->obytes, more->tx_bytes);
	return 0;
}
