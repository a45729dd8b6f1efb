/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory for benchmark rings, laid out as a session's data area: mapped twice, back to back. */
#ifndef RINGTAP_BENCH_RING_MEM_H
#define RINGTAP_BENCH_RING_MEM_H

#include <stddef.h>
#include <stdint.h>

enum ring_pages {
	RING_PAGES_4K,
	RING_PAGES_THP,     /* madvise, then collapse: as good as the kernel's settings allow */
	RING_PAGES_HUGETLB, /* taken from the reserved huge pages */
};

struct ring_mem {
	uint8_t *data;
	size_t size; /* bytes of one mapping, a power of two */
	int fd;
	size_t huge; /* bytes that ended up in huge pages */
};

/* Maps and faults in everything. Returns 0 or -errno. */
int ring_mem_open(struct ring_mem *mem, size_t size, enum ring_pages pages);
/* A second view of the same memory for the consumer, as another process would have it. */
int ring_mem_share(struct ring_mem *view, const struct ring_mem *mem, enum ring_pages pages);
void ring_mem_close(struct ring_mem *mem);

#endif
