/* SPDX-License-Identifier: BSD-3-Clause */
/* The events as DPDK's trace points, ringtap.rx_burst and so on. Included behind
 * rte_trace_point_register.h, it registers them. */
#ifndef RINGTAP_PROBE_TRACE_POINTS_H
#define RINGTAP_PROBE_TRACE_POINTS_H

#include <rte_trace_point.h>

/* clang-format off */
RTE_TRACE_POINT(rt_point_rx_burst,
	RTE_TRACE_POINT_ARGS(uint16_t port, uint16_t queue, uint16_t nb_pkts, uint16_t nb_rx),
	rte_trace_point_emit_u16(port);
	rte_trace_point_emit_u16(queue);
	rte_trace_point_emit_u16(nb_pkts);
	rte_trace_point_emit_u16(nb_rx);
)

RTE_TRACE_POINT(rt_point_empty_poll,
	RTE_TRACE_POINT_ARGS(uint16_t port, uint16_t queue, uint16_t nb_pkts),
	rte_trace_point_emit_u16(port);
	rte_trace_point_emit_u16(queue);
	rte_trace_point_emit_u16(nb_pkts);
)

RTE_TRACE_POINT(rt_point_tx_burst,
	RTE_TRACE_POINT_ARGS(uint16_t port, uint16_t queue, uint16_t nb_pkts, uint16_t nb_tx),
	rte_trace_point_emit_u16(port);
	rte_trace_point_emit_u16(queue);
	rte_trace_point_emit_u16(nb_pkts);
	rte_trace_point_emit_u16(nb_tx);
)

RTE_TRACE_POINT(rt_point_tx_refused,
	RTE_TRACE_POINT_ARGS(uint16_t port, uint16_t queue, uint64_t packets),
	rte_trace_point_emit_u16(port);
	rte_trace_point_emit_u16(queue);
	rte_trace_point_emit_u64(packets);
)

RTE_TRACE_POINT(rt_point_drop,
	RTE_TRACE_POINT_ARGS(uint16_t port, uint16_t queue, uint64_t packets, uint32_t reason),
	rte_trace_point_emit_u16(port);
	rte_trace_point_emit_u16(queue);
	rte_trace_point_emit_u64(packets);
	rte_trace_point_emit_u32(reason);
)

RTE_TRACE_POINT(rt_point_session_open,
	RTE_TRACE_POINT_ARGS(uint32_t session, uint32_t reader),
	rte_trace_point_emit_u32(session);
	rte_trace_point_emit_u32(reader);
)

RTE_TRACE_POINT(rt_point_session_close,
	RTE_TRACE_POINT_ARGS(uint32_t session, uint32_t reader),
	rte_trace_point_emit_u32(session);
	rte_trace_point_emit_u32(reader);
)

RTE_TRACE_POINT(rt_point_ring_full,
	RTE_TRACE_POINT_ARGS(uint32_t session, uint16_t port, uint16_t queue, uint32_t packets),
	rte_trace_point_emit_u32(session);
	rte_trace_point_emit_u16(port);
	rte_trace_point_emit_u16(queue);
	rte_trace_point_emit_u32(packets);
)

RTE_TRACE_POINT(rt_point_latency,
	RTE_TRACE_POINT_ARGS(uint16_t port, uint16_t queue, uint32_t packets, uint64_t sum_cycles,
		uint64_t max_cycles),
	rte_trace_point_emit_u16(port);
	rte_trace_point_emit_u16(queue);
	rte_trace_point_emit_u32(packets);
	rte_trace_point_emit_u64(sum_cycles);
	rte_trace_point_emit_u64(max_cycles);
)
/* clang-format on */

/* For constructors. fields: emits all fields of the point, as rte_trace_point_register.h defines
 * that. 0, or -errno: no memory, or 65535 points exist; DPDK then fails to start. */
int rt_trace_point_register(rte_trace_point_t *point, const char *name, void (*fields)(void));

#endif
