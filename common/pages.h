/* SPDX-License-Identifier: BSD-3-Clause */
/* What the kernel tells of memory. */
#ifndef RINGTAP_COMMON_PAGES_H
#define RINGTAP_COMMON_PAGES_H

#include <stddef.h>
#include <stdint.h>

/* Smallest mapping that can use huge pages, and its alignment. */
#define RT_HUGE_PAGE (2u << 20)

/* Makes a populated mapping of a memfd use huge pages where MADV_HUGEPAGE alone does not: where
 * shmem_enabled is "never" (Debian's default), asking for this very range still works. The new
 * pages are charged to the memory cgroup of the caller. It can make the kernel wait for all CPUs,
 * so it is done only where it is needed. Failure costs speed only. */
void rt_pages_collapse(void *p, size_t size);

/* Bytes that this process can have without swapping: MemAvailable of proc(5), or what the limits of
 * its memory cgroup and that one's parents leave, if less. UINT64_MAX: unknown. */
uint64_t rt_pages_available(void);

#endif
