/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets in memory that the CPU cannot read (a GPU's): hooks never touch them. Data in an mbuf's
 * own buffer, right behind the mbuf, can be read: DPDK writes there itself. Other buffers are
 * looked up in a table of the process's mappings, which the control thread makes. A hook does not
 * touch data at an address that is not in the table; it leaves the address to the control thread.
 */
#ifndef RINGTAP_PROBE_CAPTURE_READABLE_H
#define RINGTAP_PROBE_CAPTURE_READABLE_H

#include <stdbool.h>
#include <stdint.h>

#include <rte_mbuf.h>

#include "common/atomics.h"

/* Whether the data lies in the mbuf's own buffer, whose distance is that of the private area.
 * Decide by its address, which must be read anyway: some drivers and applications reset
 * RTE_MBUF_F_EXTERNAL with the other flags. (Another buffer within 64 KiB behind its mbuf would
 * need that flag.) */
#define RT_READABLE_OWN_MAX (sizeof(struct rte_mbuf) + UINT16_MAX)
static inline __attribute__((always_inline)) bool rt_readable_own(const struct rte_mbuf *m)
{
	return (uintptr_t)m->buf_addr - (uintptr_t)m <= RT_READABLE_OWN_MAX;
}

/* Whether the first bytes of a packet, in as many segments as they take, can be read. In hooks. */
bool rt_readable_chain(const struct rte_mbuf *m, uint32_t bytes);

static inline bool rt_readable(const struct rte_mbuf *m, uint32_t bytes)
{
	if (rt_likely(
		    rt_readable_own(m) && !(m->ol_flags & RTE_MBUF_F_EXTERNAL) && m->nb_segs == 1))
		return true;
	return rt_readable_chain(m, bytes);
}

/* Control thread, without the control lock: reads /proc. Makes the table, and updates it while
 * packets need it. */
void rt_readable_look(uint64_t now_ms);
/* For when no session is left. */
void rt_readable_forget(void);

#endif
