/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A tracer in a shared object of its own, such as lttng/: it exports one of these as
 * RT_TRACER_SYMBOL, and is linked with -z nodelete. Arguments are those of docs/tracing.md.
 */
#ifndef RINGTAP_PROBE_TRACE_TRACER_H
#define RINGTAP_PROBE_TRACE_TRACER_H

#include <stdbool.h>
#include <stdint.h>

#define RT_TRACER_VERSION 1
#define RT_TRACER_SYMBOL  "ringtap_tracer"

/* X(event, parameters) */
#define RT_TRACER_EVENTS(X)                                                               \
	X(rx_burst, (uint16_t port, uint16_t queue, uint16_t nb_pkts, uint16_t nb_rx))    \
	X(empty_poll, (uint16_t port, uint16_t queue, uint16_t nb_pkts))                  \
	X(tx_burst, (uint16_t port, uint16_t queue, uint16_t nb_pkts, uint16_t nb_tx))    \
	X(tx_refused, (uint16_t port, uint16_t queue, uint64_t packets))                  \
	X(drop, (uint16_t port, uint16_t queue, uint64_t packets, uint32_t reason))       \
	X(session_open, (uint32_t session, uint32_t reader))                              \
	X(session_close, (uint32_t session, uint32_t reader))                             \
	X(ring_full, (uint32_t session, uint16_t port, uint16_t queue, uint32_t packets)) \
	X(latency, (uint16_t port, uint16_t queue, uint32_t packets, uint64_t sum_cycles, \
			   uint64_t max_cycles))

struct rt_tracer {
	uint32_t version;
	uint32_t size; /* bytes of this structure */
	/* Whether any event is enabled. Control thread. */
	bool (*enabled)(void);
	/* Any thread, at any time. */
#define X(event, parameters) void(*event) parameters;
	RT_TRACER_EVENTS(X)
#undef X
};

#endif
