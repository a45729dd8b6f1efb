/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "pages.h"

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

static bool advice_is_taken(void)
{
	FILE *f = fopen("/sys/kernel/mm/transparent_hugepage/shmem_enabled", "re");
	char line[128] = "";
	bool taken;

	if (!f)
		return true; /* no such pages at all */
	taken = fgets(line, sizeof(line), f) && !strstr(line, "[never]") && !strstr(line, "[deny]");
	fclose(f);
	return taken;
}

void rt_pages_collapse(void *p, size_t size)
{
	if (size >= RT_HUGE_PAGE && !advice_is_taken())
		(void)madvise(p, size, MADV_COLLAPSE);
}

uint64_t rt_pages_available(void)
{
	FILE *f = fopen("/proc/meminfo", "re");
	unsigned long long kib;
	uint64_t bytes = UINT64_MAX;
	char line[128];

	if (!f)
		return bytes;
	while (bytes == UINT64_MAX && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "MemAvailable: %llu kB", &kib) == 1)
			bytes = kib << 10;
	}
	fclose(f);
	return bytes;
}
