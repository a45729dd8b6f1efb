/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <string.h>

#include <rte_ethdev.h>
#include <rte_mbuf_dyn.h>

#include "nic_time.h"
#include "port_call.h"

#define UPDATE_NS 20000000ull

static struct rt_nic_clock clocks[RTE_MAX_ETHPORTS];

int rt_nic_time_lookup(int *offset, uint64_t *flag)
{
	int field = rte_mbuf_dynfield_lookup(RTE_MBUF_DYNFIELD_TIMESTAMP_NAME, NULL);
	int bit = rte_mbuf_dynflag_lookup(RTE_MBUF_DYNFLAG_RX_TIMESTAMP_NAME, NULL);

	if (field < 0 || bit < 0)
		return -ENOTSUP;
	*offset = field;
	*flag = 1ull << bit;
	return 0;
}

static bool read_clock(uint16_t port, uint64_t *ticks)
{
	bool read = false;

	if (rt_port_call_begin(port)) {
		read = rte_eth_read_clock(port, ticks) == 0;
		rt_port_call_end();
	}
	return read;
}

struct rt_nic_clock *rt_nic_clock_get(uint16_t port, const char *driver, uint32_t generation)
{
	struct rt_nic_clock *c = &clocks[port];
	uint64_t ns_per_unit = strcmp(driver, "net_pcap") == 0 ? 1000 : 1;
	struct rt_clock_line line = {0};
	uint64_t ticks;

	if (c->generation == generation + 1)
		return c; /* another session uses it already */
	c->generation = generation + 1;
	c->ticking = ns_per_unit == 1 && read_clock(port, &ticks);
	c->started = false;
	c->first_ticks = c->updated_ns = 0;
	if (!c->ticking)
		line.mult = ns_per_unit << RT_CLOCK_SHIFT;
	rt_latch_publish(&c->latch, &line);
	return c;
}

void rt_nic_clock_update(struct rt_nic_clock *c, uint16_t port, uint64_t now_ns)
{
	uint64_t ticks;

	/* Once a tick, however many sessions use it. */
	if (!c->ticking || now_ns - c->updated_ns < UPDATE_NS || !read_clock(port, &ticks))
		return;
	c->updated_ns = now_ns;
	if (!c->first_ticks) {
		c->first_ticks = ticks;
		c->first_ns = now_ns;
		return;
	}
	if (!c->started) {
		uint64_t dt = ticks - c->first_ticks, dns = now_ns - c->first_ns;

		if (!dt || !dns)
			return;
		rt_clock_init(&c->state, c->first_ticks, c->first_ns, ticks, now_ns,
			(uint64_t)((double)dt * 1e9 / (double)dns));
		c->started = true;
	} else {
		rt_clock_update(&c->state, ticks, now_ns);
	}
	rt_latch_publish(&c->latch, &c->state.line);
}
