/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>

#include "base/test_util.h"
#include "base/util.h"
#include "test_command.h"

#define WORDS_MAX 24

static int run(const struct command *cmd, const char *line)
{
	static char copy[512];
	char name[32], *argv[WORDS_MAX + 1] = {name};
	int argc = 1;

	snprintf(name, sizeof(name), "%s", cmd->name);
	assert_true((size_t)snprintf(copy, sizeof(copy), "%s", line) < sizeof(copy));
	for (char *w = strtok(copy, " "); w && argc < WORDS_MAX; w = strtok(NULL, " "))
		argv[argc++] = w;
	return cmd->run(cmd, argc, argv);
}

const char *test_command_output(const struct command *cmd, const char *line, int status)
{
	const char *text;
	int got;

	test_stdout_begin();
	got = run(cmd, line);
	text = test_stdout_end();
	if (got != status)
		fail_msg("'%s %s' ended with %d, and '%s'", cmd->name, line, got, message_last());
	return text;
}

json_t *test_document(const struct command *cmd, const char *line)
{
	json_t *j = json_loads(test_command_output(cmd, line, STATUS_OK), 0, NULL);

	assert_non_null(j);
	return j;
}

json_t *test_application(const struct command *cmd, const char *line)
{
	json_t *doc = test_document(cmd, line), *list = json_object_get(doc, "applications");
	json_t *app = json_incref(json_array_get(list, 0));

	assert_int_equal(json_array_size(list), 1);
	json_decref(doc);
	return app;
}

json_int_t test_number(const json_t *j, const char *key)
{
	const json_t *value = json_object_get(j, key);

	if (!json_is_integer(value))
		fail_msg("%s is not a number", key);
	return json_integer_value(value);
}

json_t *test_at(const json_t *j, const char *key, size_t i)
{
	return json_array_get(json_object_get(j, key), i);
}

void test_refusals(const struct command *cmd, const struct test_refusal *list, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const char *text = test_command_output(cmd, list[i].line, list[i].status);

		if (*text || !strstr(message_last(), list[i].message))
			fail_msg("'%s %s' gave '%s', and printed '%s'", cmd->name, list[i].line,
				message_last(), text);
	}
}

void test_assert_has(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("'%s' is not in\n%s", part, text);
}

void test_assert_has_not(const char *text, const char *part)
{
	if (strstr(text, part))
		fail_msg("'%s' is in\n%s", part, text);
}

void test_assert_fits(const char *text)
{
	char *copy = strdup(text);

	for (char *line = strtok(copy, "\n"); line; line = strtok(NULL, "\n"))
		if (text_columns(line) > 80)
			fail_msg("wider than 80 columns: %s", line);
	free(copy);
}
