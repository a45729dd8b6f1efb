/* SPDX-License-Identifier: BSD-3-Clause */
/* A program without DPDK, which is in a plugin that it loads for itself alone, as VPP does: the
 * file beside it with the same name and .so. */
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	int (*run)(int argc, char **argv) = NULL;
	char path[PATH_MAX];
	void *plugin;

	snprintf(path, sizeof(path), "%s.so", argv[0]);
	plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (plugin)
		run = (int (*)(int, char **))dlsym(plugin, "main");
	if (run)
		return run(argc, argv);
	fprintf(stderr, "rt_host: %s\n", dlerror());
	return 1;
}
