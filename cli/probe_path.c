/* SPDX-License-Identifier: BSD-3-Clause */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "probe_path.h"

#define PROBE "libringtap-probe.so"

const char *probe_path(void)
{
	static char path[PATH_MAX];
	char self[PATH_MAX - 64];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *slash;

	if (!access(RINGTAP_LIBDIR "/" PROBE, F_OK) || n < 0)
		return RINGTAP_LIBDIR "/" PROBE;
	self[n] = '\0';
	/* In a build folder: cli/ringtap stands next to probe/. */
	for (int up = 0; up < 2; up++) {
		slash = strrchr(self, '/');
		if (!slash)
			return RINGTAP_LIBDIR "/" PROBE;
		*slash = '\0';
	}
	snprintf(path, sizeof(path), "%s/probe/" PROBE, self);
	return access(path, F_OK) ? RINGTAP_LIBDIR "/" PROBE : path;
}
