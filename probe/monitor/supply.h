/* SPDX-License-Identifier: BSD-3-Clause */
/* Populated memory for polling threads, and the segment that has it. */
#ifndef RINGTAP_PROBE_MONITOR_SUPPLY_H
#define RINGTAP_PROBE_MONITOR_SUPPLY_H

#include "stats.h"

struct rt_stats *rt_stats_create(const struct rt_clock_line *clock); /* NULL: no memory */
void rt_stats_free(struct rt_stats *f);
/* Populates the memory that polling threads need for the collectors that are on. Touches memory
 * and counts of f only: needs no lock as long as f is not freed. */
void rt_stats_supply(struct rt_stats *f, uint32_t on);
/* Lets threads use what rt_stats_supply() has populated; f is the current one. */
void rt_stats_use_supply(struct rt_stats *f);

#endif
