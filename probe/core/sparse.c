/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/atomics.h"
#include "sparse.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

void *rt_sparse_map(int fd, uint64_t size)
{
	int flags = fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE : MAP_SHARED;
	/* mlockall(MCL_FUTURE) populates neither a mapping without access rights nor one that is
	 * unlocked when it gets them. */
	void *p = mmap(NULL, size, PROT_NONE, flags, fd, 0);

	if (p == MAP_FAILED)
		return NULL;
	(void)munlock(p, size);
	/* A huge page would populate 2 MiB where a few kilobytes are needed. */
	(void)madvise(p, size, MADV_NOHUGEPAGE);
	if (mprotect(p, size, PROT_READ | PROT_WRITE)) {
		munmap(p, size);
		return NULL;
	}
	return p;
}

int rt_sparse_populate(void *p, uint64_t size)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), begin = (uintptr_t)p & ~(page - 1);
	uintptr_t end = ((uintptr_t)p + size + page - 1) & ~(page - 1);

	if (madvise((void *)begin, end - begin, MADV_POPULATE_WRITE)) {
		if (errno == ENOMEM || errno == EFAULT)
			return -ENOMEM;
		/* A kernel before 5.14. */
		for (uintptr_t at = begin; at < end; at += page)
			rt_fetch_or((uint8_t *)at, 0);
	}
	(void)mlock((void *)begin, end - begin);
	return 0;
}
