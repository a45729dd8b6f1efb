/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "nearest.h"
#include "util.h"

#define OPTIONS_MAX 64
#define HELP_INDENT 30

static const struct option_def help_option = {
	.kind = OPTION_FLAG, .letter = 'h', .name = "help", .help = "Print this help and exit"};

int choice_index(const char *choices, const char *text, size_t len)
{
	int i = 0;

	for (const char *p = choices; *p; i++) {
		size_t n = strcspn(p, "|");

		if (n == len && !memcmp(p, text, len))
			return i;
		p += n + (p[n] == '|');
	}
	return -1;
}

const char *choice_advice(const char *choices, const char *text, size_t len, const char *otherwise)
{
	static struct nearest n;

	nearest_begin(&n, text, len);
	nearest_offer_all(&n, choices);
	return nearest_advice(&n, otherwise);
}

static const char *last_word(const struct command *cmd)
{
	const char *blank = strrchr(cmd->name, ' ');

	return blank ? blank + 1 : cmd->name;
}

const char *option_with(const struct command *cmd, int id)
{
	for (const struct option_use *u = cmd->uses; u && u->id; u++)
		if (u->id == id)
			return u->with;
	return NULL;
}

bool option_taken(const struct command *cmd, const struct option_def *o)
{
	const char *word = last_word(cmd), *with = option_with(cmd, o->id);

	return !with || word == cmd->name || choice_index(with, word, strlen(word)) >= 0;
}

const struct command *command_find(const struct command *const *list, const char *word)
{
	for (; *list; list++)
		if (!strcmp(word, last_word(*list)))
			return *list;
	return NULL;
}

const char *command_advice(
	const struct command *const *list, const char *word, const char *otherwise)
{
	static struct nearest n;

	nearest_begin(&n, word, strlen(word));
	for (; *list; list++)
		nearest_offer(&n, last_word(*list), strlen(last_word(*list)));
	return nearest_advice(&n, otherwise);
}

/* getopt_long()'s tables, from the command's. */
struct tables {
	struct option longs[OPTIONS_MAX + 2];
	char shorts[2 * OPTIONS_MAX + 8];
};

static void tables_add(struct tables *t, const struct option_def *o, int index, int *longs, int *at)
{
	bool value = o->kind != OPTION_FLAG;

	if (o->name)
		t->longs[(*longs)++] = (struct option){.name = o->name,
			.has_arg = value ? required_argument : no_argument,
			.val = 256 + index};
	if (o->letter) {
		t->shorts[(*at)++] = o->letter;
		if (value)
			t->shorts[(*at)++] = ':';
	}
}

static void tables_build(struct tables *t, const struct command *cmd)
{
	int longs = 0;
	int at = 0;

	memset(t, 0, sizeof(*t));
	/* -: give out words that are not options, as value 1; +: stop at the first of them; ':':
	 * recognize a missing value. */
	t->shorts[at++] = cmd->operand ? '-' : '+';
	t->shorts[at++] = ':';
	tables_add(t, &help_option, OPTIONS_MAX, &longs, &at);
	for (size_t i = 0; i < cmd->option_count && i < OPTIONS_MAX; i++)
		if (cmd->options[i].kind != OPTION_HEADING)
			tables_add(t, &cmd->options[i], (int)i, &longs, &at);
}

static const struct option_def *find(const struct command *cmd, int c)
{
	if (c == 'h' || c == 256 + OPTIONS_MAX)
		return &help_option;
	if (c >= 256)
		return &cmd->options[c - 256];
	for (size_t i = 0; i < cmd->option_count; i++)
		if (cmd->options[i].kind != OPTION_HEADING && cmd->options[i].letter == c)
			return &cmd->options[i];
	return NULL;
}

/* The prefix of a message, which begins with the name of the program. */
static const char *prefix(const struct command *cmd)
{
	static char text[64];
	bool own = cmd->program && !strcmp(cmd->program, message_program);

	snprintf(text, sizeof(text), "%s%s", own ? "" : cmd->name, own ? "" : ": ");
	return text;
}

/* How the command is called. */
static const char *call(const struct command *cmd)
{
	static char text[64];

	if (cmd->program)
		return cmd->program;
	snprintf(text, sizeof(text), "ringtap %s", cmd->name);
	return text;
}

