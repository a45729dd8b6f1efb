/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs ringtap-archive, a Python program with an environment of its own. The tables of options,
 * which devtools/archive_options.py makes of what the program takes, are for help, man page and
 * completion. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"
#include "cli/commands.h"
#include "target/probe_path.h"

/* Operands are the program's: with this, completion offers the options as well. */
static int operand(void *ctx, const char *text)
{
	return 0;
}

#include "archive_options.h"

#define PROGRAM "ringtap-archive"

/* Variables that the program gets from the build or installation of this one. The user's own
 * settings count. */
static int set_paths(void)
{
	const char *decoder = archive_decoder_path(), *page = archive_page_path();
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	self[n < 0 ? 0 : n] = '\0';
	if (n > 0 && setenv("RINGTAP_PROGRAM", self, 0))
		return -1;
	if (!access(page, R_OK) && setenv("RINGTAP_ARCHIVE_PAGE", page, 0))
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

static bool is_help(const char *word)
{
	return !strcmp(word, "--help") || !strcmp(word, "-h");
}

static int run(const struct command *self, int argc, char **argv)
{
	const char *named = getenv("RINGTAP_ARCHIVE");
	const char *path = named && *named ? named : archive_program_path();
	const char *word = argc > 1 ? argv[1] : "";
	const struct command *command = command_find(below, word);
	char *program = argv[0];
	int ret;

	if (is_help(word) || (command && argc > 2 && is_help(argv[2]))) {
		options_help(command ? command : self);
		return output_end(self->name, 0);
	}
	if (!command)
		return message_fail(STATUS_USAGE, "archive: %s%s; %s", word,
			!*word         ? "no command is given"
			: *word == '-' ? ": no option stands before the command"
				       : ": unknown command",
			command_advice(below, word, "see 'ringtap archive --help'"));
	if (set_paths())
		return message_fail(
			STATUS_FAILED, "archive: cannot set the environment: %s", strerror(errno));
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

const struct command cmd_archive = {
	.name = "archive",
	.summary = "keep days of recordings, and query them",
	.commands = below,
	.operands = "COMMAND [WORD...]",
	.operand = operand,
	.run = run,
};
