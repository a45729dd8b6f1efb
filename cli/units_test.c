/* SPDX-License-Identifier: BSD-3-Clause */
/* The option tables of all commands, by the rules of docs/interface.md for units. */
#include <stdio.h>
#include <string.h>

#include "base/test_util.h"
#include "base/util.h"
#include "commands.h"

static void refuse_without_unit(
	const struct command *c, const struct option_def *o, const char *units)
{
	char word[64], message[128], *argv[] = {"x", word, "5", NULL};

	snprintf(word, sizeof(word), o->name ? "--%s" : "-%s", o->name ? o->name : &o->letter);
	snprintf(message, sizeof(message), ": '5' has no unit; %s?", units);
	/* Values that are refused do not reach the context. */
	if (options_parse(c, 3, argv, NULL) >= 0 || !strstr(message_last(), message))
		fail_msg("%s %s 5: %s", c->name, word, message_last());
}

/* "default 5", "default: 10". */
static bool default_without_unit(const char *help)
{
	const char *at = strstr(help, "default");

	if (!at)
		return false;
	at += strcspn(at, " ");
	at += strspn(at, " ");
	at += strspn(at, "0123456789");
	return at[-1] >= '1' && at[-1] <= '9' && !strchr("KMGTBnumshd", *at);
}

/* Returns whether it takes a time or a size. */
static bool check(const struct command *c, const struct option_def *o)
{
	const char *arg = o->arg ? o->arg : "";

	if (strstr(arg, "SECONDS") || strstr(arg, "MIB") || strstr(o->help, "number of seconds"))
		fail_msg("%s --%s: its unit is that of the option", c->name, o->name);
	if (o->kind == OPTION_TIME)
		refuse_without_unit(c, o, "5s or 5ms");
	else if (o->kind == OPTION_SIZE)
		refuse_without_unit(c, o, "5M or 5K");
	else
		return false;
	if (strcmp(arg, o->kind == OPTION_TIME ? "TIME" : "SIZE"))
		fail_msg("%s --%s takes a %s", c->name, o->name, arg);
	if (default_without_unit(o->help))
		fail_msg("%s --%s: a default without a unit: %s", c->name, o->name, o->help);
	if (o->min > o->max)
		fail_msg("%s --%s: no value is in range", c->name, o->name);
	return true;
}

static unsigned check_all(const struct command *c)
{
	unsigned checked = 0;

	for (size_t i = 0; i < c->option_count; i++)
		checked += check(c, &c->options[i]);
	return checked;
}

static void options_of_all_commands_have_units(void **state)
{
	unsigned checked = 0;

	(void)state;
	for (const struct command *const *c = commands; *c; c++) {
		checked += check_all(*c);
		for (const struct command *const *below = (*c)->commands; below && *below; below++)
			checked += check_all(*below);
	}
	assert_true(checked >= 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(options_of_all_commands_have_units),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
