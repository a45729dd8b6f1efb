/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A library with the names of the CUDA driver API for gpu_test.c, which has no GPU: each function
 * fails with the error that the variable FAKE_CUDA gives it, as in "cuInit=100". It counts what is
 * not released again. Built without LACKS, it has all functions.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern int fake_contexts, fake_allocations;
int fake_contexts, fake_allocations;

static int result(const char *function)
{
	const char *wanted = getenv("FAKE_CUDA");
	size_t len = strlen(function);

	return wanted && !strncmp(wanted, function, len) && wanted[len] == '='
		       ? atoi(wanted + len + 1)
		       : 0;
}

#define FAKE(name, ...)        \
	int name(__VA_ARGS__); \
	int name(__VA_ARGS__)

FAKE(cuInit, unsigned flags)
{
	return result(__func__) + (int)flags;
}

FAKE(cuDeviceGet, int *device, int number)
{
	*device = number;
	return result(__func__);
}

FAKE(cuDevicePrimaryCtxRetain, void **context, int device)
{
	*context = &fake_contexts;
	fake_contexts += !result(__func__);
	return result(__func__) + device;
}

FAKE(cuDevicePrimaryCtxRelease_v2, int device)
{
	fake_contexts--;
	return device;
}

FAKE(cuCtxSetCurrent, void *context)
{
	return context ? result(__func__) : 1;
}

static int allocate(const char *function, void **p, size_t bytes)
{
	if (result(function))
		return result(function);
	*p = malloc(bytes);
	fake_allocations++;
	return 0;
}

FAKE(cuMemAlloc_v2, uint64_t *address, size_t bytes)
{
	void *p = NULL;
	int error = allocate(__func__, &p, bytes);

	*address = (uintptr_t)p;
	return error;
}

#ifndef LACKS
FAKE(cuMemAllocManaged, uint64_t *address, size_t bytes, unsigned flags)
{
	void *p = NULL;
	int error = flags == 1 ? allocate(__func__, &p, bytes) : 1;

	*address = (uintptr_t)p;
	return error;
}
#endif

FAKE(cuMemHostAlloc, void **address, size_t bytes, unsigned flags)
{
	return flags == 2 ? allocate(__func__, address, bytes) : 1;
}

FAKE(cuMemsetD8_v2, uint64_t address, unsigned char byte, size_t bytes)
{
	if (!result(__func__))
		memset((void *)(uintptr_t)address, byte, bytes);
	return result(__func__);
}

FAKE(cuCtxSynchronize, void)
{
	return result(__func__);
}

FAKE(cuMemFree_v2, uint64_t address)
{
	free((void *)(uintptr_t)address);
	fake_allocations--;
	return 0;
}

FAKE(cuMemFreeHost, void *address)
{
	return cuMemFree_v2((uintptr_t)address);
}

FAKE(cuGetErrorName, int error, const char **name)
{
	*name = error == 2     ? "CUDA_ERROR_OUT_OF_MEMORY"
		: error == 100 ? "CUDA_ERROR_NO_DEVICE"
			       : NULL;
	return *name ? 0 : 1;
}
