/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "smaps.h"

static void field(struct smaps *s, const char *line)
{
	uint64_t kb;
	char name[32];

	if (sscanf(line, "%31[A-Za-z_]: %" SCNu64 " kB", name, &kb) != 2)
		return;
	if (!strcmp(name, "Size"))
		s->size_kb += kb;
	else if (!strcmp(name, "Rss"))
		s->rss_kb += kb;
	else if (!strcmp(name, "AnonHugePages"))
		s->anon_huge_kb += kb;
	else if (!strcmp(name, "Private_Hugetlb") || !strcmp(name, "Shared_Hugetlb"))
		s->hugetlb_kb += kb;
	else if (!strcmp(name, "KernelPageSize") && (!s->page_kb || kb < s->page_kb))
		s->page_kb = kb;
}

int smaps_read(FILE *f, uint64_t address, uint64_t bytes, struct smaps *out)
{
	uint64_t from, to;
	bool inside = false;
	char line[4096];

	*out = (struct smaps){0};
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " ", &from, &to) == 2) {
			inside = from < address + bytes && to > address;
			out->mappings += inside;
		} else if (inside) {
			field(out, line);
		}
	}
	return ferror(f) ? -EIO : out->mappings ? 0 : -ENOENT;
}

int smaps_self(const void *address, uint64_t bytes, struct smaps *out)
{
	FILE *f = fopen("/proc/self/smaps", "re");
	int ret;

	if (!f)
		return -errno;
	ret = smaps_read(f, (uintptr_t)address, bytes, out);
	fclose(f);
	return ret;
}
