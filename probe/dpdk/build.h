/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How the application's DPDK was built: neither its release nor its ABI shows the options. Its own
 * functions do. What differs from the DPDK that this object was compiled for is served or refused.
 */
#ifndef RINGTAP_PROBE_DPDK_BUILD_H
#define RINGTAP_PROBE_DPDK_BUILD_H

#include <stdint.h>

/* RTE_TEL_MAX_STRING_LEN */
#define RT_BUILD_TEXT 128

/* Before the control thread starts. 0; -ENOTSUP: rt_build_why() has the reason. */
int rt_build_check(void);
/* A sentence without a full stop; "": there was no refusal. */
const char *rt_build_why(void);

/* RTE_MAX_ETHPORTS, which is RTE_ETH_ALL too, and RTE_MAX_LCORE. */
uint16_t rt_build_ports(void);
unsigned rt_build_lcores(void);

#endif
