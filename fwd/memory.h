/* SPDX-License-Identifier: BSD-3-Clause */
/* The packet pool, in memory of the configured kind and order. */
#ifndef RINGTAP_FWD_MEMORY_H
#define RINGTAP_FWD_MEMORY_H

#include <rte_mempool.h>

#include "config.h"
#include "smaps.h"

struct memory {
	enum memory_kind kind;
	enum pool_order order;
	struct rte_mempool *pool;
	void *base;         /* base of the buffers; kind dpdk: base of the lowest chunk */
	uint64_t bytes;     /* kind dpdk: up to the end of the highest chunk */
	uint64_t page_size; /* bytes */
	uint64_t stride;    /* bytes from buffer to buffer; kind dpdk: from object to object */
	struct smaps smaps;
	int gpu;       /* device number */
	void *mapping; /* for munmap(), guards included, or for the GPU's driver; NULL: none */
	uint64_t mapping_bytes;
};

/* Memory that EAL needs, in MiB. */
uint64_t memory_eal_mb(const struct fwd_config *c);
/* Maps the memory, registers it with DPDK and with the devices of the ports, and creates the pool.
 * Checks that the kernel provided the requested pages. 0, or -errno after printing why. */
int memory_make(
	struct memory *m, const struct fwd_config *c, const uint16_t *ports, unsigned count);
/* Unmaps the memory from the devices. The ports must be stopped. */
void memory_detach(struct memory *m, const uint16_t *ports, unsigned count);
/* Frees the pool and the memory. The ports must be closed: closing returns packets to the pool. */
void memory_free(struct memory *m);

/* Checks that enough ordinary memory is available: the kernel overcommits, and kills a process when
 * the pages are touched. 0, or -ENOMEM after printing why. */
int memory_check(const struct fwd_config *c);

#endif
