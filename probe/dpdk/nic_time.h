/* SPDX-License-Identifier: BSD-3-Clause */
/* Time stamps that the NIC delivers (rte_mbuf_dyn_rx_timestamp), turned into ns since the epoch. */
#ifndef RINGTAP_PROBE_DPDK_NIC_TIME_H
#define RINGTAP_PROBE_DPDK_NIC_TIME_H

#include <stdbool.h>

#include "clock_latch.h"

/* One port. Drivers declare nowhere what their time stamps count: net_pcap gives microseconds
 * since the epoch; where rte_eth_read_clock() works they are ticks of that clock, which is then
 * followed like the TSC; all others are taken for nanoseconds since the epoch. */
struct rt_nic_clock {
	struct rt_clock_latch latch; /* read in hooks; mult 0: not known yet */
	uint32_t generation;         /* the port's generation plus one */
	struct rt_clock state;
	bool ticking; /* follows rte_eth_read_clock() */
	bool started; /* state is valid */
	uint64_t first_ticks, first_ns, updated_ns;
};

/* Returns tsc_ns until the clock is known. */
static inline uint64_t rt_nic_time(const struct rt_nic_clock *c, uint64_t stamp, uint64_t tsc_ns)
{
	const struct rt_clock_line line = rt_latch_read(&c->latch);

	return line.mult ? rt_clock_ns(&line, stamp) : tsc_ns;
}

/* Offset of the mbuf field and mask of the flag. -ENOTSUP: no port has registered them. */
int rt_nic_time_lookup(int *offset, uint64_t *flag);

/* Control thread. The clock of a port; static, never freed. */
struct rt_nic_clock *rt_nic_clock_get(uint16_t port, const char *driver, uint32_t generation);
/* Takes a sample of the port's clock against now_ns. */
void rt_nic_clock_update(struct rt_nic_clock *c, uint16_t port, uint64_t now_ns);

#endif
