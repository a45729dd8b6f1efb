/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Events for tracers; docs/tracing.md has the table. All are emitted in trace*.c, whoever listens,
 * but for those of each call of a hook: trace_burst.h.
 */
#ifndef RINGTAP_PROBE_TRACE_H
#define RINGTAP_PROBE_TRACE_H

#include <stdbool.h>
#include <stdint.h>

/* Why packets are lost: below 16 an enum rt_loss, for a session; the others are the driver's
 * counters. ringtap-fwd has more of them (fwd/trace.h). Part of the interface. */
enum rt_drop { RT_DROP_IMISSED = 16, RT_DROP_IERRORS = 17, RT_DROP_RX_NOMBUF = 18 };

#define RT_TRACE_NO_QUEUE UINT16_MAX

/* Whether the application has burst events of its own, of the same names, and tells what its
 * drivers refuse: those of the hooks would be the same bursts once more. */
extern const bool rt_trace_own_loop;

/* In polling threads. */
void rt_trace_ring_full(uint32_t session, uint16_t port, uint16_t queue, uint32_t packets);
/* Times of the packets of a burst, cycles. Asked before they are added up. */
bool rt_trace_wants_latency(void);
void rt_trace_latency(
	uint16_t port, uint16_t queue, uint32_t packets, uint64_t sum, uint64_t greatest);

/* In polling threads and in the control thread. */
void rt_trace_drop(uint16_t port, uint16_t queue, uint64_t packets, uint32_t reason);

/* In the control thread. */
void rt_trace_tx_refused(uint16_t port, uint16_t queue, uint64_t packets);
void rt_trace_session_open(uint32_t session, uint32_t reader_pid);
void rt_trace_session_close(uint32_t session, uint32_t reader_pid);

#endif
