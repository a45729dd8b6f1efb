/* SPDX-License-Identifier: BSD-3-Clause */
/* Levels of the application's rings, which it may create, use and free meanwhile. */
#ifndef RINGTAP_PROBE_DPDK_RINGS_H
#define RINGTAP_PROBE_DPDK_RINGS_H

#include <stdbool.h>
#include <stdint.h>

#include <rte_ring.h>

#define RT_RINGS_MAX 512u /* rings that are read; further ones are counted */

struct rt_ring_level {
	char name[RTE_RING_NAMESIZE];
	uint32_t capacity, used; /* objects */
};

/* Calls f for each ring that DPDK lists, without its locks. beyond: rings that were not read.
 * False: not called, as DPDK ends, or the list is that of another process. Control thread. */
bool rt_rings_each(
	void (*f)(const struct rt_ring_level *r, void *arg), void *arg, uint32_t *beyond);

/* The level of a ring. -EINVAL: its memory is gone, or is not that of a ring. -EPERM: the kernel
 * refuses process_vm_readv(). */
int rt_ring_read(const struct rte_ring *r, struct rt_ring_level *out);

#endif
