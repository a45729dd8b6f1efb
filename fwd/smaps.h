/* SPDX-License-Identifier: BSD-3-Clause */
/* The page sizes of a memory area of this process, from /proc/PID/smaps: proc(5). */
#ifndef RINGTAP_FWD_SMAPS_H
#define RINGTAP_FWD_SMAPS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Sums over the mappings that overlap the area; 1 kB is 1024 bytes, as in the file. */
struct smaps {
	uint64_t size_kb;      /* whole mappings, which may be larger than the area */
	uint64_t rss_kb;       /* resident in ordinary or transparent huge pages */
	uint64_t anon_huge_kb; /* resident in transparent huge pages */
	uint64_t hugetlb_kb;   /* in hugetlb pages */
	uint64_t page_kb;      /* smallest KernelPageSize */
	unsigned mappings;
};

/* Reads a file in this format. 0 or -errno; -ENOENT: nothing is mapped in the area. */
int smaps_read(FILE *f, uint64_t address, uint64_t bytes, struct smaps *out);
/* Reads /proc/self/smaps. */
int smaps_self(const void *address, uint64_t bytes, struct smaps *out);

#endif
