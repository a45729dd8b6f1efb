/* SPDX-License-Identifier: BSD-3-Clause */
/* Events of each call of a hook: USDT, at one place each. */
#ifndef RINGTAP_PROBE_BURST_TRACE_BURST_H
#define RINGTAP_PROBE_BURST_TRACE_BURST_H

#include "common/atomics.h"
#include "common/sdt.h"
#include "probe/trace/trace.h"

/* First thing in a hook, where all arguments are still in the registers that they came in, on
 * every path. A poll costs a test and a branch on top, as it is one event or the other: the
 * driver has just branched on the same number, so the branch is predicted as well. An empty poll
 * falls through; a burst, whose packets share the cost of two jumps, branches. */
static inline void rt_trace_rx(uint16_t port, uint16_t queue, uint16_t nb_pkts, uint16_t nb_rx)
{
#ifndef RT_TRACE_OWN_LOOP
	if (rt_unlikely(nb_rx))
		RT_USDT(rx_burst, port, queue, nb_pkts, nb_rx);
	else
		RT_USDT(empty_poll, port, queue, nb_pkts);
#endif
}

/* The number that the driver will take is unknown before the call. */
static inline void rt_trace_tx(uint16_t port, uint16_t queue, uint16_t n)
{
#ifndef RT_TRACE_OWN_LOOP
	RT_USDT(tx_burst, port, queue, n, n);
#endif
}

#endif
