/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>

#include <rte_ethdev.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>
#include <rte_version.h>

#include "build.h"
#include "bus.h"

static char why[RT_BUILD_TEXT];

#define REFUSE(...) (snprintf(why, sizeof(why), __VA_ARGS__), -ENOTSUP)

/* Wherever DPDK reads the segment's successor, it finds one; at the place where this object reads
 * it, another one. */
static bool has_next(void)
{
	static const char here[1], elsewhere[1];
	struct rte_mbuf last[] = {{.buf_addr = (void *)(uintptr_t)here, .data_len = 1},
		{.buf_addr = (void *)(uintptr_t)elsewhere, .data_len = 1}};
	union {
		struct rte_mbuf m;
		const void *words[sizeof(struct rte_mbuf) / sizeof(void *)];
	} first;
	char copy[1];

	for (size_t i = 0; i < RTE_DIM(first.words); i++)
		first.words[i] = &last[1];
	first.m.next = &last[0];
	first.m.data_off = 0;
	first.m.data_len = 1;
	first.m.pkt_len = first.m.nb_segs = 2;
	return __rte_pktmbuf_read(&first.m, 1, 1, copy) == here;
}

int rt_build_check(void)
{
	/* The control thread would use DPDK's memory after its end. */
	if (!rt_bus_known())
		return REFUSE("struct rte_bus of %.32s is unknown, so that DPDK's end would not be "
			      "noticed; install a newer ringtap",
			rte_version());
	if (!rt_bus_announces_end())
		return REFUSE(
			"a static %.32s would not announce its end; use its shared libraries, or "
			"DPDK 22.11 or later",
			rte_version());
	if (!has_next())
		return REFUSE(
			"its DPDK was built with another enable_iova_as_pa (rte_mbuf.next has "
			"another offset); build ringtap with that DPDK");
	return 0;
}

const char *rt_build_why(void)
{
	return why;
}

uint16_t rt_build_ports(void)
{
	return rte_eth_find_next(UINT16_MAX);
}

unsigned rt_build_lcores(void)
{
	unsigned i = UINT_MAX; /* as RTE_LCORE_FOREACH */

	do
		i = rte_get_next_lcore(i, 0, 0);
	while (rte_lcore_is_enabled(i));
	return i;
}
