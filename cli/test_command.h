/* SPDX-License-Identifier: BSD-3-Clause */
/* For unit tests of commands: runs one in this process. */
#ifndef RINGTAP_CLI_TEST_COMMAND_H
#define RINGTAP_CLI_TEST_COMMAND_H

#include <jansson.h>

#include "base/command.h"

/* Runs a command with the words of a line, fails the test unless it ends with this status, and
 * returns its standard output, as test_stdout_end(). */
const char *test_command_output(const struct command *cmd, const char *line, int status);

/* The JSON that a command prints; fails the test unless it ends with STATUS_OK. The caller frees
 * it. */
json_t *test_document(const struct command *cmd, const char *line);
/* Its only application. The caller frees it. */
json_t *test_application(const struct command *cmd, const char *line);
/* The integer of a key; fails the test if there is none. */
json_int_t test_number(const json_t *j, const char *key);
/* Element i of the array of a key. */
json_t *test_at(const json_t *j, const char *key, size_t i);

struct test_refusal {
	const char *line;
	int status;
	const char *message; /* that the line's message contains */
};
/* Each line is refused so, with nothing on standard output. */
void test_refusals(const struct command *cmd, const struct test_refusal *list, size_t count);

/* Fails the test unless text contains part, or does not. */
void test_assert_has(const char *text, const char *part);
void test_assert_has_not(const char *text, const char *part);
/* Fails the test if a line is wider than a terminal of 80 columns. */
void test_assert_fits(const char *text);

#endif
