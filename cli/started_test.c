/* SPDX-License-Identifier: BSD-3-Clause */
/* Commands that become another program: run, archive and host. Nothing is started here. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/test_util.h"
#include "base/util.h"
#include "commands.h"
#include "test_command.h"

static int missing; /* errno of files that are looked for; 0: all are there */
static int refusal; /* errno of a start */
static char started[512], words[512];
static bool by_path; /* it was looked for in PATH */

int access(const char *path, int mode)
{
	errno = missing;
	return missing ? -1 : 0;
}

static int start(const char *program, char *const argv[], bool in_path)
{
	size_t at = 0;

	by_path = in_path;
	snprintf(started, sizeof(started), "%s", program);
	words[0] = 0;
	for (int i = 1; argv[i]; i++)
		at += (size_t)snprintf(words + at, sizeof(words) - at, "%s ", argv[i]);
	errno = refusal;
	return -1;
}

int execv(const char *program, char *const argv[])
{
	return start(program, argv, false);
}

int execvp(const char *program, char *const argv[])
{
	return start(program, argv, true);
}

static int set_up(void **state)
{
	static const char *const names[] = {"LD_PRELOAD", "LD_LIBRARY_PATH", "RINGTAP_PCAP_COPY",
		"RINGTAP_ARCHIVE", "RINGTAP_PROGRAM", "RINGTAP_ARCHIVE_DECODER"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		unsetenv(names[i]);
	missing = 0;
	refusal = ENOENT;
	started[0] = words[0] = 0;
	return 0;
}

static void refused(const struct command *cmd, const char *line, int status, const char *message)
{
	const struct test_refusal one = {line, status, message};

	test_refusals(cmd, &one, 1);
}

static void test_run_preloads_the_library(void **state)
{
	refused(&cmd_run, "-- tcpdump -i x", 127, "run: cannot start 'tcpdump': No such file");
	assert_string_equal(started, "tcpdump");
	assert_string_equal(words, "-i x ");
	assert_true(by_path);
	test_assert_has(getenv("LD_PRELOAD"), "/pcap/libringtap-pcap.so");
	test_assert_has(getenv("LD_LIBRARY_PATH"), "/pcap/shim");
	assert_null(getenv("RINGTAP_PCAP_COPY"));
}

static void test_run_keeps_what_was_preloaded(void **state)
{
	setenv("LD_PRELOAD", "libother.so", 1);
	setenv("LD_LIBRARY_PATH", "", 1);
	refused(&cmd_run, "--copy tcpdump", 127, "tcpdump");
	test_assert_has(getenv("LD_PRELOAD"), "libringtap-pcap.so:libother.so");
	test_assert_has_not(getenv("LD_LIBRARY_PATH"), ":");
	assert_string_equal(getenv("RINGTAP_PCAP_COPY"), "1");
}

static void test_run_has_the_statuses_of_a_shell(void **state)
{
	refusal = EACCES;
	refused(&cmd_run, "./file", 126, "run: cannot start './file': Permission denied");
}

static void test_run_without_its_library(void **state)
{
	missing = ENOENT;
	refused(&cmd_run, "tcpdump", 125, "libringtap-pcap.so: No such file or directory; install");
	assert_string_equal(started, "");
	assert_null(getenv("LD_PRELOAD"));
}

static void test_archive_passes_all_words(void **state)
{
	setenv("RINGTAP_ARCHIVE", "/x/ringtap-archive", 1);
	refused(&cmd_archive, "query -d a --json SELECT", STATUS_FAILED,
		"archive: cannot start '/x/ringtap-archive': No such file");
	assert_string_equal(started, "/x/ringtap-archive");
	assert_string_equal(words, "query -d a --json SELECT ");
	assert_false(by_path);
	test_assert_has(getenv("RINGTAP_PROGRAM"), "started_test");
	test_assert_has(getenv("RINGTAP_ARCHIVE_DECODER"), "libringtap-archive.so");
}

static void test_archive_leaves_settings_of_the_user(void **state)
{
	setenv("RINGTAP_PROGRAM", "mine", 1);
	setenv("RINGTAP_ARCHIVE_DECODER", "also mine", 1);
	refused(&cmd_archive, "top", STATUS_FAILED, "cannot start");
	assert_string_equal(getenv("RINGTAP_PROGRAM"), "mine");
	assert_string_equal(getenv("RINGTAP_ARCHIVE_DECODER"), "also mine");
}

static void test_archive_without_its_environment_is_looked_for_in_path(void **state)
{
	missing = ENOENT;
	refused(&cmd_archive, "top", STATUS_FAILED,
		"archive: its Python environment is missing; run 'make archive'");
	assert_string_equal(started, "ringtap-archive");
	assert_true(by_path);
	assert_null(getenv("RINGTAP_ARCHIVE_DECODER"));
	refusal = EACCES;
	refused(&cmd_archive, "top", STATUS_FAILED,
		"archive: cannot start 'ringtap-archive': Permission denied");
}

static void test_a_named_archive_that_is_missing_is_not_started(void **state)
{
	setenv("RINGTAP_ARCHIVE", "/x/ringtap-archive", 1);
	missing = ENOENT;
	refused(&cmd_archive, "top", STATUS_FAILED,
		"cannot start '/x/ringtap-archive': No such file");
	assert_string_equal(started, "");
}

static void test_help_of_archive_is_the_tables(void **state)
{
	test_assert_has(test_command_output(&cmd_archive, "--help", STATUS_OK),
		"Usage: ringtap archive COMMAND [options]");
	test_assert_has(
		test_command_output(&cmd_archive, "ingest --help", STATUS_OK), "--no-compress");
	assert_string_equal(started, "");
}

#define TEST(f) cmocka_unit_test_setup(f, set_up)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_run_preloads_the_library),
		TEST(test_run_keeps_what_was_preloaded),
		TEST(test_run_has_the_statuses_of_a_shell),
		TEST(test_run_without_its_library),
		TEST(test_archive_passes_all_words),
		TEST(test_archive_leaves_settings_of_the_user),
		TEST(test_archive_without_its_environment_is_looked_for_in_path),
		TEST(test_a_named_archive_that_is_missing_is_not_started),
		TEST(test_help_of_archive_is_the_tables),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
