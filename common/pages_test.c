/* SPDX-License-Identifier: BSD-3-Clause */
/* How much memory is available, from files with the contents of the kernel's. */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pages.h"
#include "base/test_util.h"

#define MIB (UINT64_C(1) << 20)

static int set_up(void **state)
{
	test_folder_enter();
	rt_pages_root = ".";
	return 0;
}

static int tear_down(void **state)
{
	rt_pages_root = "";
	test_folder_leave();
	return 0;
}

/* Writes a file and makes its folders. */
static void put(const char *path, const char *text)
{
	char at[256];

	snprintf(at, sizeof(at), "%s", path);
	for (char *slash = strchr(at, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = 0;
		(void)mkdir(at, 0700);
		*slash = '/';
	}
	test_write(path, text, strlen(text));
}

static void put_mib(const char *path, uint64_t mib)
{
	char text[32];

	snprintf(text, sizeof(text), "%llu\n", (unsigned long long)(mib * MIB));
	put(path, text);
}

static void test_memory_of_the_machine(void **state)
{
	assert_int_equal(rt_pages_available(), UINT64_MAX);
	put("proc/meminfo", "MemTotal:  9000 kB\nMemAvailable:    5120 kB\nMemFree: 1 kB\n");
	assert_int_equal(rt_pages_available(), 5 * MIB);
}

#define V2 "sys/fs/cgroup/"

static void test_group_of_version_2(void **state)
{
	put("proc/meminfo", "MemAvailable: 1048576 kB\n");
	put("proc/self/cgroup", "0::/a/b\n");
	put_mib(V2 "a/b/memory.max", 100);
	put_mib(V2 "a/b/memory.current", 40);
	assert_int_equal(rt_pages_available(), 60 * MIB);
	assert_int_equal(rt_pages_limit(), 100 * MIB);
	put_mib(V2 "a/b/memory.current", 101);
	assert_int_equal(rt_pages_available(), 0);
	/* The machine has less. */
	put_mib(V2 "a/b/memory.max", 4096);
	assert_int_equal(rt_pages_available(), 1024 * MIB);
	put(V2 "a/b/memory.max", "max\n");
	assert_int_equal(rt_pages_available(), 1024 * MIB);
	assert_int_equal(rt_pages_limit(), UINT64_MAX);
}

static void test_limit_of_a_parent(void **state)
{
	put("proc/self/cgroup", "0::/a/b\n");
	put(V2 "a/b/memory.max", "max\n");
	put_mib(V2 "a/b/memory.current", 5);
	put_mib(V2 "a/memory.max", 90);
	put_mib(V2 "a/memory.current", 50);
	assert_int_equal(rt_pages_available(), 40 * MIB);
	put_mib(V2 "a/b/memory.max", 25);
	assert_int_equal(rt_pages_available(), 20 * MIB);
	assert_int_equal(rt_pages_limit(), 25 * MIB);
}

/* In a container the group is the root, and its path that of the host. */
static void test_group_of_a_container_and_its_page_cache(void **state)
{
	char stat[128];

	put("proc/self/cgroup", "0::/a/b\n");
	put_mib(V2 "memory.max", 80);
	put_mib(V2 "memory.current", 60);
	assert_int_equal(rt_pages_available(), 20 * MIB);
	snprintf(stat, sizeof(stat), "anon 1\ninactive_file %llu\nactive_file %llu\n",
		(unsigned long long)(20 * MIB), (unsigned long long)(10 * MIB));
	put(V2 "memory.stat", stat);
	assert_int_equal(rt_pages_available(), 50 * MIB);
	/* More cache than is charged, as the counts are of different times. */
	put_mib(V2 "memory.current", 29);
	assert_int_equal(rt_pages_available(), 80 * MIB);
}

#define V1 "sys/fs/cgroup/memory/"

static void test_groups_of_version_1(void **state)
{
	put("proc/self/cgroup", "9:cpu,memory:/x/y\n3:pids:/x\n0::/\n");
	put_mib(V1 "x/y/memory.limit_in_bytes", 64);
	put_mib(V1 "x/y/memory.usage_in_bytes", 30);
	assert_int_equal(rt_pages_available(), 34 * MIB);
	put(V1 "x/y/memory.stat",
		"active_file 1\ntotal_active_file 1048576\ntotal_inactive_file 0\n");
	assert_int_equal(rt_pages_available(), 35 * MIB);
	put_mib(V1 "x/memory.limit_in_bytes", 20);
	put_mib(V1 "x/memory.usage_in_bytes", 17);
	assert_int_equal(rt_pages_available(), 3 * MIB);
	assert_int_equal(rt_pages_limit(), 20 * MIB);
	/* No file of another controller counts. */
	put("proc/self/cgroup", "3:pids:/x/y\n");
	assert_int_equal(rt_pages_available(), UINT64_MAX);
}

static void test_lines_that_are_no_groups(void **state)
{
	put("proc/self/cgroup", "\nnonsense\n0:\n0::/a\n");
	put_mib(V2 "a/memory.max", 9);
	put_mib(V2 "a/memory.current", 2);
	assert_int_equal(rt_pages_available(), 7 * MIB);
}

/* Pages at the edges, too, and without a change of what is there. */
static void test_populated_pages_are_resident(void **state)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), size = 5 * page;
	char *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	unsigned char there[5];

	assert_ptr_not_equal(p, MAP_FAILED);
	p[2 * page] = 'x';
	assert_int_equal(rt_pages_populate(p + 2 * page - 1, 2), 0);
	assert_int_equal(mincore(p, size, there), 0);
	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(there[i] & 1, i == 1 || i == 2);
	assert_int_equal(p[2 * page], 'x');
	assert_int_equal(munmap(p, size), 0);
	assert_true(rt_pages_populate(p, size) < 0);
}

#define with_files(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_files(test_memory_of_the_machine),
		with_files(test_group_of_version_2),
		with_files(test_limit_of_a_parent),
		with_files(test_group_of_a_container_and_its_page_cache),
		with_files(test_groups_of_version_1),
		with_files(test_lines_that_are_no_groups),
		cmocka_unit_test(test_populated_pages_are_resident),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
