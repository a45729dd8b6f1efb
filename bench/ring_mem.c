/* SPDX-License-Identifier: BSD-3-Clause */
#include "ring_mem.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/calls.h"
#define HUGE_BYTES ((size_t)2 << 20)

/* Address space for both mappings, aligned so that huge pages can be used for either. */
static uint8_t *reserve(size_t bytes)
{
	uint8_t *p = mmap(NULL, bytes + HUGE_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return NULL;
	size_t skip = -(uintptr_t)p & (HUGE_BYTES - 1);
	if (skip != 0)
		munmap(p, skip);
	munmap(p + skip + bytes, HUGE_BYTES - skip);
	return p + skip;
}

/* Bytes of the mapping at addr that huge pages back, according to the kernel. */
static size_t huge_bytes(const void *addr)
{
	FILE *f = fopen("/proc/self/smaps", "re");
	if (f == NULL)
		return 0;
	char line[256];
	size_t kb, total = 0;
	unsigned long from, to;
	int here = 0;
	while (fgets(line, sizeof(line), f) != NULL) {
		if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
			here = from == (uintptr_t)addr;
		else if (here && (sscanf(line, "ShmemPmdMapped: %zu kB", &kb) == 1 ||
					 sscanf(line, "Shared_Hugetlb: %zu kB", &kb) == 1 ||
					 sscanf(line, "Private_Hugetlb: %zu kB", &kb) == 1))
			total += kb << 10;
	}
	fclose(f);
	return total;
}

static void populate(uint8_t *p, size_t bytes, enum ring_pages pages)
{
	if (pages == RING_PAGES_THP)
		madvise(p, bytes, MADV_HUGEPAGE);
	if (madvise(p, bytes, MADV_POPULATE_WRITE) != 0)
		memset(p, 0, bytes);
	/* Unlike faults, this works where shmem_enabled is "never". */
	if (pages == RING_PAGES_THP)
		madvise(p, bytes, MADV_COLLAPSE);
}

static int map_twice(struct ring_mem *mem, enum ring_pages pages)
{
	mem->data = reserve(2 * mem->size);
	if (mem->data == NULL)
		return -errno;
	for (int i = 0; i < 2; i++) {
		uint8_t *at = mem->data + i * mem->size;
		if (mmap(at, mem->size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, mem->fd,
			    0) == MAP_FAILED) {
			int err = -errno;
			munmap(mem->data, 2 * mem->size);
			return err;
		}
	}
	for (int i = 0; i < 2; i++)
		populate(mem->data + i * mem->size, mem->size, pages);
	mem->huge = huge_bytes(mem->data);
	return 0;
}

int ring_mem_open(struct ring_mem *mem, size_t size, enum ring_pages pages)
{
	unsigned flags = MFD_CLOEXEC | (pages == RING_PAGES_HUGETLB ? MFD_HUGETLB : 0);

	mem->size = size;
	mem->fd = memfd_create("ringtap-bench", flags);
	if (mem->fd < 0)
		return -errno;
	int err = ftruncate(mem->fd, (off_t)size) == 0 ? map_twice(mem, pages) : -errno;
	if (err != 0)
		close(mem->fd);
	return err;
}

int ring_mem_share(struct ring_mem *view, const struct ring_mem *mem, enum ring_pages pages)
{
	view->size = mem->size;
	view->fd = dup(mem->fd);
	if (view->fd < 0)
		return -errno;
	int err = map_twice(view, pages);
	if (err != 0)
		close(view->fd);
	return err;
}

void ring_mem_close(struct ring_mem *mem)
{
	munmap(mem->data, 2 * mem->size);
	close(mem->fd);
}