static const char *spelled(const struct option_def *o)
{
	static char text[64];

	if (o->name)
		snprintf(text, sizeof(text), "--%s", o->name);
	else
		snprintf(text, sizeof(text), "-%c", o->letter);
	return text;
}

/* A limit of the table, as the command line takes it. */
static const char *limit(char buf[FORMAT_LEN], enum option_kind kind, uint64_t n)
{
	if (kind == OPTION_TIME)
		return write_time(buf, n);
	if (kind == OPTION_SIZE)
		return write_size(buf, n);
	snprintf(buf, FORMAT_LEN, "%" PRIu64, n);
	return buf;
}

/* A value in a message, where an empty one would leave a gap. */
static const char *shown(const char *text)
{
	return *text ? text : "''";
}

static void bad_choice(const struct command *cmd, const struct option_def *o, const char *text)
{
	char list[256];

	snprintf(list, sizeof(list), "choose from %s", o->choices);
	message_print("%s%s %s: unknown; %s", prefix(cmd), spelled(o), shown(text),
		choice_advice(o->choices, text, strlen(text), list));
}

/* Describes valid values, for the message about an invalid one. */
static const char *wanted(enum option_kind kind)
{
	switch (kind) {
	case OPTION_SIZE: return "size; give a number with K, M or G";
	case OPTION_BYTES: return "size; give a number of bytes, or one with K, M or G";
	case OPTION_TIME: return "time; give a number with ns, us, ms, s, min, h or d";
	default: return "number; give decimal digits, or some with k, M or G";
	}
}

static int convert_number(enum option_kind kind, const char *text, uint64_t *n)
{
	switch (kind) {
	case OPTION_NUMBER: return parse_count(text, n);
	case OPTION_SIZE: return parse_size(text, 0, n);
	case OPTION_BYTES: return parse_size(text, 1, n);
	default: return parse_time(text, 0, n);
	}
}

/* Larger maxima are no limit that a user meets. */
static uint64_t most_of(enum option_kind kind)
{
	if (kind == OPTION_TIME)
		return TIME_MAX;
	return kind == OPTION_SIZE ? SIZE_LIMIT : UINT32_MAX;
}

static int bad_number(
	const struct command *cmd, const struct option_def *o, const char *text, int ret)
{
	char least[FORMAT_LEN], most[FORMAT_LEN];
	bool time = o->kind == OPTION_TIME;

	if (ret == -ENODATA)
		message_print("%s%s: '%s' has no unit; %s%s or %s%s?", prefix(cmd), spelled(o),
			text, text, time ? "s" : "M", text, time ? "ms" : "K");
	else if (ret == -EINVAL)
		message_print(
			"%s%s %s: not a %s", prefix(cmd), spelled(o), shown(text), wanted(o->kind));
	else if (ret == -EDOM && o->max >= most_of(o->kind))
		message_print("%s%s %s: out of range; give %s or more", prefix(cmd), spelled(o),
			text, limit(least, o->kind, o->min));
	else
		message_print("%s%s %s: out of range; give %s to %s", prefix(cmd), spelled(o), text,
			limit(least, o->kind, o->min), limit(most, o->kind, o->max));
	return -EINVAL;
}

static bool is_number(enum option_kind kind)
{
	return kind == OPTION_NUMBER || kind == OPTION_SIZE || kind == OPTION_BYTES ||
	       kind == OPTION_TIME;
}

/* Checks a value against the table and turns it into a number where it is one. */
static int convert(const struct command *cmd, const struct option_def *o, const char *text,
	struct option_value *v)
{
	int i, ret;

	*v = (struct option_value){.text = text};
	if (is_number(o->kind)) {
		ret = convert_number(o->kind, text, &v->number);
		if (!ret && (v->number < o->min || v->number > o->max))
			ret = v->number < o->min ? -EDOM : -ERANGE;
		return ret ? bad_number(cmd, o, text, ret) : 0;
	}
	if (o->kind != OPTION_CHOICE)
		return 0;
	i = choice_index(o->choices, text, strlen(text));
	v->number = (uint64_t)i;
	if (i < 0)
		bad_choice(cmd, o, text);
	return i < 0 ? -EINVAL : 0;
}

