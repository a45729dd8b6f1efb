/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs a program with the libpcap drop-in loaded. */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"
#include "target/capture_config.h"
#include "target/probe_path.h"
#include "base/util.h"

/* As env(1) and shells have it. */
enum { STATUS_CANNOT_RUN = 126, STATUS_NOT_FOUND = 127, STATUS_OURS = 125 };

struct run_options {
	bool copy;
	enum ringtap_tags tags;
	uint32_t sample;
};

static const struct option_def options[] = {
	{OPTION_TO(struct run_options, copy), OPTION_FLAG, 0, "copy", NULL, NULL, 0, 0,
		"Copy each packet: for programs that write into packets, such as arpwatch"},
	TAGS_OPTION(struct run_options, tags),
	SAMPLE_OPTION(struct run_options, sample),
};

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

static int set_sample(uint32_t n)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", n);
	return n > 1 ? setenv("RINGTAP_PCAP_SAMPLE", text, 1) : 0;
}

static int run(const struct command *self, int argc, char **argv)
{
	const char *library = pcap_path();
	struct run_options c = {.copy = false};
	int ret = options_parse(self, argc, argv, &c);

	if (ret <= 0)
		return ret ? STATUS_USAGE : STATUS_OK;
	if (sample_check("run", c.sample))
		return STATUS_USAGE;
	argv += optind;
	errno = 0;
	if (!argv[0])
		return message_fail(
			STATUS_USAGE, "run: no program is given; see 'ringtap run --help'");
	if (access(library, R_OK) || strpbrk(library, " :"))
		return message_fail(STATUS_OURS, "run: %s: %s; install ringtap", library,
			errno ? strerror(errno) : "no preloading from such a folder");
	if (prepend("LD_PRELOAD", library) || prepend("LD_LIBRARY_PATH", pcap_shim_dir()) ||
		(c.copy && setenv("RINGTAP_PCAP_COPY", "1", 1)) ||
		(c.tags && setenv("RINGTAP_PCAP_TAGS", "as-is", 1)) || set_sample(c.sample))
		return message_fail(
			STATUS_OURS, "run: cannot set the environment: %s", strerror(errno));
	signal(SIGPIPE, SIG_DFL); /* ignored for our own output */
	execvp(argv[0], argv);
	return message_fail(errno == ENOENT ? STATUS_NOT_FOUND : STATUS_CANNOT_RUN,
		"run: cannot start '%s': %s", argv[0], strerror(errno));
}

const struct command cmd_run = {
	.name = "run",
	.summary = "run a libpcap program on the ports of DPDK applications",
	.operands = "[--] PROGRAM [ARGUMENT...]",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.run = run,
};
