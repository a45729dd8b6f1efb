/* SPDX-License-Identifier: BSD-3-Clause */
/* The probe's events for LTTng-UST. Knows nothing of the probe, which finds the table. */
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "events.h"

#include "probe/trace/tracer.h"

static bool enabled(void)
{
#define X(event, parameters) lttng_ust_tracepoint_enabled(ringtap, event) ||
	return RT_TRACER_EVENTS(X) false;
#undef X
}

static void rx_burst(uint16_t port, uint16_t queue, uint16_t nb_pkts, uint16_t nb_rx)
{
	lttng_ust_tracepoint(ringtap, rx_burst, port, queue, nb_pkts, nb_rx);
}

static void empty_poll(uint16_t port, uint16_t queue, uint16_t nb_pkts)
{
	lttng_ust_tracepoint(ringtap, empty_poll, port, queue, nb_pkts);
}

static void tx_burst(uint16_t port, uint16_t queue, uint16_t nb_pkts, uint16_t nb_tx)
{
	lttng_ust_tracepoint(ringtap, tx_burst, port, queue, nb_pkts, nb_tx);
}

static void tx_refused(uint16_t port, uint16_t queue, uint64_t packets)
{
	lttng_ust_tracepoint(ringtap, tx_refused, port, queue, packets);
}

static void drop(uint16_t port, uint16_t queue, uint64_t packets, uint32_t reason)
{
	lttng_ust_tracepoint(ringtap, drop, port, queue, packets, reason);
}

static void session_open(uint32_t session, uint32_t reader)
{
	lttng_ust_tracepoint(ringtap, session_open, session, reader);
}

static void session_close(uint32_t session, uint32_t reader)
{
	lttng_ust_tracepoint(ringtap, session_close, session, reader);
}

static void ring_full(uint32_t session, uint16_t port, uint16_t queue, uint32_t packets)
{
	lttng_ust_tracepoint(ringtap, ring_full, session, port, queue, packets);
}

static void latency(
	uint16_t port, uint16_t queue, uint32_t packets, uint64_t sum_cycles, uint64_t max_cycles)
{
	lttng_ust_tracepoint(ringtap, latency, port, queue, packets, sum_cycles, max_cycles);
}

__attribute__((visibility("default"))) extern const struct rt_tracer ringtap_tracer;
const struct rt_tracer ringtap_tracer = {.version = RT_TRACER_VERSION,
	.size = sizeof(struct rt_tracer),
	.enabled = enabled,
#define X(event, parameters) .event = event,
	RT_TRACER_EVENTS(X)
#undef X
};
