/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of the first GPU, through NVIDIA's driver, which is loaded at run time. */
#ifndef RINGTAP_FWD_GPU_H
#define RINGTAP_FWD_GPU_H

#include "memory.h"

#define GPU_LIBRARY   "libcuda.so.1"
#define GPU_PAGE_SIZE (64u << 10) /* in which the driver pins device memory for other devices */

static inline bool gpu_kind(enum memory_kind kind)
{
	return kind == MEMORY_GPU || kind == MEMORY_GPU_MANAGED || kind == MEMORY_GPU_PINNED;
}

/* Allocates m->bytes (rounded up) of m->kind, and fills them with zeros. 0, or -errno after
 * printing why; then nothing is allocated. */
int gpu_map(struct memory *m, const char *library);
void gpu_unmap(struct memory *m);

#endif
