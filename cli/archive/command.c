/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs ringtap-archive, a Python program with an environment of its own. The table is for help, man
 * page and completion: e2e/archive/test_options.py compares it with what the program takes. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"
#include "cli/commands.h"
#include "target/probe_path.h"

#define PROGRAM "ringtap-archive"

/* clang-format off */
#define FLAG(name, help)                {OPTION_SET(1), OPTION_FLAG, 0, name, NULL, NULL, 0, 0, help}
#define TEXT(name, arg, help)           {OPTION_SET(1), OPTION_TEXT, 0, name, arg, NULL, 0, 0, help}
#define CHOICE(name, choices, help)     {OPTION_SET(1), OPTION_CHOICE, 0, name, choices, choices, 0, 0, help}
#define PATHS(letter, name, arg, help)  {OPTION_SET(1), OPTION_FILE, letter, name, arg, NULL, 0, 0, help}
#define HEADING(text)                   {.kind = OPTION_HEADING, .help = text}

static const struct option_def options[] = {
	PATHS('d', "archive", "ARCHIVE", "The archive's folder"),
	TEXT("from", "TIME", "Packets and parts from this time on: 2026-11-24T10:00:00 (UTC), "
		"@SECONDS since 1970, or -2h (before now)"),
	TEXT("to", "TIME", "Up to this time, without it"),
	TEXT("recorder", "NAME", "Of this recorder only; may be given several times. ingest: the "
		"recorder's name in the archive (default: this host's)"),
	TEXT("where", "SQL", "Only packets for which this is true, for example 'dst_port = 443': a "
		"condition on the view packets"),
	TEXT("limit", "N", "At most N rows (default: 10; of hops --lost: 100)"),
	CHOICE("engine", "duckdb|spark", "What computes (default: duckdb)"),
	TEXT("master", "URL", "Spark's cluster, for example spark://HOST:7077 (default: local)"),
	FLAG("json", "Print JSON"),
	{OPTION_SET(1), OPTION_FLAG, 'q', "quiet", NULL, NULL, 0, 0, "Print only errors"},
	{OPTION_SET(1), OPTION_FLAG, 'g', NULL, NULL, NULL, 0, 0,
		"Let the group read the file (mode 0640 instead of 0600); ingest: a new archive"},
	FLAG("shared", "ingest, prune, verify, compact: change an archive that belongs to another "
		"user, or that others write, too; they are trusted"),
	HEADING("ingest FILE...: add recordings, pcapng or pcap, compressed or not"),
	FLAG("lean", "An index without TCP sequence numbers and IP ids"),
	FLAG("no-compress", "Keep pcapng files as they are"),
	FLAG("remove", "Remove each file once it is in the archive"),
	PATHS(0, "watch", "DIR", "Add the files of DIR, and those to come when they are closed, "
		"until Ctrl-C"),
	TEXT("follow", "APP", "Record the DPDK application APP with 'ringtap record' into the "
		"archive, until Ctrl-C; options of record stand behind --"),
	TEXT("seconds", "N", "With --follow: a file every N seconds (default: 60)"),
	HEADING("query SQL: answer a question"),
	FLAG("csv", "Print CSV"),
	PATHS(0, "arrow", "FILE", "Write an Arrow file; -: an Arrow stream to standard output"),
	HEADING("fetch [FILTER]: write packets to a pcapng file"),
	PATHS('w', "write", "FILE", "The file to write; -: standard output. Also of generate"),
	FLAG("wireshark", "Start Wireshark, and write to it"),
	TEXT("packets", "N", "Stop after N packets. top: rank by packets (no value); generate, "
		"bench: received packets in a file"),
	HEADING("hops, report: follow packets from recorder to recorder"),
	TEXT("between", "NAME,NAME...", "Only between these recorders or interfaces "
		"(RECORDER:INTERFACE)"),
	TEXT("apart", "TIME", "Packets with the same contents that are further apart are not the "
		"same packet (default: 1s)"),
	TEXT("offset", "RECORDER=TIME", "The clock of this recorder is known to be ahead by this "
		"time, for example -3ms"),
	FLAG("same-clock", "The clocks of all recorders are known to agree, as with PTP"),
	TEXT("path", "NAME,NAME...", "Packets that go one way only pass the recorders in this order"),
	FLAG("lost", "List the packets that entered and never came out"),
	FLAG("no-hops", "report: do not follow packets"),
	PATHS(0, "html", "FILE", "report: write this file; -: standard output"),
	TEXT("title", "TEXT", "report: heading of the page"),
	HEADING("top: list what there is most of"),
	{OPTION_SET(1), OPTION_CHOICE, 0, "by", "WHAT",
		"talkers|conversations|flows|protocols|ports|recorders|interfaces|vlans|tunnels", 0, 0,
		"talkers, conversations, flows, protocols, ports, recorders, interfaces, vlans or "
		"tunnels (default: talkers)"},
	FLAG("sum", "Add up what all recorders have, also packets that passed several of them"),
	HEADING("prune, verify, compact: look after an archive"),
	TEXT("keep", "AGE|SIZE", "prune: keep parts with packets of this age, as in 7d, or of this "
		"size in all, as in 2T"),
	FLAG("dry-run", "prune, compact: print what would be done"),
	FLAG("quick", "verify: compare checksums only, not the index with the packets"),
	FLAG("repair", "verify: make damaged indexes again, and cut damaged frames out; what is "
		"replaced is kept in .damaged"),
	TEXT("below", "SIZE", "compact: join parts of less than SIZE on disk (default: 64M)"),
	TEXT("up-to", "SIZE", "compact: to parts of at most SIZE (default: 1G)"),
	HEADING("generate: write a synthetic recording, the same bytes for the same options"),
	TEXT("seed", "N", "Of the random numbers (default: 1)"),
	TEXT("flows", "N", "Flows at a time, by Zipf's law (default: 10k)"),
	CHOICE("size", "imix|64", "Frames of 64, 590 and 1514 bytes, or all of 64 (default: imix)"),
	CHOICE("mix", "realistic|udp", "TCP, tunnels, IPv6, VLANs, fragments, DNS and ARP, or only "
		"UDP over IPv4 (default: realistic)"),
	FLAG("ids", "Record also what is sent, with packet ids"),
	FLAG("fates", "Record also what becomes of packets that are not sent"),
	TEXT("loss", "SHARE", "Share of the records that are lost, and counted (default: 0)"),
	TEXT("rate", "PPS", "Packets received a second (default: 1M)"),
	TEXT("burst", "N", "Packets with one time, on average (default: 4)"),
	TEXT("queues", "N", "Of each port, 1 to 8 (default: 4)"),
	TEXT("snaplen", "BYTES", "Bytes of a packet that are captured"),
	TEXT("start", "TIME", "Time of the first packet"),
	HEADING("bench: measure archives"),
	TEXT("only", "PARTS", "A list of index, size, parallel, growth (default: all)"),
	TEXT("growth", "SIZES", "Packets of the archive that grows (default: 1M,10M)"),
	TEXT("copies", "N", "Then also N recorders with the same packets (default: 1)"),
	TEXT("rounds", "N", "Repetitions (default: 5)"),
	PATHS(0, "folder", "DIR", "For files and archives, which stay there (default: a temporary "
		"one)"),
	TEXT("cpu", "N", "For what one core does (default: the last)"),
	FLAG("drop-caches", "Empty all caches of the machine, instead of evicting files; root"),
	PATHS(0, "result", "FILE", "Write all values as JSON"),
};
/* clang-format on */

