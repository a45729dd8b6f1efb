/* SPDX-License-Identifier: BSD-3-Clause */
/* Man pages: options out of the command definitions, prose out of text files (CONTRIBUTING.md). */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "generate.h"
#include "util.h"

#define DATADIR "@DATADIR@"
#define INCLUDE "@include "

struct page {
	FILE *f;
	const struct command *cmd; /* NULL: the overview */
	unsigned sections;
	bool any;      /* text in this section */
	bool open;     /* a paragraph, whose last line has no end yet */
	bool verbatim; /* an example */
	bool gap;      /* an empty line, which counts if text follows in this section */
};

/* roff takes '-' for a hyphen, '\' for an escape, and a line's first '.' or ''' for a request. */
static void roff_line(FILE *f, const char *text, bool first)
{
	if (first && (*text == '.' || *text == '\''))
		fputs("\\&", f);
	for (; *text; text++) {
		if (!strncmp(text, DATADIR, strlen(DATADIR))) {
			roff_line(f, RINGTAP_DATADIR, false);
			text += strlen(DATADIR) - 1;
		} else if (*text == '-') {
			fputs("\\-", f);
		} else if (*text == '\\') {
			fputs("\\e", f);
		} else {
			fputc(*text, f);
		}
	}
}

static void roff(FILE *f, const char *text)
{
	roff_line(f, text, true);
}

static void option(FILE *f, const struct option_def *o)
{
	if (o->kind == OPTION_HEADING) {
		fputs(".SS ", f);
		roff(f, o->help);
		fputc('\n', f);
		return;
	}
	fputs(".TP\n", f);
	if (o->letter)
		fprintf(f, "\\fB\\-%c\\fR%s", o->letter, o->name ? ", " : "");
	if (o->name) {
		fputs("\\fB\\-\\-", f);
		roff(f, o->name);
		fputs("\\fR", f);
	}
	if (o->arg) {
		fputs(" \\fI", f);
		roff(f, o->arg);
		fputs("\\fR", f);
	}
	fputc('\n', f);
	roff(f, o->help);
	fputs(".\n", f);
}

/* What the definitions give, behind the first section of prose. */
static void definitions(FILE *f, const struct command *cmd)
{
	if (cmd && cmd->option_count)
		fputs(".SH OPTIONS\n", f);
	for (size_t i = 0; cmd && i < cmd->option_count; i++)
		option(f, &cmd->options[i]);
	if (cmd)
		return;
	fputs(".SH COMMANDS\n", f);
	for (const struct command *const *c = commands; *c; c++) {
		fprintf(f, ".TP\n\\fBringtap\\-%s\\fR(1)\n", (*c)->name);
		roff(f, (*c)->summary);
		fputs(".\n", f);
	}
}

static void end_block(struct page *p)
{
	if (p->open)
		fputc('\n', p->f);
	if (p->verbatim)
		fputs(".RE\n.fi\n", p->f);
	p->open = p->verbatim = false;
}

static int heading(struct page *p, const char *title)
{
	if (p->sections && !p->any)
		return -ENODATA;
	end_block(p);
	if (p->sections++ == 1)
		definitions(p->f, p->cmd);
	fprintf(p->f, ".SH %s\n", title);
	p->any = p->gap = false;
	return 0;
}

static void text_line(struct page *p, const char *line)
{
	bool keep = *line == ' ';

	if (p->gap)
		fputs(".PP\n", p->f);
	if (keep != p->verbatim)
		end_block(p);
	if (keep && !p->verbatim)
		fputs(".PP\n.nf\n.RS 4\n", p->f);
	if (p->open)
		fputc(keep ? '\n' : ' ', p->f);
	roff_line(p->f, line, !p->open);
	if (keep)
		fputc('\n', p->f);
	p->open = !keep;
	p->verbatim = keep;
	p->any = true;
	p->gap = false;
}

static int prose(struct page *p, const char *path, bool included);

/* A file beside the one that names it. */
static int include(struct page *p, const char *path, const char *name)
{
	const char *slash = strrchr(path, '/');
	int dir = slash ? (int)(slash - path) + 1 : 0;
	char other[4096];

	snprintf(other, sizeof(other), "%.*s%s", dir, path, name);
	return prose(p, other, true);
}

/* Takes one line. NULL, or what is wrong with it. */
static const char *take(struct page *p, const char *line)
{
	for (const char *c = line; *c; c++)
		if ((unsigned char)*c < ' ')
			return "a control character; indent with blanks";
	if (*line == '#' && (line[1] != ' ' || !line[2]))
		return "not a heading; write '# TITLE'";
	if (*line == '#')
		return heading(p, line + 2) ? "the section before has no text" : NULL;
	if (*line == '@')
		return "unknown instruction; there is " INCLUDE "FILE";
	if (!p->sections && *line)
		return "text before the first heading; write '# TITLE'";
	if (*line) {
		text_line(p, line);
	} else {
		end_block(p);
		p->gap = p->any;
	}
	return NULL;
}

