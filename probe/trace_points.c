/* SPDX-License-Identifier: BSD-3-Clause */
/* What RTE_TRACE_POINT_REGISTER() would do, but once per process: where there are two probes, one
 * linked in and one loaded, EAL would not start for the names that are there twice. */
#include <rte_trace_point_register.h>

#include "trace.h"
#include "trace_points.h"
#include "tracer.h"

#define X(event, parameters) rte_trace_point_t __rt_point_##event;
RT_TRACER_EVENTS(X)
#undef X

bool rt_trace_points_taken(void)
{
	const rte_trace_point_t *known = rte_trace_point_lookup("ringtap.rx_burst");

	return known && known != &__rt_point_rx_burst;
}

__attribute__((constructor)) static void register_points(void)
{
	if (rt_trace_points_taken())
		return;
#define X(event, parameters)        \
	__rte_trace_point_register( \
		&__rt_point_##event, "ringtap." #event, (void (*)(void))rt_point_##event);
	RT_TRACER_EVENTS(X)
#undef X
}
