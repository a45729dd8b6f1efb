/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The CUDA driver API. Its functions have no header here: Debian's main section has none, and a
 * program that includes it would need the driver at start.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "gpu.h"
#include "base/util.h"

#define OUT_OF_MEMORY 2 /* CUDA_ERROR_OUT_OF_MEMORY */
#define ATTACH_GLOBAL 1 /* CU_MEM_ATTACH_GLOBAL */
#define HOST_MAPPED   2 /* CU_MEMHOSTALLOC_DEVICEMAP */

/* CUresult is an enum, CUdeviceptr a 64-bit number, CUdevice an int, CUcontext a pointer. */
static struct api {
	int (*init)(unsigned flags);
	int (*device)(int *device, int number);
	int (*retain)(void **context, int device);
	int (*release)(int device);
	int (*enter)(void *context);
	int (*alloc)(uint64_t *address, size_t bytes);
	int (*alloc_managed)(uint64_t *address, size_t bytes, unsigned flags);
	int (*alloc_pinned)(void **address, size_t bytes, unsigned flags);
	int (*fill)(uint64_t address, unsigned char byte, size_t bytes);
	int (*wait)(void);
	int (*free)(uint64_t address);
	int (*free_pinned)(void *address);
	int (*error_name)(int error, const char **name);
} api;

static const char *const symbols[] = {"cuInit", "cuDeviceGet", "cuDevicePrimaryCtxRetain",
	"cuDevicePrimaryCtxRelease_v2", "cuCtxSetCurrent", "cuMemAlloc_v2", "cuMemAllocManaged",
	"cuMemHostAlloc", "cuMemsetD8_v2", "cuCtxSynchronize", "cuMemFree_v2", "cuMemFreeHost",
	"cuGetErrorName"};
_Static_assert(sizeof(symbols) / sizeof(symbols[0]) == sizeof(api) / sizeof(void (*)(void)),
	"a name for each function");

/* The library stays loaded: it has threads. */
static int load(const struct memory *m, const char *library)
{
	void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);

	for (size_t i = 0; handle && i < sizeof(symbols) / sizeof(symbols[0]); i++) {
		void *function = dlsym(handle, symbols[i]);

		if (!function) {
			message_print("--pool-memory %s: %s has no %s; install a newer driver",
				memory_names[m->kind], library, symbols[i]);
			dlclose(handle);
			return -ENOTSUP;
		}
		memcpy((char *)&api + i * sizeof(function), &function, sizeof(function));
	}
	if (handle)
		return 0;
	return message_fail(-ENODEV, "--pool-memory %s: no GPU found: %s; install NVIDIA's driver",
		memory_names[m->kind], dlerror());
}

static const char *error_text(int error)
{
	static char number[32];
	const char *name = NULL;

	if (!api.error_name(error, &name) && name)
		return name;
	snprintf(number, sizeof(number), "error %d", error);
	return number;
}

/* Makes the context of the first GPU current, which other libraries of the process share. */
static int enter(struct memory *m)
{
	void *context;
	int error = api.init(0);

	if (!error)
		error = api.device(&m->gpu, 0);
	if (!error)
		error = api.retain(&context, m->gpu);
	if (error)
		return message_fail(-ENODEV, "--pool-memory %s: no GPU found: %s; see nvidia-smi",
			memory_names[m->kind], error_text(error));
	error = api.enter(context);
	if (!error)
		return 0;
	message_print("--pool-memory %s: cannot use the GPU: %s; see nvidia-smi",
		memory_names[m->kind], error_text(error));
	(void)api.release(m->gpu);
	return -EIO;
}

/* The CPU writes managed and pinned memory, as other kinds: managed memory is then the CPU's until
 * the GPU uses it. */
static int allocate(struct memory *m, size_t bytes)
{
	uint64_t address = 0;
	int error;

	if (m->kind == MEMORY_GPU_PINNED)
		error = api.alloc_pinned(&m->mapping, bytes, HOST_MAPPED);
	else if (m->kind == MEMORY_GPU_MANAGED)
		error = api.alloc_managed(&address, bytes, ATTACH_GLOBAL);
	else
		error = api.alloc(&address, bytes);
	if (error)
		return error;
	if (m->kind != MEMORY_GPU_PINNED)
		m->mapping = (void *)(uintptr_t)address;
	if (m->kind != MEMORY_GPU) {
		memset(m->mapping, 0, bytes);
		return 0;
	}
	error = api.fill(address, 0, bytes);
	return error ? error : api.wait();
}

int gpu_map(struct memory *m, const char *library)
{
	uint64_t align = m->page_size;
	int ret = load(m, library), error;

	if (!ret)
		ret = enter(m);
	if (ret)
		return ret;
	m->bytes = (m->bytes + align - 1) / align * align;
	m->mapping = NULL;
	/* Small allocations are not aligned to pages. */
	m->mapping_bytes = m->bytes + align;
	error = allocate(m, m->mapping_bytes);
	m->base = (void *)(((uintptr_t)m->mapping + align - 1) & ~(uintptr_t)(align - 1));
	if (!error)
		return 0;
	message_print("--pool-memory %s: cannot allocate: %s; give a smaller --pool-size",
		memory_names[m->kind], error_text(error));
	gpu_unmap(m);
	m->base = NULL;
	return error == OUT_OF_MEMORY ? -ENOMEM : -EIO;
}

void gpu_unmap(struct memory *m)
{
	if (m->mapping && m->kind == MEMORY_GPU_PINNED)
		(void)api.free_pinned(m->mapping);
	else if (m->mapping)
		(void)api.free((uintptr_t)m->mapping);
	m->mapping = NULL;
	(void)api.release(m->gpu);
}
