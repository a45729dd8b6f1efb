/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads that poll. */
#ifndef RINGTAP_HOST_POLL_H
#define RINGTAP_HOST_POLL_H

#include "host.h"

/* A thread on every worker lcore, sharing out the queues. */
int poll_start(const struct host *h);
void poll_stop(void);

#endif
