/* SPDX-License-Identifier: BSD-3-Clause */
/* Times and sizes that unit tests set. Nothing else changes them. */
#ifndef RINGTAP_PROBE_TUNABLES_H
#define RINGTAP_PROBE_TUNABLES_H

#include <stdint.h>

struct rt_probe_limits {
	/* Least time that a removed callback is kept, and between two removals of a hook's
	 * callback. */
	uint64_t deferred_ms, hook_rest_ms;
	/* DPDK's verifier tries the paths through a program one by one, and their number may double
	 * with each jump: six IPv6 addresses have 10^8. At 200 ns a step, measured with programs
	 * made for it, one load takes 80 ms at most. */
	uint64_t filter_steps;
	/* A port's removal waits for a driver's call, which has no time limit, and may need a lock
	 * that the waiting thread holds. */
	unsigned port_call_ms;
	uint32_t full_wait_ms; /* on-full=wait gives up after this time without any room */
	unsigned greeting_ms;  /* A connection ends that has not greeted after this time; atomic */
	unsigned patience_ms;  /* for threads inside hooks, see rt_control_stop() */
};

extern struct rt_probe_limits rt_probe_limits;

#endif
