/* SPDX-License-Identifier: BSD-3-Clause */
/* The end of DPDK in this process: rte_eal_cleanup(), or exit(). docs/memory-model.md. */
#ifndef RINGTAP_PROBE_DPDK_TEARDOWN_H
#define RINGTAP_PROBE_DPDK_TEARDOWN_H

#include <stdbool.h>
#include <stdint.h>

/* Whether the end has begun: DPDK must not be used any more. Never becomes false again. */
bool rt_teardown_begun(void);
/* Whether the thread that tears DPDK down no longer waits: leave everything else as it is. */
bool rt_teardown_late(void);

/* Brackets a use of DPDK in other threads, for which the end waits. False: the end has begun. */
bool rt_teardown_hold(void);
void rt_teardown_release(void);

/* DPDK's cleanup and exit() call this. */
void rt_teardown(void);

#endif
