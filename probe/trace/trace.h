/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Events for tracers; docs/tracing.md has the table. All are emitted in trace*.c, whoever listens,
 * but for the USDT events of each call of a hook: trace_burst.h.
 */
#ifndef RINGTAP_PROBE_TRACE_TRACE_H
#define RINGTAP_PROBE_TRACE_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/segment.h"
#include "tracer.h"

/* Why packets are lost: below 16 an enum rt_loss, for a session; the others are the driver's
 * counters. ringtap-fwd has more of them (fwd/trace.h). Part of the interface. */
enum rt_drop { RT_DROP_IMISSED = 16, RT_DROP_IERRORS = 17, RT_DROP_RX_NOMBUF = 18 };

#define RT_TRACE_NO_QUEUE UINT16_MAX

/* Whether the application has USDT events of its own for bursts, of the same names, and for what
 * its drivers refuse: those of the hooks would be the same bursts once more. */
extern const bool rt_trace_own_loop;

/* In hooks, when somebody listens to more than USDT (RT_INSTR_TRACE). */
void rt_trace_burst(
	enum rt_direction dir, uint16_t port, uint16_t queue, uint16_t asked, uint16_t got);

/* In hooks, for all tracers. */
void rt_trace_ring_full(uint32_t session, uint16_t port, uint16_t queue, uint32_t packets);
/* Times of the packets of a burst, cycles. Asked before they are added up. */
bool rt_trace_wants_latency(void);
void rt_trace_latency(
	uint16_t port, uint16_t queue, uint32_t packets, uint64_t sum, uint64_t greatest);
void rt_trace_latency_usdt(
	uint16_t port, uint16_t queue, uint32_t packets, uint64_t sum, uint64_t greatest);

/* In hooks and in the control thread. */
void rt_trace_drop(uint16_t port, uint16_t queue, uint64_t packets, uint32_t reason);

/* In the control thread. */
void rt_trace_tx_refused(uint16_t port, uint16_t queue, uint64_t packets);
void rt_trace_session_open(uint32_t session, uint32_t reader);
void rt_trace_session_close(uint32_t session, uint32_t reader);

enum rt_trace_event {
#define X(event, parameters) RT_TRACE_##event,
	RT_TRACER_EVENTS(X)
#undef X
		RT_TRACE_EVENTS
};

extern const char *const rt_trace_names[RT_TRACE_EVENTS];

/* What DPDK's trace points were given since the application started. */
struct rt_trace_count {
	uint64_t emitted;
	uint64_t lost; /* of these: had no buffer, no room, or were overwritten */
};

/* Any thread. Exact when no thread is in a hook, but: DPDK frees the buffers of EAL threads that
 * end, whose events do not count as lost, and what threads without a slot have overwritten does
 * not. */
void rt_trace_counts(struct rt_trace_count out[RT_TRACE_EVENTS]);
/* Whether another probe in this process has come first; before our constructors or after. */
bool rt_trace_points_taken(void);
/* How many of DPDK's trace points are on. */
unsigned rt_trace_points_on(void);
/* While DPDK saves, under a lock that it also takes to give a thread its buffer: threads that have
 * none lose their events instead of waiting for the disk. */
void rt_trace_saving(bool on);

/* Of the calling thread, which ringtap has made: it may have a buffer, and must not end before the
 * application does if it has one, as DPDK 22.11 would never free it. */
void rt_trace_control_thread(void);
bool rt_trace_holds_buffer(void);

/* Whether anybody listens to more than USDT. */
bool rt_trace_listened(void);
/* For good. */
void rt_trace_set_tracer(const struct rt_tracer *t);

#endif
