/* SPDX-License-Identifier: BSD-3-Clause */
/* Bringing up DPDK: its arguments, its messages, what it needs. */
#ifndef RINGTAP_FWD_EAL_H
#define RINGTAP_FWD_EAL_H

#include "config.h"

/* 0, or -errno after printing one line. */
int eal_start(const struct fwd_config *c);
void eal_stop(void);
/* The first error that DPDK logged; NULL: none, or --verbose lets it print. */
const char *eal_said(void);
/* Makes the calling thread one that DPDK knows, so that it has caches of pools. 0 or -errno. */
int eal_enter_thread(void);
void eal_leave_thread(void);

#endif