static void store(void *ctx, const struct option_def *o, const struct option_value *v)
{
	void *to = (char *)ctx + o->field;
	uint64_t n = o->kind == OPTION_FLAG ? 1 : v->number;

	if (o->kind == OPTION_TEXT || o->kind == OPTION_FILE || o->kind == OPTION_PORT) {
		memcpy(to, &v->text, sizeof(v->text));
		return;
	}
	switch (o->field_size) {
	case 1: memcpy(to, &(uint8_t){(uint8_t)n}, 1); break;
	case 2: memcpy(to, &(uint16_t){(uint16_t)n}, 2); break;
	case 4: memcpy(to, &(uint32_t){(uint32_t)n}, 4); break;
	default: memcpy(to, &n, sizeof(n));
	}
}

/* Names that other tools and earlier versions have for an option, and its own; docs/interface.md.
 */
static const char *const other_names[][2] = {
	{"buffer-size", "buffer"},
	{"count", "updates"},
	{"count", "packets"},
	{"every", "sample"},
	{"latency-every", "latency-sample"},
	{"memory", "buffer"},
	{"out", "write"},
	{"output", "write"},
	{"ring-size", "buffer"},
	{"rows", "limit"},
	{"seconds", "duration"},
	{"snaplen", "snapshot-length"},
	{"sort", "by"},
};

/* Whether name, of len bytes, is another name of o. */
static bool is_other_name(const struct option_def *o, const char *name, size_t len)
{
	for (size_t i = 0; i < sizeof(other_names) / sizeof(other_names[0]); i++)
		if (!strcmp(other_names[i][1], o->name) && strlen(other_names[i][0]) == len &&
			!memcmp(other_names[i][0], name, len))
			return true;
	return false;
}

/* word: "--nonsense" or "--nonsense=1". */
static void unknown_option(const struct command *cmd, const char *word)
{
	size_t len = strcspn(word, "=");
	char name[NEAREST_LEN], see[128];
	struct nearest n;

	nearest_begin(&n, word, len);
	for (size_t i = 0; i <= cmd->option_count; i++) {
		const struct option_def *o =
			i < cmd->option_count ? &cmd->options[i] : &help_option;

		if (o->kind == OPTION_HEADING || !o->name)
			continue;
		snprintf(name, sizeof(name), "--%s", o->name);
		if (is_other_name(o, word + 2, len - 2)) {
			nearest_begin(&n, name, strlen(name));
			nearest_offer(&n, name, strlen(name));
			break;
		}
		nearest_offer(&n, name, strlen(name));
	}
	snprintf(see, sizeof(see), "see '%s --help'", call(cmd));
	message_print(
		"%s%.*s: unknown option; %s", prefix(cmd), (int)len, word, nearest_advice(&n, see));
}

static int complain(const struct command *cmd, int c, const char *word)
{
	if (c == ':')
		message_print("%s%s: needs a value; see '%s --help'", prefix(cmd), word, call(cmd));
	else if (c == '?' && word[0] == '-' && word[1] == '-' && optopt >= 256)
		message_print("%s%.*s: takes no value; see '%s --help'", prefix(cmd),
			(int)strcspn(word, "="), word, call(cmd));
	else if (word[0] == '-' && word[1] == '-')
		unknown_option(cmd, word);
	else
		message_print(
			"%s-%c: unknown option; see '%s --help'", prefix(cmd), optopt, call(cmd));
	return -EINVAL;
}

/* "flight tpo --once": to flight, tpo is an application, and the option is none of its own. */
static bool mistyped_command(const struct command *cmd, int argc, char **argv)
{
	const char *advice =
		cmd->commands && argc > 1 ? command_advice(cmd->commands, argv[1], NULL) : NULL;

	if (advice)
		message_print("%s%s: unknown command; %s", prefix(cmd), argv[1], advice);
	return advice;
}

/* getopt_long() takes beginnings of long names: scripts would break when options are added. */
static bool abbreviated(const struct option_def *o, int c, const char *word)
{
	return c >= 256 && strcspn(word + 2, "=") != strlen(o->name);
}

