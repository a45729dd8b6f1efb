/* SPDX-License-Identifier: BSD-3-Clause */
/* The end of DPDK in this process: rte_eal_cleanup(), or exit(). docs/memory-model.md. */
#ifndef RINGTAP_PROBE_CORE_TEARDOWN_H
#define RINGTAP_PROBE_CORE_TEARDOWN_H

#include <stdbool.h>
#include <stdint.h>

/* Whether it has come: nothing of DPDK may be used any more. For good. */
bool rt_teardown_begun(void);
/* Whether the thread that tears down waits no longer: what is still to be undone stays as it is. */
bool rt_teardown_late(void);

/* Around a use of DPDK in threads of others, which the end waits for. False: it has come. */
bool rt_teardown_hold(void);
void rt_teardown_release(void);

/* What DPDK's cleanup and exit() call. */
void rt_teardown(void);

#endif
