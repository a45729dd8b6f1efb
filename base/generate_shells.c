/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion for zsh and fish; generate.c has that of bash. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "command.h"
#include "generate.h"

#define LIST_PORTS "ringtap list --names 2>/dev/null"

/* Both shells list one line for each option: the first sentence of its help. */
static size_t sentence(const char *help)
{
	const char *end = strstr(help, ". ");

	return end ? (size_t)(end - help) : strlen(help);
}

static const char *program(void)
{
	return commands[0]->program ? commands[0]->program : "ringtap";
}

static bool is_option(const struct option_def *o)
{
	return o->kind != OPTION_HEADING;
}

/* The words of "a|b|c", each with suffix and a blank behind it. */
static void words(FILE *f, const char *choices, const char *suffix)
{
	for (const char *p = choices; *p;) {
		size_t n = strcspn(p, "|");

		fprintf(f, "%.*s%s ", (int)n, p, suffix);
		p += n + (p[n] == '|');
	}
}

/* Options end at the first operand, and the rest is the command line of another program. */
static bool runs_another(const struct command *cmd)
{
	return cmd->operands && !cmd->operand;
}

/* ---- zsh: specifications of _arguments, zshcompsys(1) */

/* In single quotes; special are the characters that would end this part of a specification. */
static void zsh_text(FILE *f, const char *text, size_t len, const char *special)
{
	for (size_t i = 0; i < len; i++) {
		if (text[i] == '\\' || strchr(special, text[i]))
			fputc('\\', f);
		if (text[i] == '\'')
			fputs("'\\''", f);
		else
			fputc(text[i], f);
	}
}

static void zsh_value(FILE *f, const struct option_def *o)
{
	fputc(':', f);
	zsh_text(f, o->arg, strlen(o->arg), ":");
	fputc(':', f);
	if (o->kind == OPTION_FILE)
		fputs("_files", f);
	else if (o->kind == OPTION_PORT)
		fputs(" _ringtap_ports", f);
	else if (o->choices) {
		fputs(o->kind == OPTION_KEYED ? " _ringtap_keys " : "(", f);
		words(f, o->choices, "");
		fputs(o->kind == OPTION_KEYED ? "" : ")", f);
	}
}

static void zsh_option(FILE *f, const struct option_def *o)
{
	bool value = o->kind != OPTION_FLAG;

	fputs(" \\\n\t\t'*'", f);
	if (o->letter && o->name)
		fprintf(f, "{-%c%s,--%s%s}", o->letter, value ? "+" : "", o->name,
			value ? "=" : "");
	else if (o->letter)
		fprintf(f, "-%c%s", o->letter, value ? "+" : "");
	else
		fprintf(f, "--%s%s", o->name, value ? "=" : "");
	fputs("'[", f);
	zsh_text(f, o->help, sentence(o->help), "[]:");
	fputc(']', f);
	if (value)
		zsh_value(f, o);
	fputc('\'', f);
}

static void zsh_operands(FILE *f, const struct command *cmd)
{
	if (!cmd->words && !cmd->listed)
		return;
	fprintf(f, "_ringtap_operands_%s()\n{\n\tlocal -a found=(", cmd->name);
	words(f, cmd->words ? cmd->words : "", "");
	if (cmd->listed)
		fprintf(f, "${(f)\"$(%s)\"}", cmd->listed);
	fputs(")\n\tcompadd -a found\n}\n\n", f);
}

static void zsh_command(FILE *f, const struct command *cmd)
{
	zsh_operands(f, cmd);
	fprintf(f,
		"_ringtap_%s()\n{\n\t_arguments -s -S %s: \\\n"
		"\t\t'(- *)'{-h,--help}'[Print this help and exit]'",
		cmd->name, runs_another(cmd) ? "-A '-*' " : "");
	for (size_t i = 0; i < cmd->option_count; i++)
		if (is_option(&cmd->options[i]))
			zsh_option(f, &cmd->options[i]);
	if (runs_another(cmd))
		fputs(" \\\n\t\t'*::program: _ringtap_program'", f);
	else if (cmd->words || cmd->listed)
		fprintf(f, " \\\n\t\t'*:%s: _ringtap_operands_%s'",
			strchr(cmd->operands, ':') ? "operand" : cmd->operands, cmd->name);
	fputs("\n}\n\n", f);
}

static const char zsh_head[] = "# Generated from the command definitions; do not edit.\n"
			       "_ringtap_ports()\n{\n"
			       "\tlocal -a found=(${(f)\"$(" LIST_PORTS ")\"})\n"
			       "\tcompadd -a found\n"
			       "}\n\n"
			       "_ringtap_keys()\n"
			       "{\n"
			       "\tcompadd -S : -- \"$@\"\n"
			       "}\n\n"
			       "_ringtap_program()\n"
			       "{\n"
			       "\tif [[ $words[1] = -- ]]; then\n"
			       "\t\tshift words\n"
			       "\t\t(( CURRENT-- ))\n"
			       "\tfi\n"
			       "\t_normal\n"
			       "}\n\n";

