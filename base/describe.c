/* SPDX-License-Identifier: BSD-3-Clause */
/* The command definitions as data, of which the build makes man pages and completion. */
#include "command.h"
#include "json.h"
#include "util.h"

static json_t *describe_option(const struct option_def *o)
{
	static const char *const kinds[] = {
		[OPTION_HEADING] = "heading",
		[OPTION_FLAG] = "flag",
		[OPTION_TEXT] = "text",
		[OPTION_NUMBER] = "number",
		[OPTION_SIZE] = "size",
		[OPTION_BYTES] = "size",
		[OPTION_TIME] = "time",
		[OPTION_CHOICE] = "choice",
		[OPTION_FILE] = "file",
		[OPTION_PORT] = "port",
		[OPTION_KEYED] = "keyed",
	};
	const char letter[2] = {o->letter};

	return json_pack("{s:s,s:s,s:s?,s:s?,s:s?,s:s}", "kind", kinds[o->kind], "letter", letter,
		"name", o->name, "arg", o->arg, "choices", o->choices, "help", o->help);
}

static json_t *describe(const struct command *c)
{
	json_t *options = json_array(), *commands = json_array();
	const struct command *one;

	for (size_t i = 0; c->subcommand && (one = c->subcommand(i)); i++)
		json_array_append_new(commands, describe(one));
	for (size_t i = 0; i < c->option_count; i++)
		json_array_append_new(options, describe_option(&c->options[i]));
	return json_pack("{s:s,s:s?,s:s,s:s?,s:s?,s:s?,s:b,s:o,s:o}", "name", c->name, "program",
		c->program, "summary", c->summary, "operands", c->operands, "words", c->words,
		"listed", c->listed, "takes_operands", c->operand != NULL, "options", options,
		"commands", commands);
}

int commands_describe(const struct command *const *list)
{
	json_t *out = json_array();

	for (; *list; list++)
		json_array_append_new(out, describe(*list));
	return output_end("--describe", json_print(out, stdout));
}
