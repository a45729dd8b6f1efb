/* SPDX-License-Identifier: BSD-3-Clause */
/* Events that are not the hooks' every call. */
#include "common/sdt.h"
#include "trace.h"

void rt_trace_ring_full(uint32_t session, uint16_t port, uint16_t queue, uint32_t packets)
{
	RT_USDT(ring_full, session, port, queue, packets);
}

void rt_trace_drop(uint16_t port, uint16_t queue, uint64_t packets, uint32_t reason)
{
	RT_USDT(drop, port, queue, packets, reason);
}

void rt_trace_tx_refused(uint16_t port, uint16_t queue, uint64_t packets)
{
	RT_USDT(tx_refused, port, queue, packets);
}

void rt_trace_session_open(uint32_t session, uint32_t reader_pid)
{
	RT_USDT(session_open, session, reader_pid);
}

void rt_trace_session_close(uint32_t session, uint32_t reader_pid)
{
	RT_USDT(session_close, session, reader_pid);
}
