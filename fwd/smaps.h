/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernel's account of a piece of this process's memory: proc(5), /proc/PID/smaps. */
#ifndef RINGTAP_FWD_SMAPS_H
#define RINGTAP_FWD_SMAPS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Sums over the mappings that overlap the piece; kB as there. */
struct smaps {
	uint64_t size_kb;      /* whole mappings, which may reach beyond the piece */
	uint64_t rss_kb;       /* resident in ordinary or transparent huge pages */
	uint64_t anon_huge_kb; /* … in transparent huge pages */
	uint64_t hugetlb_kb;   /* in huge pages of hugetlb */
	uint64_t page_kb;      /* least KernelPageSize */
	unsigned mappings;
};

/* Reads a file in that format. 0 or -errno; -ENOENT: nothing is mapped there. */
int smaps_read(FILE *f, uint64_t address, uint64_t bytes, struct smaps *out);
/* The same of this process. */
int smaps_self(const void *address, uint64_t bytes, struct smaps *out);

#endif
