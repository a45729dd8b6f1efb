/* SPDX-License-Identifier: BSD-3-Clause */
/* Man pages and completion out of the command definitions; run by the build. generate_man.c writes
 * the pages; here is the completion for bash. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "command.h"
#include "generate.h"
#include "util.h"

FILE *generate_create(const char *dir, const char *name)
{
	char path[4096];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "w");
	if (!f)
		say("cannot write %s: %s; check the folder", path, strerror(errno));
	return f;
}

int generate_finish(FILE *f, const char *name)
{
	int bad = ferror(f);

	if (!fclose(f) && !bad)
		return 0;
	say("cannot write %s: %s; check the disk", name, strerror(errno));
	return -EIO;
}

static void completion_words(FILE *f, const char *choices, const char *suffix)
{
	for (const char *p = choices; *p;) {
		size_t n = strcspn(p, "|");

		fprintf(f, "%.*s%s ", (int)n, p, suffix);
		p += n + (p[n] == '|');
	}
}

static void completion_value(FILE *f, const struct option_def *o)
{
	if (o->kind == OPTION_HEADING || o->kind == OPTION_FLAG)
		return;
	fputs("\t\t", f);
	if (o->letter)
		fprintf(f, "-%c%s", o->letter, o->name ? "|" : "");
	if (o->name)
		fprintf(f, "--%s", o->name);
	fputs(") ", f);
	if (o->kind == OPTION_FILE)
		fputs("compopt -o default; COMPREPLY=()", f);
	else if (o->kind == OPTION_PORT)
		fputs("_ringtap_words \"$(ringtap list --names 2>/dev/null)\"", f);
	else if (o->choices) {
		fputs("COMPREPLY=($(compgen -W \"", f);
		completion_words(f, o->choices, o->kind == OPTION_KEYED ? ":" : "");
		fputs("\" -- \"$cur\"))", f);
	} else {
		fputs(":", f);
	}
	fputs("; return ;;\n", f);
}

static void completion_command(FILE *f, const struct command *cmd)
{
	fprintf(f, "\t%s)\n\t\tcase $prev in\n", cmd->name);
	for (size_t i = 0; i < cmd->option_count; i++)
		completion_value(f, &cmd->options[i]);
	fputs("\t\tesac\n\t\twords=\"", f);
	completion_words(f, cmd->words ? cmd->words : "", "");
	fputs("--help", f);
	for (size_t i = 0; i < cmd->option_count; i++) {
		if (cmd->options[i].kind == OPTION_HEADING)
			continue;
		if (cmd->options[i].letter)
			fprintf(f, " -%c", cmd->options[i].letter);
		if (cmd->options[i].name)
			fprintf(f, " --%s", cmd->options[i].name);
	}
	if (cmd->listed)
		fprintf(f, " $(%s)", cmd->listed);
	fputs("\" ;;\n", f);
}

/* Of a program of its own: its options are those of its only command. */
static int completion_program(const char *dir, const struct command *cmd)
{
	FILE *f = generate_create(dir, cmd->program);

	if (!f)
		return -EIO;
	fprintf(f,
		"# Generated from the command definitions; do not edit.\n_ringtap_%s()\n{\n"
		"\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} words\n"
		"\tCOMPREPLY=()\n\tcase %s in\n",
		cmd->name, cmd->name);
	completion_command(f, cmd);
	fprintf(f,
		"\tesac\n\tCOMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n}\n"
		"complete -F _ringtap_%s %s\n",
		cmd->name, cmd->program);
	return generate_finish(f, cmd->program);
}

/* Ports have a ':' before them, at which bash parts words: bash-completion undoes that. */
static const char completion_head[] =
	"# Generated from the command definitions; do not edit.\n"
	"_ringtap_words()\n"
	"{\n"
	"\tCOMPREPLY=($(compgen -W \"$1\" -- \"$cur\"))\n"
	"\t! declare -F __ltrim_colon_completions >/dev/null || __ltrim_colon_completions "
	"\"$cur\"\n"
	"}\n\n"
	"_ringtap()\n"
	"{\n"
	"\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} words\n"
	"\t! declare -F _get_comp_words_by_ref >/dev/null || _get_comp_words_by_ref -n : cur "
	"prev\n"
	"\tCOMPREPLY=()\n"
	"\tcase ${COMP_WORDS[1]} in\n";

static int completion(const char *dir)
{
	FILE *f = generate_create(dir, "ringtap");

	if (!f)
		return -EIO;
	fputs(completion_head, f);
	for (const struct command *const *c = commands; *c; c++)
		completion_command(f, *c);
	fputs("\tesac\n\tif [ \"$COMP_CWORD\" -eq 1 ] ||\n"
	      "\t\t{ [ \"$COMP_CWORD\" -eq 2 ] && [ \"$prev\" = help ]; }; then\n\t\twords=\"",
		f);
	for (const struct command *const *c = commands; *c; c++)
		fprintf(f, "%s ", (*c)->name);
	fputs("help --help --version\"\n\tfi\n\t_ringtap_words \"$words\"\n}\n"
	      "complete -F _ringtap ringtap\n",
		f);
	return generate_finish(f, "ringtap");
}

int generate(const char *what, const char *dir, char **texts)
{
	int ret;

	if (!strcmp(what, "completion") && commands[0]->program)
		return completion_program(dir, commands[0]) ? STATUS_FAILED : STATUS_OK;
	if (!strcmp(what, "completion"))
		return completion(dir) ? STATUS_FAILED : STATUS_OK;
	if (!strcmp(what, "zsh"))
		return generate_zsh(dir) ? STATUS_FAILED : STATUS_OK;
	if (!strcmp(what, "fish"))
		return generate_fish(dir) ? STATUS_FAILED : STATUS_OK;
	if (strcmp(what, "man")) {
		say("--generate %s: unknown; choose man, completion, zsh or fish", what);
		return STATUS_USAGE;
	}
	ret = commands[0]->program ? 0 : generate_overview(dir, texts);
	for (const struct command *const *c = commands; *c && !ret; c++)
		ret = generate_man(dir, *c, texts);
	return ret ? STATUS_FAILED : STATUS_OK;
}
