/* SPDX-License-Identifier: BSD-3-Clause */
/* The one event whose arguments must be computed: only for those who listen. */
#define _SDT_HAS_SEMAPHORES 1
#include "common/atomics.h"
#include "common/sdt.h"
#include "trace.h"

RT_USDT_SEMAPHORE(latency);

bool rt_trace_wants_latency(void)
{
	return RT_USDT_LISTENED(latency);
}

void rt_trace_latency(
	uint16_t port, uint16_t queue, uint32_t packets, uint64_t sum, uint64_t greatest)
{
	RT_USDT(latency, port, queue, packets, sum, greatest);
}
