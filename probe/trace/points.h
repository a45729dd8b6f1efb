/* SPDX-License-Identifier: BSD-3-Clause */
/* The events as DPDK's trace points, ringtap.rx_burst and so on. Included behind
 * rte_trace_point_register.h, it registers them. */
#ifndef RINGTAP_PROBE_TRACE_POINTS_H
#define RINGTAP_PROBE_TRACE_POINTS_H

#include <rte_trace_point.h>

/* clang-format off */
RTE_TRACE_POINT(rt_point_rx_burst,
	RTE_TRACE_POINT_ARGS(uint16_t port, uint16_t queue, uint16_t asked, uint16_t got),
	rte_trace_point_emit_u16(port);
	rte_trace_point_emit_u16(queue);
	rte_trace_point_emit_u16(asked);
	rte_trace_point_emit_u16(got);
)

RTE_TRACE_POINT(rt_point_empty_poll,
	RTE_TRACE_POINT_ARGS(uint16_t port, uint16_t queue, uint16_t asked),
	rte_trace_point_emit_u16(port);
	rte_trace_point_emit_u16(queue);
	rte_trace_point_emit_u16(asked);
)

RTE_TRACE_POINT(rt_point_tx_burst,
	RTE_TRACE_POINT_ARGS(uint16_t port, uint16_t queue, uint16_t asked, uint16_t got),
	rte_trace_point_emit_u16(port);
	rte_trace_point_emit_u16(queue);
	rte_trace_point_emit_u16(asked);
	rte_trace_point_emit_u16(got);
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
	RTE_TRACE_POINT_ARGS(uint16_t port, uint16_t queue, uint32_t packets, uint64_t sum,
		uint64_t greatest),
	rte_trace_point_emit_u16(port);
	rte_trace_point_emit_u16(queue);
	rte_trace_point_emit_u32(packets);
	rte_trace_point_emit_u64(sum);
	rte_trace_point_emit_u64(greatest);
)
/* clang-format on */

/* For constructors. fields: emits all fields of the point, as rte_trace_point_register.h defines
 * that. 0, or -errno: no memory, or 65535 points exist; DPDK then fails to start. */
int rt_trace_point_register(rte_trace_point_t *point, const char *name, void (*fields)(void));

#endif
