/* SPDX-License-Identifier: BSD-3-Clause */
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "probe_path.h"

/* In a build folder cli/ringtap stands next to the libraries' folders. False: not there. */
static bool in_build(char path[PATH_MAX], const char *name)
{
	char self[PATH_MAX - 64];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (n < 0)
		return false;
	self[n] = '\0';
	for (int up = 0; up < 2; up++) {
		char *slash = strrchr(self, '/');

		if (!slash)
			return false;
		*slash = '\0';
	}
	snprintf(path, PATH_MAX, "%s/%s", self, name);
	return !access(path, F_OK);
}

const char *probe_path(void)
{
	static char path[PATH_MAX];

	return in_build(path, "probe/libringtap-probe.so") ? path
							   : RINGTAP_LIBDIR "/libringtap-probe.so";
}

const char *pcap_path(void)
{
	static char path[PATH_MAX];

	return in_build(path, "pcap/libringtap-pcap.so") ? path
							 : RINGTAP_LIBDIR "/libringtap-pcap.so";
}

const char *pcap_shim_dir(void)
{
	static char path[PATH_MAX];

	return in_build(path, "pcap/shim") ? path : RINGTAP_LIBDIR "/ringtap";
}

const char *host_path(void)
{
	static char path[PATH_MAX];

	return in_build(path, "host/ringtap-host") ? path : RINGTAP_LIBEXECDIR "/ringtap-host";
}

const char *trace_dir(void)
{
	static char path[PATH_MAX];

	return in_build(path, "trace") ? path : RINGTAP_DATADIR "/ringtap/trace";
}
