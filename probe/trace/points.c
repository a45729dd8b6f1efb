/* SPDX-License-Identifier: BSD-3-Clause */
/* Does what RTE_TRACE_POINT_REGISTER() would do, but once per process: with two probes, one
 * linked in and one loaded, EAL would not start because the names exist twice. */
#include <rte_cycles.h>
#include <rte_trace.h>
#include <rte_trace_point_register.h>

#include "attached.h"
#include "trace.h"
#include "points.h"
#include "tracer.h"

#define POINT_BYTES_MAX 64 /* more than any event has in DPDK's buffer */

#define X(event, parameters) rte_trace_point_t __rt_point_##event;
RT_TRACER_EVENTS(X)
#undef X

bool rt_trace_points_taken(void)
{
	const rte_trace_point_t *known = rte_trace_point_lookup("ringtap.rx_burst");

	return known && known != &__rt_point_rx_burst;
}

/* Declares an event's fields. From DPDK 25.03 on the header that registers makes the function
 * that emits an empty one, and a second one beside it; before that it is the same function. */
#ifdef RTE_TRACE_POINT_ARGS_COUNT
#define ANNOUNCE(event) rt_point_##event##_register
#else
#define ANNOUNCE(event) rt_point_##event
#endif

static void (*announce)(void);

/* A point that declares no size makes rte_eal_init() fail later: DPDK keeps the error. It gets
 * more room than any event needs. */
static void announce_something(void)
{
	announce();
	if (RTE_PER_LCORE(trace_point_sz) <= 0)
		RTE_PER_LCORE(trace_point_sz) = POINT_BYTES_MAX;
}

int rt_trace_point_register(rte_trace_point_t *point, const char *name, void (*fields)(void))
{
	announce = fields;
	return __rte_trace_point_register(point, name, announce_something);
}

__attribute__((constructor)) static void register_points(void)
{
	/* EAL describes its events when it has loaded plugins, some time before it knows the TSC's
	 * frequency: no tool could read a trace with others. */
	if (rt_trace_points_taken() || rte_get_tsc_hz() || rt_is_attach())
		return;
#define X(event, parameters)     \
	rt_trace_point_register( \
		&__rt_point_##event, "ringtap." #event, (void (*)(void))ANNOUNCE(event));
	RT_TRACER_EVENTS(X)
#undef X
}
