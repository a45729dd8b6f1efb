/* SPDX-License-Identifier: BSD-3-Clause */
/* The pool that packets come from, in memory of the wanted kind and order. */
#ifndef RINGTAP_FWD_MEMORY_H
#define RINGTAP_FWD_MEMORY_H

#include <rte_mempool.h>

#include "config.h"
#include "smaps.h"

struct memory {
	enum memory_kind kind;
	enum pool_order order;
	struct rte_mempool *pool;
	void *base;         /* of the buffers; of kind dpdk the lowest piece */
	uint64_t bytes;     /* of kind dpdk up to the end of the highest piece */
	uint64_t page_size; /* bytes */
	uint64_t stride;    /* bytes from buffer to buffer; kind dpdk: from object to object */
	struct smaps smaps;
	int gpu;       /* its number */
	void *mapping; /* what munmap() gets, guards included; NULL: nothing */
	uint64_t mapping_bytes;
};

/* MiB that EAL needs for its own part. */
uint64_t memory_eal_mb(const struct fwd_config *c);
/* Makes the memory, registers it with DPDK and with the devices of the ports, and makes the
 * pool. Checks that the kernel provided the requested pages. 0 or -errno after printing why. */
int memory_make(
	struct memory *m, const struct fwd_config *c, const uint16_t *ports, unsigned count);
/* Takes it from the devices, after the ports were stopped. */
void memory_detach(struct memory *m, const uint16_t *ports, unsigned count);
/* After the ports were closed: closing gives packets back. */
void memory_free(struct memory *m);

/* Whether there is enough ordinary memory: the kernel would promise more, and kill a process
 * once it is touched. 0, or -ENOMEM after printing what to do. */
int memory_check(const struct fwd_config *c);

#endif
