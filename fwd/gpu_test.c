/* SPDX-License-Identifier: BSD-3-Clause */
/* Errors of the driver, by a library that has its names. What works is for a GPU:
 * e2e/fwd/test_gpu.py. */
#include <dlfcn.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gpu.h"
#include "base/util.h"

#define PAGE 65536u

static int of_fake(const char *name)
{
	void *handle = dlopen(FAKE_CUDA, RTLD_NOW | RTLD_NOLOAD);
	const int *value = handle ? dlsym(handle, name) : NULL;

	assert_non_null(value);
	dlclose(handle);
	return *value;
}

/* Nothing stays allocated, and the message of one line contains the texts. */
static void refused(enum memory_kind kind, const char *library, const char *fault, int expected,
	const char *const texts[2])
{
	struct memory m = {.kind = kind, .bytes = 3 * PAGE, .page_size = PAGE};
	int ret;

	setenv("FAKE_CUDA", fault, 1);
	ret = gpu_map(&m, library);
	if (ret != expected)
		fail_msg("%s: %d instead of %d: %s", fault, ret, expected, message_last());
	for (int i = 0; i < 2; i++)
		if (!strstr(message_last(), texts[i]))
			fail_msg("%s: printed: %s", fault, message_last());
	assert_null(strchr(message_last(), '\n'));
	assert_null(m.base);
	if (strcmp(library, FAKE_CUDA))
		return;
	assert_int_equal(of_fake("fake_contexts"), 0);
	assert_int_equal(of_fake("fake_allocations"), 0);
}

static void no_driver(void **state)
{
	refused(MEMORY_GPU_PINNED, "libcuda-of-nobody.so.1", "", -ENODEV,
		(const char *[]){"--pool-memory gpu-pinned: no GPU found: libcuda-of-nobody.so.1",
			"install NVIDIA's driver"});
}

static void a_driver_that_lacks_a_function(void **state)
{
	refused(MEMORY_GPU, FAKE_CUDA_LACKS, "", -ENOTSUP,
		(const char *[]){"has no cuMemAllocManaged", "install a newer driver"});
}

static void errors_of_the_driver(void **state)
{
	static const struct {
		enum memory_kind kind;
		const char *fault;
		int expected;
		const char *texts[2];
	} cases[] = {
		{MEMORY_GPU, "cuInit=100", -ENODEV,
			{"no GPU found: CUDA_ERROR_NO_DEVICE", "nvidia-smi"}},
		{MEMORY_GPU, "cuDeviceGet=101", -ENODEV, {"no GPU found: error 101", "nvidia-smi"}},
		{MEMORY_GPU, "cuDevicePrimaryCtxRetain=2", -ENODEV,
			{"OUT_OF_MEMORY", "nvidia-smi"}},
		{MEMORY_GPU, "cuCtxSetCurrent=3", -EIO, {"cannot use the GPU", "nvidia-smi"}},
		{MEMORY_GPU, "cuMemAlloc_v2=2", -ENOMEM,
			{"--pool-memory gpu: cannot allocate", "--pool-size"}},
		{MEMORY_GPU, "cuMemsetD8_v2=700", -EIO, {"error 700", "--pool-size"}},
		{MEMORY_GPU, "cuCtxSynchronize=700", -EIO, {"error 700", "--pool-size"}},
		{MEMORY_GPU_MANAGED, "cuMemAllocManaged=801", -EIO, {"gpu-managed", "error 801"}},
		{MEMORY_GPU_PINNED, "cuMemHostAlloc=2", -ENOMEM, {"gpu-pinned", "OUT_OF_MEMORY"}},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		refused(cases[i].kind, FAKE_CUDA, cases[i].fault, cases[i].expected,
			cases[i].texts);
}

/* Whole pages, aligned, filled with zeros, and released. */
static void pages(void **state)
{
	static const enum memory_kind kinds[] = {MEMORY_GPU, MEMORY_GPU_MANAGED, MEMORY_GPU_PINNED};

	unsetenv("FAKE_CUDA");
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		struct memory m = {.kind = kinds[i], .bytes = 2 * PAGE + 1, .page_size = PAGE};
		const char *p;

		assert_int_equal(gpu_map(&m, FAKE_CUDA), 0);
		assert_int_equal(m.bytes, 3 * PAGE);
		assert_int_equal((uintptr_t)m.base % PAGE, 0);
		p = m.base;
		assert_true(!p[0] && !memcmp(p, p + 1, m.bytes - 1));
		assert_int_equal(of_fake("fake_allocations"), 1);
		gpu_unmap(&m);
		assert_int_equal(of_fake("fake_allocations"), 0);
		assert_int_equal(of_fake("fake_contexts"), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_driver),
		cmocka_unit_test(a_driver_that_lacks_a_function),
		cmocka_unit_test(errors_of_the_driver),
		cmocka_unit_test(pages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
