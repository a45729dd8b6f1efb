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
	const struct command *const *below = c->commands;
	json_t *options = json_array(), *list = json_array();

	for (size_t i = 0; i < c->option_count; i++)
		if (option_taken(c, &c->options[i]))
			json_array_append_new(options, describe_option(&c->options[i]));
	while (below && *below)
		json_array_append_new(list, describe(*below++));
	return json_pack("{s:s,s:s?,s:s,s:s?,s:s?,s:s?,s:b,s:o,s:b,s:o}", "name", c->name,
		"program", c->program, "summary", c->summary, "operands", c->operands, "words",
		c->words, "listed", c->listed, "takes_operands", c->operand != NULL, "options",
		options, "shared", c->commands && c->commands[0]->options == c->options, "commands",
		list);
}

int commands_describe(const struct command *const *list)
{
	json_t *out = json_array();

	for (; *list; list++)
		json_array_append_new(out, describe(*list));
	return output_end("--describe", json_print(out, stdout));
}
