/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <inttypes.h>
#include <linux/mman.h>
#include <string.h>
#include <sys/prctl.h>

#include "memory_map.h"
#include "base/util.h"
#include "common/calls.h"

#ifndef PR_SET_VMA
#define PR_SET_VMA           0x53564d41
#define PR_SET_VMA_ANON_NAME 0
#endif
#define HUGE_2M (2u << 20)

static int map_huge(struct memory *m)
{
	int size = m->page_size == HUGE_2M ? MAP_HUGE_2MB : MAP_HUGE_1GB;

	m->base = mmap(NULL, m->bytes, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | size, -1, 0);
	if (m->base == MAP_FAILED) {
		m->base = NULL;
		return message_fail(-ENOMEM,
			"--pool-memory huge: %" PRIu64
			" pages of %s are needed, but not free; reserve them "
			"with 'echo N >/sys/kernel/mm/hugepages/hugepages-%" PRIu64
			"kB/nr_hugepages'",
			m->bytes / m->page_size, m->page_size == HUGE_2M ? "2 MiB" : "1 GiB",
			m->page_size >> 10);
	}
	m->mapping = m->base;
	m->mapping_bytes = m->bytes;
	memset(m->base, 0, m->bytes);
	return 0;
}

/* Guard areas around the mapping keep the kernel from merging it with a neighbour, whose pages
 * smaps would then include. */
static int map_guarded(struct memory *m)
{
	m->mapping_bytes = m->bytes + 2 * HUGE_2M;
	m->mapping = mmap(NULL, m->mapping_bytes, PROT_NONE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (m->mapping == MAP_FAILED) {
		m->mapping = NULL;
		return -ENOMEM;
	}
	m->base = (void *)(((uintptr_t)m->mapping + HUGE_2M) & ~(uintptr_t)(HUGE_2M - 1));
	if ((char *)m->base == (char *)m->mapping)
		m->base = (char *)m->base + HUGE_2M;
	if (mprotect(m->base, m->bytes, PROT_READ | PROT_WRITE))
		return -errno;
	/* Fails without harm on kernels that do not support names of anonymous memory. */
	(void)prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, m->base, m->bytes, "ringtap-fwd pool");
	return 0;
}

static int map_ordinary(struct memory *m)
{
	int ret = map_guarded(m);

	if (!ret &&
		madvise(m->base, m->bytes,
			m->kind == MEMORY_THP ? MADV_HUGEPAGE : MADV_NOHUGEPAGE) &&
		m->kind == MEMORY_THP)
		ret = -errno;
	if (ret)
		return message_fail(ret, "--pool-memory %s: %s%s", memory_names[m->kind],
			strerror(-ret),
			ret == -EINVAL ? "; this kernel has no transparent huge pages" : "");
	memset(m->base, 0, m->bytes);
	/* If no huge page was free at the page fault, or the kernel's setting is "never". */
	if (m->kind == MEMORY_THP)
		(void)madvise(m->base, m->bytes, MADV_COLLAPSE);
	return 0;
}

int memory_map(struct memory *m)
{
	m->bytes = (m->bytes + m->page_size - 1) / m->page_size * m->page_size;
	return m->kind == MEMORY_HUGE ? map_huge(m) : map_ordinary(m);
}

void memory_unmap(struct memory *m)
{
	if (m->mapping)
		munmap(m->mapping, m->mapping_bytes);
	m->mapping = NULL;
}

int memory_verify(struct memory *m)
{
	uint64_t kb = m->bytes >> 10;
	const struct smaps *s = &m->smaps;
	int ret = smaps_self(m->base, m->bytes, &m->smaps);

	if (ret)
		return message_fail(ret, "--pool-memory %s: cannot read /proc/self/smaps: %s",
			memory_names[m->kind], strerror(-ret));
	if (m->kind == MEMORY_4K && (s->anon_huge_kb || s->page_kb != 4 || s->rss_kb < kb))
		message_print("--pool-memory 4k: %" PRIu64 " of %" PRIu64
			      " KiB are in huge pages, and the smallest page has %" PRIu64
			      " KiB; the kernel does not provide 4 KiB pages",
			s->anon_huge_kb, kb, s->page_kb);
	else if (m->kind == MEMORY_THP && s->anon_huge_kb < kb)
		message_print(
			"--pool-memory thp: only %" PRIu64 " of %" PRIu64
			" KiB are in huge pages; free "
			"memory, and set /sys/kernel/mm/transparent_hugepage/enabled to madvise",
			s->anon_huge_kb, kb);
	else if (m->kind == MEMORY_HUGE && s->page_kb != m->page_size >> 10)
		message_print("--pool-memory huge: pages have %" PRIu64 " KiB instead of %" PRIu64,
			s->page_kb, m->page_size >> 10);
	else
		return 0;
	return -EINVAL;
}
