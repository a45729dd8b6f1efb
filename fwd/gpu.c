/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>

#if __has_include(<rte_gpudev.h>)
#include <rte_errno.h>
#include <rte_gpudev.h>
#endif

#include "gpu.h"
#include "base/util.h"

#ifdef RTE_GPU_ID_NONE
int gpu_map(struct memory *m)
{
	int16_t gpu = -1;

	RTE_GPU_FOREACH(gpu)
	break;
	if (gpu < 0 || !rte_gpu_is_valid(gpu)) {
		message_print(
			"--memory gpu: no GPU found; give its address with --pci, and install a "
			"driver such as librte_gpu_cuda");
		return -ENODEV;
	}
	m->gpu = gpu;
	m->bytes = (m->bytes + m->page_size - 1) / m->page_size * m->page_size;
	m->base = rte_gpu_mem_alloc(gpu, m->bytes, (unsigned)m->page_size);
	if (!m->base) {
		message_print("--memory gpu: cannot allocate: %s; give a smaller --pool-size",
			rte_strerror(rte_errno));
		return -rte_errno;
	}
	return 0;
}

void gpu_unmap(struct memory *m)
{
	(void)rte_gpu_mem_free((int16_t)m->gpu, m->base);
}
#else
int gpu_map(struct memory *m)
{
	message_print(
		"--memory gpu: not supported: DPDK has no gpudev library; install it and rebuild");
	return -ENOTSUP;
}

void gpu_unmap(struct memory *m)
{
}
#endif
