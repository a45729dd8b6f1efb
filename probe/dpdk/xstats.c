/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "port_call.h"
#include "ports.h"
#include "secondary.h"
#include "xstats.h"

static bool begin(uint16_t port)
{
	return !rt_port_is_vhost(port) && !rt_is_secondary() && !rt_port_stopped(port) &&
	       rt_port_call_begin(port);
}

int rt_port_xstats(uint16_t port, struct rte_eth_xstat values[RT_XSTATS_MAX])
{
	int n;

	if (!begin(port))
		return -ENODEV;
	/* A driver may leave out an entry, which must not be another port's. */
	memset(values, 0, RT_XSTATS_MAX * sizeof(values[0]));
	n = rte_eth_xstats_get(port, values, RT_XSTATS_MAX);
	rt_port_call_end();
	return n < 0 ? -ENODEV : n;
}

int rt_port_xstat_names(uint16_t port, struct rte_eth_xstat_name *names, uint32_t count)
{
	int n;

	if (!begin(port))
		return -ENODEV;
	memset(names, 0, count * sizeof(names[0]));
	n = rte_eth_xstats_get_names(port, names, count);
	rt_port_call_end();
	return n == (int)count ? 0 : -EAGAIN;
}
