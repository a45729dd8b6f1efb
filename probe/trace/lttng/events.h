/* SPDX-License-Identifier: BSD-3-Clause */
/* Provider ringtap; docs/tracing.md has the table. LTTng includes it several times. */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER ringtap

#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "probe/trace/lttng/events.h"

#if !defined(RINGTAP_LTTNG_EVENTS_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define RINGTAP_LTTNG_EVENTS_H

#include <stdint.h>

#include <lttng/tracepoint.h>

/* clang-format off */
LTTNG_UST_TRACEPOINT_EVENT(ringtap, rx_burst,
	LTTNG_UST_TP_ARGS(uint16_t, port, uint16_t, queue, uint16_t, nb_pkts, uint16_t, nb_rx),
	LTTNG_UST_TP_FIELDS(
		lttng_ust_field_integer(uint16_t, port, port)
		lttng_ust_field_integer(uint16_t, queue, queue)
		lttng_ust_field_integer(uint16_t, nb_pkts, nb_pkts)
		lttng_ust_field_integer(uint16_t, nb_rx, nb_rx)
	)
)

LTTNG_UST_TRACEPOINT_EVENT(ringtap, empty_poll,
	LTTNG_UST_TP_ARGS(uint16_t, port, uint16_t, queue, uint16_t, nb_pkts),
	LTTNG_UST_TP_FIELDS(
		lttng_ust_field_integer(uint16_t, port, port)
		lttng_ust_field_integer(uint16_t, queue, queue)
		lttng_ust_field_integer(uint16_t, nb_pkts, nb_pkts)
	)
)

LTTNG_UST_TRACEPOINT_EVENT(ringtap, tx_burst,
	LTTNG_UST_TP_ARGS(uint16_t, port, uint16_t, queue, uint16_t, nb_pkts, uint16_t, nb_tx),
	LTTNG_UST_TP_FIELDS(
		lttng_ust_field_integer(uint16_t, port, port)
		lttng_ust_field_integer(uint16_t, queue, queue)
		lttng_ust_field_integer(uint16_t, nb_pkts, nb_pkts)
		lttng_ust_field_integer(uint16_t, nb_tx, nb_tx)
	)
)

LTTNG_UST_TRACEPOINT_EVENT(ringtap, tx_refused,
	LTTNG_UST_TP_ARGS(uint16_t, port, uint16_t, queue, uint64_t, packets),
	LTTNG_UST_TP_FIELDS(
		lttng_ust_field_integer(uint16_t, port, port)
		lttng_ust_field_integer(uint16_t, queue, queue)
		lttng_ust_field_integer(uint64_t, packets, packets)
	)
)

LTTNG_UST_TRACEPOINT_EVENT(ringtap, drop,
	LTTNG_UST_TP_ARGS(uint16_t, port, uint16_t, queue, uint64_t, packets, uint32_t, reason),
	LTTNG_UST_TP_FIELDS(
		lttng_ust_field_integer(uint16_t, port, port)
		lttng_ust_field_integer(uint16_t, queue, queue)
		lttng_ust_field_integer(uint64_t, packets, packets)
		lttng_ust_field_integer(uint32_t, reason, reason)
	)
)

LTTNG_UST_TRACEPOINT_EVENT(ringtap, session_open,
	LTTNG_UST_TP_ARGS(uint32_t, session, uint32_t, reader),
	LTTNG_UST_TP_FIELDS(
		lttng_ust_field_integer(uint32_t, session, session)
		lttng_ust_field_integer(uint32_t, reader, reader)
	)
)

LTTNG_UST_TRACEPOINT_EVENT(ringtap, session_close,
	LTTNG_UST_TP_ARGS(uint32_t, session, uint32_t, reader),
	LTTNG_UST_TP_FIELDS(
		lttng_ust_field_integer(uint32_t, session, session)
		lttng_ust_field_integer(uint32_t, reader, reader)
	)
)

LTTNG_UST_TRACEPOINT_EVENT(ringtap, ring_full,
	LTTNG_UST_TP_ARGS(uint32_t, session, uint16_t, port, uint16_t, queue, uint32_t, packets),
	LTTNG_UST_TP_FIELDS(
		lttng_ust_field_integer(uint32_t, session, session)
		lttng_ust_field_integer(uint16_t, port, port)
		lttng_ust_field_integer(uint16_t, queue, queue)
		lttng_ust_field_integer(uint32_t, packets, packets)
	)
)

LTTNG_UST_TRACEPOINT_EVENT(ringtap, latency,
	LTTNG_UST_TP_ARGS(uint16_t, port, uint16_t, queue, uint32_t, packets, uint64_t, sum_cycles,
		uint64_t, max_cycles),
	LTTNG_UST_TP_FIELDS(
		lttng_ust_field_integer(uint16_t, port, port)
		lttng_ust_field_integer(uint16_t, queue, queue)
		lttng_ust_field_integer(uint32_t, packets, packets)
		lttng_ust_field_integer(uint64_t, sum_cycles, sum_cycles)
		lttng_ust_field_integer(uint64_t, max_cycles, max_cycles)
	)
)
/* clang-format on */

#endif

#include <lttng/tracepoint-event.h>
