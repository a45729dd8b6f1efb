/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by tests of `ringtap record` with a fake reader: packets, a command line, a folder. */
#ifndef RINGTAP_CLI_RECORD_TEST_RECORD_H
#define RINGTAP_CLI_RECORD_TEST_RECORD_H

#include <glob.h>
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/fake_reader.h"
#include "base/test_util.h"
#include "base/util.h"

static const struct fake_run runs[] = {
	{0, 0, 100, 60},
	{0, 1, 50, 60},
	{0, 0, 3, 1500},
	{0, 1, 1, 9728},
	{0, 0, 1000, 61},
};
#define RUNS  5
#define TOTAL 1154u
#define PORT0 1103u

static inline int setup(void **state)
{
	fake = (struct fake){.apps = 1, .runs = runs, .run_count = RUNS};
	test_folder_enter();
	return 0;
}

static inline int teardown(void **state)
{
	test_folder_leave();
	return 0;
}

static inline int record(const char *line)
{
	char copy[512];
	char *argv[32] = {"record"};
	int argc = 1;

	snprintf(copy, sizeof(copy), "%s", line);
	for (char *w = strtok(copy, " "); w; w = strtok(NULL, " "))
		argv[argc++] = w;
	argv[argc] = NULL;
	return cmd_record.run(&cmd_record, argc, argv);
}

/* The names that match, in order. */
static inline char **names(const char *pattern, size_t *count)
{
	static glob_t g;

	globfree(&g);
	*count = glob(pattern, 0, NULL, &g) ? 0 : g.gl_pathc;
	return g.gl_pathv;
}

#define RECORD_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

#endif
