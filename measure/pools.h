/* SPDX-License-Identifier: BSD-3-Clause */
/* Mempools of a snapshot. */
#ifndef RINGTAP_MEASURE_POOLS_H
#define RINGTAP_MEASURE_POOLS_H

#include <stdint.h>

#include <ringtap/monitor.h>

/* The pool of the buffer at an address; RINGTAP_NO_INDEX: unknown. */
uint32_t pool_at(const struct ringtap_snapshot *f, uint64_t address);
/* Objects that are not available. */
uint32_t pool_in_use(const struct ringtap_pool_stats *p);

#endif
