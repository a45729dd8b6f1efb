/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RINGTAP_PROBE_NOW_MS_H
#define RINGTAP_PROBE_NOW_MS_H

#include "common/clock.h"

/* The clock of the control thread's limits and ages, in milliseconds. */
static inline uint64_t rt_now_ms(void)
{
	return rt_time_ns(CLOCK_MONOTONIC) / 1000000;
}

#endif
