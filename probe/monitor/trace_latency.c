/* SPDX-License-Identifier: BSD-3-Clause */
/* The one USDT event whose arguments must be computed: only while a tracer is attached to it. */
#define _SDT_HAS_SEMAPHORES 1
#include "common/atomics.h"
#include "common/sdt.h"
#include "stats.h"
#include "probe/trace/trace.h"

RT_USDT_SEMAPHORE(latency);

bool rt_trace_latency_enabled(void)
{
	return RT_USDT_LISTENED(latency) || rt_load(&rt_stat_mode.state) & RT_COLLECT_TRACE;
}

void rt_trace_latency_usdt(
	uint16_t port, uint16_t queue, uint32_t packets, uint64_t sum_cycles, uint64_t max_cycles)
{
	RT_USDT(latency, port, queue, packets, sum_cycles, max_cycles);
}
