/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>

#include "ringtap/reader.h"
#include "commands.h"
#include "base/controls.h"
#include "base/util.h"

static const struct command *find(const char *name)
{
	for (const struct command *const *c = commands; *c; c++)
		if (!strcmp(name, (*c)->name))
			return *c;
	return NULL;
}

static void help(void)
{
	printf("Usage: ringtap COMMAND [options]\n"
	       "       ringtap --version | --help\n\n"
	       "Commands:\n");
	for (const struct command *const *c = commands; *c; c++)
		printf("  %-10s %s\n", (*c)->name, (*c)->summary);
	printf("\n'ringtap help COMMAND' lists the options of a command.\n");
}

static int help_on(const char *name)
{
	const struct command *cmd = name ? find(name) : NULL;

	if (name && !cmd) {
		message_print("help %s: unknown command; see 'ringtap help'", name);
		return STATUS_USAGE;
	}
	if (cmd)
		options_help(cmd);
	else
		help();
	return STATUS_OK;
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";
	const struct command *cmd = find(name);

	controls_guard_stdout();
	if (!strcmp(name, "--version")) {
		printf("ringtap %s\n", ringtap_version());
		return STATUS_OK;
	}
	if (!strcmp(name, "--help") || !strcmp(name, "-h")) {
		help();
		return STATUS_OK;
	}
	if (!strcmp(name, "help") && argc <= 3)
		return help_on(argv[2]);
	/* For the build only, so in no help. */
	if (!strcmp(name, "--describe") && argc == 2)
		return commands_describe(commands);
	if (cmd)
		return cmd->run(cmd, argc - 1, argv + 1);
	if (*name)
		message_print("%s: unknown command; see 'ringtap --help'", name);
	else
		message_print("no command is given; see 'ringtap --help'");
	return STATUS_USAGE;
}
