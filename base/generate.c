/* SPDX-License-Identifier: BSD-3-Clause */
/* Man pages and completion out of the command definitions; run by the build. */
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
		message_print("cannot write %s: %s; check the folder", path, strerror(errno));
	return f;
}

int generate_finish(FILE *f, const char *name)
{
	int bad = ferror(f);

	if (!fclose(f) && !bad)
		return 0;
	message_print("cannot write %s: %s; check the disk", name, strerror(errno));
	return -EIO;
}

/* roff takes '-' for a hyphen, '\' for an escape, and a line's first '.' or ''' for a request. */
static void roff(FILE *f, const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		bool first = i == 0 || text[i - 1] == '\n';

		if (first && (text[i] == '.' || text[i] == '\''))
			fputs("\\&", f);
		if (text[i] == '-')
			fputs("\\-", f);
		else if (text[i] == '\\')
			fputs("\\e", f);
		else
			fputc(text[i], f);
	}
}

static void roff_text(FILE *f, const char *text)
{
	roff(f, text, strlen(text));
}

/* The little markup of struct section. */
static void roff_prose(FILE *f, const char *text)
{
	bool verbatim = false;

	while (*text) {
		size_t len = strcspn(text, "\n");
		bool keep = *text == ' ';

		if (keep != verbatim)
			fputs(keep ? ".PP\n.nf\n.RS 4\n" : ".RE\n.fi\n", f);
		verbatim = keep;
		if (len)
			roff(f, text, len);
		else
			fputs(".PP", f);
		fputc('\n', f);
		text += len + (text[len] == '\n');
	}
	if (verbatim)
		fputs(".RE\n.fi\n", f);
}

static void roff_option(FILE *f, const struct option_def *o)
{
	if (o->kind == OPTION_HEADING) {
		fputs(".SS ", f);
		roff_text(f, o->help);
		fputc('\n', f);
		return;
	}
	fputs(".TP\n", f);
	if (o->letter)
		fprintf(f, "\\fB\\-%c\\fR%s", o->letter, o->name ? ", " : "");
	if (o->name) {
		fputs("\\fB\\-\\-", f);
		roff_text(f, o->name);
		fputs("\\fR", f);
	}
	if (o->arg) {
		fputs(" \\fI", f);
		roff_text(f, o->arg);
		fputs("\\fR", f);
	}
	fputc('\n', f);
	roff_text(f, o->help);
	fputs(".\n", f);
}

static void head(FILE *f, const char *page, const char *summary)
{
	fprintf(f,
		".\\\" Generated from the command definitions; do not edit.\n"
		".TH \"%s\" 1 \"\" \"ringtap " RINGTAP_VERSION "\" \"ringtap manual\"\n.SH NAME\n",
		page);
	roff_text(f, page);
	fputs(" \\- ", f);
	roff_text(f, summary);
	fputc('\n', f);
}

int generate_man(const char *dir, const struct command *cmd)
{
	char page[64], file[80];
	FILE *f;

	if (cmd->program)
		snprintf(page, sizeof(page), "%s", cmd->program);
	else
		snprintf(page, sizeof(page), "ringtap-%s", cmd->name);
	snprintf(file, sizeof(file), "%s.1", page);
	f = generate_create(dir, file);
	if (!f)
		return -EIO;
	head(f, page, cmd->summary);
	fputs(".SH SYNOPSIS\n\\fB", f);
	roff_text(f, cmd->program ? cmd->program : "ringtap ");
	roff_text(f, cmd->program ? "" : cmd->name);
	fputs("\\fR [\\fIoptions\\fR]", f);
	if (cmd->operands) {
		fputs(" \\fI", f);
		roff_text(f, cmd->operands);
		fputs("\\fR", f);
	}
	fputc('\n', f);
	for (size_t i = 0; i < cmd->section_count; i++) {
		if (i == 1 && cmd->option_count) {
			fputs(".SH OPTIONS\n", f);
			for (size_t j = 0; j < cmd->option_count; j++)
				roff_option(f, &cmd->options[j]);
		}
		fprintf(f, ".SH %s\n", cmd->sections[i].title);
		roff_prose(f, cmd->sections[i].text);
	}
	fputs(".SH SEE ALSO\n\\fBringtap\\fR(1)\n", f);
	return generate_finish(f, file);
}

static int man_overview(const char *dir)
{
	FILE *f = generate_create(dir, "ringtap.1");

	if (!f)
		return -EIO;
	head(f, "ringtap", "capture packets and statistics inside running DPDK applications");
	fputs(".SH SYNOPSIS\n\\fBringtap\\fR \\fIcommand\\fR [\\fIoptions\\fR]\n.br\n"
	      "\\fBringtap \\-\\-version\\fR | \\fB\\-\\-help\\fR\n.SH DESCRIPTION\n",
		f);
	roff_prose(f,
		"ringtap captures inside running, unmodified DPDK applications: it records the "
		"packets of every port, queue and direction, shows how threads poll and what is "
		"lost (top, export), how long packets stay inside (latency), where their buffers "
		"lie (memory), and lists faults (doctor). The application carries the ringtap "
		"probe, a plugin that is loaded with EAL's -d option and that does nothing until "
		"a reader attaches:\n\n"
		"  dpdk-testpmd -d LIBDIR/libringtap-probe.so ...\n\n"
		"ringtap finds applications by their DPDK runtime folder, so it must run as the "
		"application's user or as root. An application is called by its EAL "
		"--file-prefix.\n");
	fputs(".SH COMMANDS\n", f);
	for (const struct command *const *c = commands; *c; c++) {
		fprintf(f, ".TP\n\\fBringtap\\-%s\\fR(1)\n", (*c)->name);
		roff_text(f, (*c)->summary);
		fputs(".\n", f);
	}
	fputs(".SH EXIT STATUS\n"
	      "0 on success, 1 on failure, 2 for a wrong command line. Commands document "
	      "others.\n"
	      ".SH SEE ALSO\n",
		f);
	for (const struct command *const *c = commands; *c; c++)
		fprintf(f, "\\fBringtap\\-%s\\fR(1), ", (*c)->name);
	fputs("\\fBpcap\\-filter\\fR(7), \\fBdumpcap\\fR(1)\n", f);
	return generate_finish(f, "ringtap.1");
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

int generate(const char *what, const char *dir)
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
		message_print("--generate %s: unknown; choose man, completion, zsh or fish", what);
		return STATUS_USAGE;
	}
	ret = commands[0]->program ? 0 : man_overview(dir);
	for (const struct command *const *c = commands; *c && !ret; c++)
		ret = generate_man(dir, *c);
	return ret ? STATUS_FAILED : STATUS_OK;
}
