/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pages.h"
#include "test_pages.h"

static char root[64], proc[80], meminfo[96];

void test_available(uint64_t kib)
{
	FILE *f;

	if (!root[0]) {
		strcpy(root, "/tmp/ringtap-machine.XXXXXX");
		if (!mkdtemp(root))
			abort();
		snprintf(proc, sizeof(proc), "%s/proc", root);
		snprintf(meminfo, sizeof(meminfo), "%s/meminfo", proc);
		if (mkdir(proc, 0700))
			abort();
	}
	f = fopen(meminfo, "w");
	if (!f || fprintf(f, "MemAvailable: %llu kB\n", (unsigned long long)kib) < 0 || fclose(f))
		abort();
	rt_pages_root = root;
}

void test_available_end(void)
{
	rt_pages_root = "";
	unlink(meminfo);
	rmdir(proc);
	rmdir(root);
	root[0] = 0;
}
