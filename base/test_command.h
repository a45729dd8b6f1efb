/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs commands in the process of a test, for unit tests only. */
#ifndef RINGTAP_BASE_TEST_COMMAND_H
#define RINGTAP_BASE_TEST_COMMAND_H

#include <stddef.h>

#include "command.h"

/* Output of a command, or of anything else. */
struct test_output {
	int status;
	char *out, *err;
};

/* From here on what is printed goes to memory; the second one ends that. The caller frees. */
void test_output_begin(void);
void test_output_end(struct test_output *o);
void test_output_free(struct test_output *o);

/* Runs it with arguments that are separated by '|'; "" are none. */
struct test_output test_command(const struct command *c, const char *args);

/* Arguments that are refused. */
struct test_refusal {
	const char *args;
	int status;
	const char *says; /* a part of the only line, on stderr */
};

/* A test of each row, of its arguments' name: it prints one line, and makes no file in the working
 * folder, which is an empty one. Returns the number of those that failed. */
int test_refusals(const struct command *c, const struct test_refusal *rows, size_t count);

/* Compares the standard output of a command with the file of this name in the folder. With
 * RINGTAP_GOLDEN=write in the environment the file is written: read the difference. */
struct test_golden {
	const char *file, *args;
	int status;
	void (*prepare)(void); /* NULL: nothing */
};

/* A test of each row. */
int test_goldens(const struct command *c, const char *folder, const struct test_golden *rows,
	size_t count, int (*begin)(void **state), int (*end)(void **state));
void test_golden_text(const char *folder, const char *file, const char *text);

#endif