/* Writes the sections of one file. 0, or -errno after a message. */
static int prose(struct page *p, const char *path, bool included)
{
	FILE *in = fopen(path, "r");
	const char *wrong = NULL;
	char *line = NULL;
	size_t room = 0;
	ssize_t len;
	int ret = in ? 0 : -errno;

	if (!in) {
		say("cannot read %s: %s; check the name", path, strerror(errno));
		return ret;
	}
	for (unsigned at = 1; !ret && (len = getline(&line, &room, in)) >= 0; at++) {
		if (len && line[len - 1] == '\n')
			line[len - 1] = 0;
		if (!included && !strncmp(line, INCLUDE, strlen(INCLUDE)))
			ret = include(p, path, line + strlen(INCLUDE));
		else
			wrong = take(p, line);
		if (wrong) {
			say("%s:%u: %s", path, at, wrong);
			ret = -EINVAL;
		}
	}
	if (!ret && !p->any) {
		say("%s: the last section has no text", path);
		ret = -ENODATA;
	}
	free(line);
	fclose(in);
	return ret;
}

/* The file NAME.txt; NULL after a message if there is none. */
static const char *find_text(char **texts, const char *name)
{
	size_t len = strlen(name);

	for (; *texts; texts++) {
		const char *slash = strrchr(*texts, '/'), *base = slash ? slash + 1 : *texts;

		if (!strncmp(base, name, len) && !strcmp(base + len, ".txt"))
			return *texts;
	}
	say("no text for the man page of %s; add %s.txt to the build's files", name, name);
	return NULL;
}

static FILE *begin(const char *dir, const char *file, const char *page, const char *summary)
{
	FILE *f = generate_create(dir, file);

	if (!f)
		return NULL;
	fprintf(f,
		".\\\" Generated from the command definitions; do not edit.\n"
		".TH \"%s\" 1 \"\" \"ringtap " RINGTAP_VERSION "\" \"ringtap manual\"\n.SH NAME\n",
		page);
	roff(f, page);
	fputs(" \\- ", f);
	roff(f, summary);
	fputs("\n.SH SYNOPSIS\n", f);
	return f;
}

static int body(FILE *f, const struct command *cmd, const char *text)
{
	struct page p = {.f = f, .cmd = cmd};
	int ret = prose(&p, text, false);

	end_block(&p);
	if (p.sections == 1)
		definitions(f, cmd);
	return ret;
}

int generate_man(const char *dir, const struct command *cmd, char **texts)
{
	const char *text = find_text(texts, cmd->name);
	char page[64], file[80];
	FILE *f;
	int ret, err;

	snprintf(page, sizeof(page), "%s%s", cmd->program ? "" : "ringtap-",
		cmd->program ? cmd->program : cmd->name);
	snprintf(file, sizeof(file), "%s.1", page);
	f = text ? begin(dir, file, page, cmd->summary) : NULL;
	if (!f)
		return -EIO;
	fputs("\\fB", f);
	roff(f, cmd->program ? cmd->program : "ringtap ");
	roff(f, cmd->program ? "" : cmd->name);
	fputs("\\fR [\\fIoptions\\fR]", f);
	if (cmd->operands) {
		fputs(" \\fI", f);
		roff(f, cmd->operands);
		fputs("\\fR", f);
	}
	fputc('\n', f);
	ret = body(f, cmd, text);
	fputs(".SH SEE ALSO\n\\fBringtap\\fR(1)\n", f);
	err = generate_finish(f, file);
	return ret ? ret : err;
}

int generate_overview(const char *dir, char **texts)
{
	const char *text = find_text(texts, "ringtap");
	FILE *f = text ? begin(dir, "ringtap.1", "ringtap",
				 "capture packets and statistics inside running DPDK applications")
		       : NULL;
	int ret, err;

	if (!f)
		return -EIO;
	fputs("\\fBringtap\\fR \\fIcommand\\fR [\\fIoptions\\fR]\n.br\n"
	      "\\fBringtap \\-\\-version\\fR | \\fB\\-\\-help\\fR\n",
		f);
	ret = body(f, NULL, text);
	fputs(".SH SEE ALSO\n", f);
	for (const struct command *const *c = commands; *c; c++)
		fprintf(f, "\\fBringtap\\-%s\\fR(1), ", (*c)->name);
	fputs("\\fBpcap\\-filter\\fR(7), \\fBdumpcap\\fR(1)\n", f);
	err = generate_finish(f, "ringtap.1");
	return ret ? ret : err;
}
