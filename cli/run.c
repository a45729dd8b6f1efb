/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs a program with the libpcap drop-in loaded. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"
#include "probe_path.h"
#include "base/util.h"

/* As env(1) and shells have it. */
enum { STATUS_CANNOT_RUN = 126, STATUS_NOT_FOUND = 127, STATUS_OURS = 125 };

enum { OPT_COPY = 1 };

static const struct option_def options[] = {
	{OPT_COPY, OPTION_FLAG, 0, "copy", NULL, NULL, 0, 0,
		"Copy each packet: for programs that write into packets, such as arpwatch"},
};

/* clang-format off: it would break the texts at odd places */
static const struct section sections[] = {
	{"DESCRIPTION",
		"ringtap run starts a program that uses libpcap. The program can capture on the "
		"ports of running DPDK applications as on interfaces of the kernel. It need not "
		"be changed, and nothing is installed or removed.\n\n"
		"The port PORT of the application APP (its EAL --file-prefix) is the interface "
		"ringtap:APP:PORT. PORT is a name (of ethdev or Open vSwitch) or a number. "
		"Several ports are joined by +, as in ringtap:APP:0+1 or ringtap:APP1:0+APP2:0, "
		"and merged in the order of time. ringtap:APP means all ports, also those that "
		"are added later. 'tcpdump -D' and the like list them.\n\n"
		"Programs that accept 15 characters only, or that make requests to the kernel "
		"for the interface, need an alias: rt0p1 is port 1 of the first application that "
		"'ringtap list' prints, rt0 is all of its ports. 'ringtap list --json' and "
		"'tcpdump -D' show the aliases. They change when applications start or end.\n\n"
		"The first word that is not an option is the program; all words after it are the "
		"program's. The environment variables LD_PRELOAD and LD_LIBRARY_PATH are "
		"extended for the program and its children.\n"},
	SECTION_OPEN_VSWITCH,
	{"EXAMPLES", "Print, record, analyse packets:\n\n"
		     "  ringtap run -- tcpdump -nn -i ringtap:ovs:p0 tcp port 80\n"
		     "  ringtap run -- dumpcap -i ringtap:ovs:p0 -w out.pcapng\n"
		     "  ringtap run -- tshark -i ringtap:ovs\n\n"
		     "List the interfaces:\n\n"
		     "  ringtap run -- tcpdump -D\n\n"
		     "A program that writes into packets, and one that needs an alias:\n\n"
		     "  ringtap run --copy -- arpwatch -i ringtap:ovs:p0\n"
		     "  ringtap run -- argus -i rt0p0 -w flows\n"},
	{"LIMITS", "Programs that are linked statically, and those that gain privileges when "
		   "they are started (set-user-ID, or file capabilities such as dumpcap's on "
		   "many systems) ignore preloaded libraries, except for root: run those as "
		   "root. A profile of AppArmor or SELinux can deny a program the application's "
		   "socket. Packets are mapped read-only: without --copy, a program that writes "
		   "into them is killed. Sending fails. More in docs/pcap.md.\n"},
	{"EXIT STATUS",
		"That of the program; 127 if it was not found, 126 if it could not be started, "
		"125 if the libpcap drop-in is missing, 2 for a wrong command line.\n"},
};
/* clang-format on */

/* Puts path in front of what the variable holds. */
static int prepend(const char *name, const char *path)
{
	const char *old = getenv(name);
	char *value;
	int ret;

	if (!old || !*old)
		return setenv(name, path, 1);
	if (asprintf(&value, "%s:%s", path, old) < 0)
		return -1;
	ret = setenv(name, value, 1);
	free(value);
	return ret;
}

static int set(void *ctx, int id, const struct option_value *v)
{
	*(bool *)ctx = true;
	return 0;
}

static int run(const struct command *self, int argc, char **argv)
{
	const char *library = pcap_path();
	bool copy = false;
	int ret = options_parse(self, argc, argv, &copy);

	if (ret <= 0)
		return ret ? STATUS_USAGE : STATUS_OK;
	argv += optind;
	errno = 0;
	if (!argv[0]) {
		message_print("run: no program is given; see 'ringtap run --help'");
		return STATUS_USAGE;
	}
	if (access(library, R_OK) || strpbrk(library, " :")) {
		message_print("run: %s: %s; install ringtap", library,
			errno ? strerror(errno) : "no preloading from such a folder");
		return STATUS_OURS;
	}
	if (prepend("LD_PRELOAD", library) || prepend("LD_LIBRARY_PATH", pcap_shim_dir()) ||
		(copy && setenv("RINGTAP_PCAP_COPY", "1", 1))) {
		message_print("run: cannot set the environment: %s", strerror(errno));
		return STATUS_OURS;
	}
	execvp(argv[0], argv);
	message_print("run: cannot start '%s': %s", argv[0], strerror(errno));
	return errno == ENOENT ? STATUS_NOT_FOUND : STATUS_CANNOT_RUN;
}

const struct command cmd_run = {
	.name = "run",
	.summary = "run a libpcap program on the ports of DPDK applications",
	.operands = "[--] PROGRAM [ARGUMENT...]",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.sections = sections,
	.section_count = sizeof(sections) / sizeof(sections[0]),
	.set = set,
	.run = run,
};
