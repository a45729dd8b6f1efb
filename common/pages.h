/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory facts from the kernel. */
#ifndef RINGTAP_COMMON_PAGES_H
#define RINGTAP_COMMON_PAGES_H

#include <stddef.h>
#include <stdint.h>

/* Smallest mapping that can use huge pages, and its alignment. */
#define RT_HUGE_PAGE (2u << 20)

/* Makes all pages that hold size bytes at p present and writable, so that no later access faults.
 * Preserves their contents, also while other threads write to them. 0 or -errno. */
int rt_pages_populate(void *p, size_t size);

/* Bytes that this process can allocate without swapping: MemAvailable of proc(5), or what the
 * limits of its memory cgroup and of that one's parents leave, if less. UINT64_MAX: unknown. */
uint64_t rt_pages_available(void);

/* The least of these limits, whatever is used of it. UINT64_MAX: there is none. */
uint64_t rt_pages_limit(void);

/* The folder with /proc and /sys of the kernel: "", or that of a unit test. */
extern const char *rt_pages_root;

#endif
