/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>

#include "commands.h"
#include "version.h"
#include "base/controls.h"
#include "base/util.h"

static void help(void)
{
	printf("Usage: ringtap COMMAND [options]\n"
	       "       ringtap --version | --help\n\n"
	       "Commands:\n");
	commands_print(commands);
	printf("\n'ringtap help COMMAND' lists the options of a command.\n");
}

/* help COMMAND [SUBCOMMAND] */
static int help_on(char *const *words)
{
	const struct command *const *list = commands;
	const struct command *cmd = NULL, *next;
	char see[128];

	words += *words && !strcmp(*words, "help"); /* not in the table of commands */
	for (; *words; words++, cmd = next, list = next->commands) {
		next = list ? command_find(list, *words) : NULL;
		if (next)
			continue;
		snprintf(see, sizeof(see), "see 'ringtap help%s%s'", cmd ? " " : "",
			cmd ? cmd->name : "");
		return message_fail(STATUS_USAGE, "help%s%s: %s: unknown command; %s",
			cmd ? " " : "", cmd ? cmd->name : "", *words,
			list ? command_advice(list, *words, see) : see);
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
	const struct command *cmd = command_find(commands, name);
	int status;

	controls_guard_stdout();
	if (!strcmp(name, "--version")) {
		version_print();
		return STATUS_OK;
	}
	if (!strcmp(name, "--help") || !strcmp(name, "-h")) {
		help();
		return STATUS_OK;
	}
	if (!strcmp(name, "help"))
		return help_on(argv + 2);
	/* For the build only, so in no help. */
	if (!strcmp(name, "--describe") && argc == 2)
		return commands_describe(commands);
	if (cmd) {
		status = cmd->run(cmd, argc - 1, argv + 1);
		fflush(stdout);
		return status == STATUS_FAILED && controls_closed() ? STATUS_OK : status;
	}
	if (*name == '-')
		return message_fail(STATUS_USAGE, "%s: unknown option; %s", name,
			choice_advice(
				"--help|--version", name, strlen(name), "see 'ringtap --help'"));
	if (*name)
		return message_fail(STATUS_USAGE, "%s: unknown command; %s", name,
			command_advice(commands, name, "see 'ringtap --help'"));
	stdout = stderr;
	help();
	return STATUS_USAGE;
}
