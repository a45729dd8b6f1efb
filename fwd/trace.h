/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * USDT events of the roles' own loops, whatever the plane: docs/tracing.md. They take the place of
 * those that the probe's hooks would have for the same bursts. Arguments are in registers, or stay
 * in the link, where tracers fetch them: its address is loaded.
 */
#ifndef RINGTAP_FWD_TRACE_H
#define RINGTAP_FWD_TRACE_H

#include "common/sdt.h"
#include "plane.h"

/* Reasons of drop, beside those of probe/trace/trace.h. Part of the interface. */
enum fwd_drop {
	FWD_DROP_TX_FULL = 32,   /* the port did not take them, and the policy is not to wait */
	FWD_DROP_TX_ERROR = 33,  /* packet planes: the kernel refused them for good */
	FWD_DROP_TX_UNSENT = 34, /* still held when the run was stopped */
};

/* The barriers, behind a call anyway, keep each event's arguments with it: else they would be
 * loaded for both before it is known which. */
static inline void trace_rx(const struct link *l, uint16_t asked, uint16_t got)
{
	if (got) {
		rt_compiler_barrier();
		RT_USDT(rx_burst, l->port, l->queue, asked, got);
	} else {
		rt_compiler_barrier();
		RT_USDT(empty_poll, l->port, l->queue, asked);
	}
}

/* After the driver's answer. */
static inline void trace_tx(const struct link *l, uint16_t asked, uint16_t got)
{
	RT_USDT(tx_burst, l->port, l->queue, asked, got);
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
