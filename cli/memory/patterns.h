/* SPDX-License-Identifier: BSD-3-Clause */
/* Where packet buffers are, and in which order an application uses them. */
#ifndef RINGTAP_CLI_MEMORY_PATTERNS_H
#define RINGTAP_CLI_MEMORY_PATTERNS_H

#include "measure/iotlb.h"
#include "samples.h"

#define PAGE_KINDS 3
extern const unsigned page_shifts[PAGE_KINDS]; /* 4 KiB, 2 MiB, 1 GiB */
extern const char *const page_names[PAGE_KINDS];

#define MEMORY_SOME 1000 /* packets, over which distinct pages are counted */

/* The order in which the buffers of one port, queue and pool came, or of all. */
struct memory_pattern {
	uint32_t port, pool;
	int queue; /* -1: of all of them */
	size_t count;
	uint64_t steps, sequential; /* from a buffer to the next one of the same run */
	uint64_t same;              /* steps to the same address */
	uint64_t distance[64];      /* other steps, by log2(bytes) */
	double pages[PAGE_KINDS];   /* distinct in MEMORY_SOME packets; NAN: too few packets */
	struct iotlb iotlb[PAGE_KINDS];
};

struct memory_patterns {
	struct memory_pattern *list; /* by port, queue, pool */
	size_t count;
	struct memory_pattern all;
};

/* 0 or -ENOMEM. Free with memory_patterns_free() in any case. */
int memory_patterns_find(struct memory_patterns *p, const struct memory_samples *s,
	const struct ringtap_snapshot *f);
void memory_patterns_free(struct memory_patterns *p);
/* The address under which devices see it. */
uint64_t memory_device_address(const struct memory_sample *s);

#endif
