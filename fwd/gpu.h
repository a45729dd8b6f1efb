/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of a GPU, through DPDK's gpudev. */
#ifndef RINGTAP_FWD_GPU_H
#define RINGTAP_FWD_GPU_H

#include "memory.h"

#define GPU_PAGE_SIZE (64u << 10) /* smallest page of GPUs, as in DPDK's own examples */

/* Allocates m->bytes (rounded up) on the first GPU. 0, or -errno after printing why. */
int gpu_map(struct memory *m);
void gpu_unmap(struct memory *m);

#endif
