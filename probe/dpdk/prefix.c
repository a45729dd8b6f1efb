/* SPDX-License-Identifier: BSD-3-Clause */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <rte_eal.h>

#include "common/ipc.h"
#include "prefix.h"

#define OPTION        "--file-prefix"
#define DEFAULT       "rte"
#define ARGUMENTS_MAX 16384

/* EAL that could not make its folder does not tell the prefix. */
static void from_arguments(char prefix[RT_NAME_LEN])
{
	char args[ARGUMENTS_MAX];
	int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
	ssize_t len = fd < 0 ? 0 : read(fd, args, sizeof(args) - 1);
	const size_t option = strlen(OPTION);

	if (fd >= 0)
		close(fd);
	args[len > 0 ? len : 0] = '\0';
	rt_str_set(prefix, RT_NAME_LEN, DEFAULT);
	for (ssize_t at = 0; at < len; at += (ssize_t)strlen(args + at) + 1) {
		if (strncmp(args + at, OPTION, option))
			continue;
		if (args[at + (ssize_t)option] == '=')
			rt_str_set(prefix, RT_NAME_LEN, args + at + option + 1);
		else if (!args[at + (ssize_t)option] && at + (ssize_t)option + 1 < len)
			rt_str_set(prefix, RT_NAME_LEN, args + at + option + 1);
	}
}

void rt_prefix(char prefix[RT_NAME_LEN])
{
	const char *dir = rte_eal_get_runtime_dir(), *slash = dir ? strrchr(dir, '/') : NULL;

	if (slash)
		rt_str_set(prefix, RT_NAME_LEN, slash + 1);
	else
		from_arguments(prefix);
}