/* Arguments behind the last option. */
static int operands(const struct command *cmd, int argc, char **argv, void *ctx)
{
	if (optind < argc && !cmd->operands)
		return message_fail(-EINVAL, "%s%s: only options are taken; see '%s --help'",
			prefix(cmd), argv[optind], call(cmd));
	for (int i = optind; cmd->operand && i < argc; i++)
		if (cmd->operand(ctx, argv[i]))
			return -EINVAL;
	return 1;
}

int options_parse(const struct command *cmd, int argc, char **argv, void *ctx)
{
	/* Commands that share the options of the one above them are words to that. */
	const struct command *below =
		cmd->commands && argc > 1 ? command_find(cmd->commands, argv[1]) : NULL;
	struct tables t;
	struct option_value v;
	const struct option_def *o;
	const char *word;
	int c;

	tables_build(&t, cmd);
	opterr = 0;
	optind = 0; /* restarts glibc's parser */
	for (;;) {
		word = argv[optind ? optind : 1];
		c = getopt_long(argc, argv, t.shorts, t.longs, NULL);
		if (c == -1)
			break;
		if (c == 1) {
			if (cmd->operand(ctx, optarg))
				return -EINVAL;
			continue;
		}
		o = c == '?' || c == ':' ? NULL : find(cmd, c);
		if (!o && c == '?' && !below && mistyped_command(cmd, argc, argv))
			return -EINVAL;
		if (!o || abbreviated(o, c, word))
			return complain(cmd, o ? 0 : c, word);
		if (o == &help_option) {
			options_help(below ? below : cmd);
			return 0;
		}
		if (convert(cmd, o, optarg, &v))
			return -EINVAL;
		if (o->field_size)
			store(ctx, o, &v);
		else if (cmd->set(ctx, o->id, &v))
			return -EINVAL;
	}
	return operands(cmd, argc, argv, ctx);
}

static void help_line(const struct option_def *o)
{
	char left[96];
	int n = 0;

	if (o->kind == OPTION_HEADING) {
		printf("\n%s:\n", o->help);
		return;
	}
	if (o->letter)
		n += snprintf(left + n, sizeof(left) - (size_t)n, "  -%c", o->letter);
	else
		n += snprintf(left + n, sizeof(left) - (size_t)n, "    ");
	if (o->name)
		n += snprintf(left + n, sizeof(left) - (size_t)n, "%s --%s", o->letter ? "," : " ",
			o->name);
	if (o->arg)
		snprintf(left + n, sizeof(left) - (size_t)n, " %s", o->arg);
	n = printf("%-*s", HELP_INDENT - 1, left);
	if (n >= HELP_INDENT)
		printf("\n%*s", HELP_INDENT - 1, "");
	putchar(' ');
	text_wrap(stdout, HELP_INDENT, HELP_INDENT, o->help);
}

void commands_print(const struct command *const *list)
{
	for (; *list; list++)
		printf("  %-10s %s\n", last_word(*list), (*list)->summary);
}

static void print_usage(const struct command *cmd)
{
	bool own = cmd->option_count || !cmd->commands;

	if (own)
		printf("Usage: %s [options]%s%s\n", call(cmd), cmd->operands ? " " : "",
			cmd->operands ? cmd->operands : "");
	if (cmd->commands && cmd->commands[0]->options != cmd->options)
		printf("%s %s COMMAND [options]\n", own ? "      " : "Usage:", call(cmd));
	printf("\n%s: %s.\n", cmd->program ? cmd->program : cmd->name, cmd->summary);
	if (!cmd->commands)
		return;
	printf("\nCommands:\n");
	commands_print(cmd->commands);
	printf("\n'ringtap help %s COMMAND' lists the options of one.\n", cmd->name);
}

void options_help(const struct command *cmd)
{
	const char *name = cmd->program ? cmd->program : cmd->name;

	print_usage(cmd);
	if (cmd->option_count && cmd->options[0].kind != OPTION_HEADING)
		putchar('\n');
	for (size_t i = 0; i < cmd->option_count; i++)
		if (option_taken(cmd, &cmd->options[i]))
			help_line(&cmd->options[i]);
	putchar('\n');
	help_line(&help_option);
	/* "flight top" is in the page of flight. */
	printf("\nMore in the manual: man %s%.*s\n", cmd->program ? "" : "ringtap-",
		(int)strcspn(name, " "), name);
}