/* _arguments leaves the command's words, from its name on, in $words. */
static void zsh_overview(FILE *f)
{
	fputs("_ringtap()\n{\n\tlocal curcontext=$curcontext state line\n\tlocal -a summaries=(\n",
		f);
	for (const struct command *const *c = commands; *c; c++) {
		fprintf(f, "\t\t'%s:", (*c)->name);
		zsh_text(f, (*c)->summary, strlen((*c)->summary), ":");
		fputs("'\n", f);
	}
	fputs("\t\t'help:list the options of a command'\n\t)\n"
	      "\t_arguments -C : \\\n"
	      "\t\t'(- *)'{-h,--help}'[List the commands]' \\\n"
	      "\t\t'(- *)'{-v,--version}'[Print the version]' \\\n"
	      "\t\t'1: :->command' '*:: :->words' && return\n"
	      "\tif [[ $state = command || $words[1] = help && $CURRENT -eq 2 ]]; then\n"
	      "\t\t_describe -t commands command summaries\n"
	      "\telif (( $+functions[_ringtap_$words[1]] )); then\n"
	      "\t\t_ringtap_$words[1]\n"
	      "\tfi\n}\n\n_ringtap \"$@\"\n",
		f);
}

int generate_zsh(const char *dir)
{
	char name[80];
	FILE *f;

	snprintf(name, sizeof(name), "_%s", program());
	f = generate_create(dir, name);
	if (!f)
		return -EIO;
	fprintf(f, "#compdef %s\n%s", program(), zsh_head);
	for (const struct command *const *c = commands; *c; c++)
		zsh_command(f, *c);
	if (commands[0]->program)
		fprintf(f, "_ringtap_%s \"$@\"\n", commands[0]->name);
	else
		zsh_overview(f);
	return generate_finish(f, name);
}

/* ---- fish: complete(1) */

static void fish_text(FILE *f, const char *text, size_t len)
{
	fputc('\'', f);
	for (size_t i = 0; i < len; i++) {
		if (text[i] == '\'' || text[i] == '\\')
			fputc('\\', f);
		fputc(text[i], f);
	}
	fputc('\'', f);
}

/* The beginning of a line that adds words, or an option, for one command. */
static void fish_complete(FILE *f, const struct command *cmd)
{
	fprintf(f, "complete -c %s", program());
	if (!cmd->program)
		fprintf(f, " -n '__ringtap_is %s'", cmd->name);
}

static void fish_value(FILE *f, const struct option_def *o)
{
	if (o->kind == OPTION_FLAG)
		return;
	if (o->kind == OPTION_FILE) {
		fputs(" -r -F", f);
		return;
	}
	fputs(" -x", f);
	if (o->kind == OPTION_PORT) {
		fputs(" -a '(" LIST_PORTS ")'", f);
	} else if (o->choices) {
		fputs(" -a '", f);
		words(f, o->choices, o->kind == OPTION_KEYED ? ":" : "");
		fputc('\'', f);
	}
}

static void fish_option(FILE *f, const struct command *cmd, const struct option_def *o)
{
	fish_complete(f, cmd);
	if (o->letter)
		fprintf(f, " -s %c", o->letter);
	if (o->name)
		fprintf(f, " -l %s", o->name);
	fish_value(f, o);
	fputs(" -d ", f);
	fish_text(f, o->help, sentence(o->help));
	fputc('\n', f);
}

static void fish_operands(FILE *f, const struct command *cmd)
{
	if (runs_another(cmd)) {
		fish_complete(f, cmd);
		fputs(" -a '(__fish_complete_subcommand --fcs-skip=2)'\n", f);
		return;
	}
	if (cmd->words) {
		fish_complete(f, cmd);
		fputs(" -a '", f);
		words(f, cmd->words, "");
		fputs("'\n", f);
	}
	if (cmd->listed) {
		fish_complete(f, cmd);
		fprintf(f, " -a '(%s)'\n", cmd->listed);
	}
}

static void fish_command(FILE *f, const struct command *cmd)
{
	fish_complete(f, cmd);
	fputs(" -s h -l help -d 'Print this help and exit'\n", f);
	for (size_t i = 0; i < cmd->option_count; i++)
		if (is_option(&cmd->options[i]))
			fish_option(f, cmd, &cmd->options[i]);
	fish_operands(f, cmd);
}

static const char fish_functions[] =
	"function __ringtap_is --description 'Whether the command is one of these'\n"
	"\tset -l words (commandline -opc)\n"
	"\ttest (count $words) -gt 1; and contains -- $words[2] $argv\n"
	"end\n"
	"function __ringtap_names_a_command\n"
	"\ttest (count (commandline -opc)) -eq 1\n"
	"\tor begin; test (count (commandline -opc)) -eq 2; and __ringtap_is help; end\n"
	"end\n";

static void fish_overview(FILE *f)
{
	fputs(fish_functions, f);
	for (const struct command *const *c = commands; *c; c++) {
		fprintf(f, "complete -c ringtap -n __ringtap_names_a_command -a %s -d ",
			(*c)->name);
		fish_text(f, (*c)->summary, strlen((*c)->summary));
		fputc('\n', f);
	}
	fputs("complete -c ringtap -n __ringtap_names_a_command -a help -d 'list the options of "
	      "a command'\n"
	      "complete -c ringtap -n __ringtap_names_a_command -s h -l help -d 'List the "
	      "commands'\n"
	      "complete -c ringtap -n __ringtap_names_a_command -s v -l version -d 'Print the "
	      "version'\n",
		f);
}

int generate_fish(const char *dir)
{
	char name[80];
	FILE *f;

	snprintf(name, sizeof(name), "%s.fish", program());
	f = generate_create(dir, name);
	if (!f)
		return -EIO;
	/* No file names but where they are options' values. */
	fprintf(f, "# Generated from the command definitions; do not edit.\ncomplete -c %s -f\n",
		program());
	if (!commands[0]->program)
		fish_overview(f);
	for (const struct command *const *c = commands; *c; c++)
		fish_command(f, *c);
	return generate_finish(f, name);
}
