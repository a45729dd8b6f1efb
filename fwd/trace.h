/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * USDT events of the role loops on all planes: docs/tracing.md. They replace the events of the
 * probe's hooks for the same bursts. Arguments are in registers, or in the link, from where tracers
 * read them.
 */
#ifndef RINGTAP_FWD_TRACE_H
#define RINGTAP_FWD_TRACE_H

#include "common/sdt.h"
#include "plane.h"

/* Reasons of drop events, in addition to those of probe/trace/trace.h. Part of the interface. */
enum fwd_drop {
	FWD_DROP_TX_FULL = 32,   /* the port did not accept them, and --tx-full drops them */
	FWD_DROP_TX_ERROR = 33,  /* packet planes: permanently rejected by the kernel */
	FWD_DROP_TX_UNSENT = 34, /* held when the run ended */
};

/* The barriers keep the compiler from loading the arguments of both events before the branch. They
 * cost nothing behind a call. */
static inline void trace_rx(const struct link *l, uint16_t nb_pkts, uint16_t nb_rx)
{
	if (nb_rx) {
		rt_compiler_barrier();
		RT_USDT(rx_burst, l->port, l->queue, nb_pkts, nb_rx);
	} else {
		rt_compiler_barrier();
		RT_USDT(empty_poll, l->port, l->queue, nb_pkts);
	}
}

/* After the driver's call. */
static inline void trace_tx(const struct link *l, uint16_t nb_pkts, uint16_t nb_tx)
{
	RT_USDT(tx_burst, l->port, l->queue, nb_pkts, nb_tx);
}

static inline void trace_refused(const struct link *l, uint64_t packets)
{
	RT_USDT(tx_refused, l->port, l->queue, packets);
}

static inline void trace_drop(const struct link *l, uint64_t packets, enum fwd_drop reason)
{
	RT_USDT(drop, l->port, l->queue, packets, (uint32_t)reason);
}

#endif
