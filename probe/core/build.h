/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether the probe's object was compiled for structures such as the application's DPDK has: its
 * release and its ABI do not tell that. */
#ifndef RINGTAP_PROBE_CORE_BUILD_H
#define RINGTAP_PROBE_CORE_BUILD_H

/* RTE_TEL_MAX_STRING_LEN */
#define RT_BUILD_TEXT 128

/* Before the control thread starts. 0; -ENOTSUP: rt_build_why() has the reason. */
int rt_build_check(void);
/* A sentence without a full stop; "": there was no refusal. */
const char *rt_build_why(void);

#endif
