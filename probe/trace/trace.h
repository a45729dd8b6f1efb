/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Events for tracers; docs/tracing.md has the table. All are emitted in this folder, except the
 * USDT events of each call of a hook: trace_burst.h.
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

/* Whether the application emits USDT events of its own, of the same names, for bursts and for
 * packets that its drivers refuse: the hooks' events would repeat them. */
extern const bool rt_trace_own_loop;

/* In hooks, while a tracer beyond USDT listens (RT_COLLECT_TRACE). */
void rt_trace_burst(
	enum rt_direction dir, uint16_t port, uint16_t queue, uint16_t nb_pkts, uint16_t n);

/* In hooks, for all tracers. */
void rt_trace_ring_full(uint32_t session, uint16_t port, uint16_t queue, uint32_t packets);
/* Whether a tracer needs the times of a burst's packets, cycles; call it before adding them up. */
bool rt_trace_latency_enabled(void);
void rt_trace_latency(
	uint16_t port, uint16_t queue, uint32_t packets, uint64_t sum_cycles, uint64_t max_cycles);
void rt_trace_latency_usdt(
	uint16_t port, uint16_t queue, uint32_t packets, uint64_t sum_cycles, uint64_t max_cycles);

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

/* Events given to DPDK's trace points since the application started. */
struct rt_trace_count {
	uint64_t emitted;
	uint64_t lost;         /* events without buffer or room, and overwritten ones */
	uint64_t lost_earlier; /* events emitted before an rt_trace_mark(), lost after it */
};

/* Any thread. lost is at most emitted. Exact when no thread is in a hook, with two exceptions,
 * which are not counted as lost: events in the buffer of an EAL thread that has ended, which DPDK
 * frees, and events that threads without a slot have overwritten. */
void rt_trace_counts(struct rt_trace_count out[RT_TRACE_EVENTS]);
/* Before tracing begins: events lost of it are counted apart from earlier ones that it overwrites.
 */
void rt_trace_mark(void);
/* Whether another probe of this process came first; before this one's constructors or after. */
bool rt_trace_points_taken(void);
/* How many of DPDK's trace points are on. */
unsigned rt_trace_points_on(void);
/* While DPDK saves, under a lock that it also takes to give a thread its buffer: threads that
 * have none lose their events instead of waiting for the disk. */
void rt_trace_saving(bool on);

/* The calling thread is ringtap's own. If it has a trace buffer it must not end before the
 * application does: DPDK 22.11 would never free the buffer. */
void rt_trace_control_thread(void);
bool rt_trace_holds_buffer(void);

/* Whether a tracer beyond USDT listens. */
bool rt_trace_listened(void);
/* Never undone. */
void rt_trace_set_tracer(const struct rt_tracer *t);

#endif
