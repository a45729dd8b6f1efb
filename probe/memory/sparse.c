/* SPDX-License-Identifier: BSD-3-Clause */
#include <stddef.h>
#include <sys/mman.h>

#include "common/pages.h"
#include "sparse.h"

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
	int ret = rt_pages_populate(p, size);

	if (!ret)
		(void)mlock(p, size);
	return ret;
}