/* What the program takes from the build or the installation that this one is of. The user's own
 * settings count. */
static int set_paths(void)
{
	const char *decoder = archive_decoder_path();
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	self[n < 0 ? 0 : n] = '\0';
	if (n > 0 && setenv("RINGTAP_PROGRAM", self, 0))
		return -1;
	return access(decoder, R_OK) ? 0 : setenv("RINGTAP_ARCHIVE_DECODER", decoder, 0);
}

/* Does not return if it succeeds. Returns -errno. */
static int run_program(const char *path, char **argv)
{
	if (path && !access(path, F_OK))
		execv(path, argv);
	else if (!path)
		execvp(PROGRAM, argv);
	else
		errno = ENOENT;
	return -errno;
}

static int run(const struct command *self, int argc, char **argv)
{
	const char *named = getenv("RINGTAP_ARCHIVE");
	const char *path = named && *named ? named : archive_program_path();
	const char *word = argc > 1 ? argv[1] : "";
	char *program = argv[0];
	int ret;

	if (!strcmp(word, "--help") || !strcmp(word, "-h")) {
		options_help(self);
		return output_end(self->name, 0) ? STATUS_FAILED : STATUS_OK;
	}
	if (!*word) {
		message_print("archive: no command is given; see 'ringtap archive --help'");
		return STATUS_USAGE;
	}
	if (set_paths()) {
		message_print("archive: cannot set the environment: %s", strerror(errno));
		return STATUS_FAILED;
	}
	argv[0] = path ? (char *)path : PROGRAM;
	ret = run_program(path, argv);
	argv[0] = program;
	if (ret == -ENOENT && !path)
		message_print("archive: its Python environment is missing; run 'make archive' in "
			      "ringtap's source tree, or put its " PROGRAM " into PATH");
	else
		message_print("archive: cannot start '%s': %s; run 'make archive' in ringtap's "
			      "source tree",
			path ? path : PROGRAM, strerror(-ret));
	return STATUS_FAILED;
}

/* Operands are the program's: with this, completion offers the options as well. */
static int operand(void *ctx, const char *text)
{
	return 0;
}

const struct command cmd_archive = {
	.name = "archive",
	.summary = "keep days of recordings, and query them",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.operands = "COMMAND [WORD...]",
	.words = "ingest|query|fetch|hops|top|report|prune|verify|compact|generate|bench",
	.operand = operand,
	.run = run,
};
