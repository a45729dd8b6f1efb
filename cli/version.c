/* SPDX-License-Identifier: BSD-3-Clause */
#include <dirent.h>
#include <lz4.h>
#include <pcap/pcap.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "base/child.h"
#include "base/util.h"
#include "common/commit.h"
#include "ringtap/reader.h"
#include "target/probe_path.h"
#include "version.h"

static int is_object(const struct dirent *e)
{
	unsigned abi;
	int end = 0;

	return sscanf(e->d_name, "probe-abi%u.so%n", &abi, &end) == 1 && end && !e->d_name[end];
}

/* "23, 25", of the objects beside the plugin. */
static void print_abis(void)
{
	const char *plugin = probe_path();
	struct dirent **found;
	char *folder = NULL, list[256] = "";
	int n = asprintf(&folder, "%.*s/ringtap", (int)(strrchr(plugin, '/') - plugin), plugin) < 0
			? -1
			: scandir(folder, &found, is_object, versionsort);

	for (int i = 0; i < n; i++) {
		char *number = found[i]->d_name + strlen("probe-abi");

		number[strcspn(number, ".")] = '\0';
		text_list_add(list, sizeof(list), number);
		free(found[i]);
	}
	if (n >= 0)
		free(found);
	free(folder);
	printf("probe: %s, for DPDK's ABI %s\n", plugin, *list ? list : "none");
}

static void print_tracers(void)
{
	static const char *const programs[] = {"bpftrace", "lttng"};
	char list[64] = "";

	for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++)
		if (child_found(programs[i]))
			text_list_add(list, sizeof(list), programs[i]);
	printf("tracers: %s\n", *list ? list : "none installed");
}

void version_print(void)
{
	printf("ringtap %s (%s)\n", ringtap_version(), RINGTAP_COMMIT);
	print_abis();
	printf("libraries: %s, zstd %s, lz4 %s, io_uring\n", pcap_lib_version(),
		ZSTD_versionString(), LZ4_versionString());
	print_tracers();
}
