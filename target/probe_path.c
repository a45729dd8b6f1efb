/* SPDX-License-Identifier: BSD-3-Clause */
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "dirs.h"
#include "probe_path.h"

/* Path of name, up folders above that of this program. False: nothing is there. */
static bool near_program(char path[PATH_MAX], int up, const char *name)
{
	char self[PATH_MAX - 128];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (n < 0)
		return false;
	self[n] = '\0';
	for (int i = 0; i <= up; i++) {
		char *slash = strrchr(self, '/');

		if (!slash)
			return false;
		*slash = '\0';
	}
	return snprintf(path, PATH_MAX, "%s/%s", self, name) < PATH_MAX && !access(path, F_OK);
}

/* In a build folder cli/ringtap is next to the libraries' folders. An installation may have been
 * moved, or be staged in another root: look relative to the program before the configured path. */
#define PLACE(function, in_build, dir, name)                                        \
	const char *function(void)                                                  \
	{                                                                           \
		static char path[PATH_MAX];                                         \
                                                                                    \
		return near_program(path, 1, in_build) ||                           \
				       near_program(path, 0, RINGTAP_TO_##dir name) \
			       ? path                                               \
			       : RINGTAP_##dir name;                                \
	}

PLACE(probe_path, "probe/libringtap-probe.so", LIBDIR, "/libringtap-probe.so")
PLACE(pcap_path, "pcap/libringtap-pcap.so", LIBDIR, "/libringtap-pcap.so")
PLACE(pcap_shim_dir, "pcap/shim", LIBDIR, "/ringtap")
PLACE(host_path, "host/ringtap-host", LIBEXECDIR, "/ringtap-host")
PLACE(trace_dir, "cli/trace/scripts", DATADIR, "/ringtap/trace")
PLACE(archive_decoder_path, "archive/decoder/libringtap-archive.so", LIBDIR,
	"/ringtap/libringtap-archive.so")
PLACE(archive_page_path, "web/page.html", DATADIR, "/ringtap/page.html")

const char *archive_program_path(void)
{
	static char path[PATH_MAX];

	return near_program(path, 2, ".venv-archive/bin/ringtap-archive") ? path : NULL;
}
