/* SPDX-License-Identifier: BSD-3-Clause */
/* Start and end of DPDK's EAL: arguments, messages, required memory. */
#ifndef RINGTAP_FWD_EAL_H
#define RINGTAP_FWD_EAL_H

#include "config.h"

/* Starts EAL. 0, or -errno after printing why. */
int eal_start(const struct fwd_config *c);
void eal_stop(void);
/* The first error that DPDK logged. NULL: none, or --verbose prints them. */
const char *eal_error(void);
/* Registers the calling thread with DPDK, which gives it mempool caches. 0 or -errno. */
int eal_enter_thread(void);
void eal_leave_thread(void);

#endif
