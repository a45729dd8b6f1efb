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
static const char *find(
	char path[PATH_MAX], const char *in_build, const char *installed, const char *configured)
{
	return near_program(path, 1, in_build) || near_program(path, 0, installed) ? path
										   : configured;
}

const char *probe_path(void)
{
	static char path[PATH_MAX];

	return find(path, "probe/libringtap-probe.so", RINGTAP_TO_LIBDIR "/libringtap-probe.so",
		RINGTAP_LIBDIR "/libringtap-probe.so");
}

const char *pcap_path(void)
{
	static char path[PATH_MAX];

	return find(path, "pcap/libringtap-pcap.so", RINGTAP_TO_LIBDIR "/libringtap-pcap.so",
		RINGTAP_LIBDIR "/libringtap-pcap.so");
}

const char *pcap_shim_dir(void)
{
	static char path[PATH_MAX];

	return find(path, "pcap/shim", RINGTAP_TO_LIBDIR "/ringtap", RINGTAP_LIBDIR "/ringtap");
}

const char *host_path(void)
{
	static char path[PATH_MAX];

	return find(path, "host/ringtap-host", RINGTAP_TO_LIBEXECDIR "/ringtap-host",
		RINGTAP_LIBEXECDIR "/ringtap-host");
}

const char *trace_dir(void)
{
	static char path[PATH_MAX];

	return find(path, "cli/trace/scripts", RINGTAP_TO_DATADIR "/ringtap/trace",
		RINGTAP_DATADIR "/ringtap/trace");
}

const char *archive_decoder_path(void)
{
	static char path[PATH_MAX];

	return find(path, "archive/decoder/libringtap-archive.so",
		RINGTAP_TO_LIBDIR "/ringtap/libringtap-archive.so",
		RINGTAP_LIBDIR "/ringtap/libringtap-archive.so");
}

const char *archive_page_path(void)
{
	static char path[PATH_MAX];

	return find(path, "web/page.html", RINGTAP_TO_DATADIR "/ringtap/page.html",
		RINGTAP_DATADIR "/ringtap/page.html");
}

const char *archive_program_path(void)
{
	static char path[PATH_MAX];

	return near_program(path, 2, ".venv-archive/bin/ringtap-archive") ? path : NULL;
}
