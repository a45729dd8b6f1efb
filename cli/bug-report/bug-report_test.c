/* SPDX-License-Identifier: BSD-3-Clause */
/* `ringtap bug-report` with documents and a system that are stored in golden/. */
#include <gnu/libc-version.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "ask.h"
#include "base/test_command.h"
#include "base/test_util.h"
#include "base/util.h"
#include "cli/commands.h"
#include "common/pages.h"
#include "common/test_now.h"
#include "scrub.h"

/* ---- the system, instead of the C library */

int uname(struct utsname *out)
{
	strcpy(out->machine, "x86_64");
	return 0;
}

const char *gnu_get_libc_version(void)
{
	return "2.36";
}

int get_nprocs(void)
{
	return 2;
}

uid_t geteuid(void)
{
	return 0;
}

/* User 1234; others have no entry. */
struct passwd *getpwuid(uid_t uid)
{
	static struct passwd entry = {.pw_name = "bob", .pw_dir = "/srv/people/bob"};

	return uid == 1234 ? &entry : NULL;
}

/* ---- other commands, instead of ask.c */

static const char *broken; /* a command that fails; NULL: none */
static const char *end_text;
static char asked[256];

char *bug_report_ask(const char *const words[], char problem[ASK_PROBLEM])
{
	const char *name = words[0] + strspn(words[0], "-");
	char path[512], *text = NULL;
	size_t len;
	FILE *f;

	*asked = '\0';
	for (; *words; words++)
		snprintf(asked + strlen(asked), sizeof(asked) - strlen(asked), " %s", *words);
	*problem = '\0';
	if (broken && !strcmp(name, broken)) {
		snprintf(problem, ASK_PROBLEM, "%s: %s", name, end_text);
		return NULL;
	}
	snprintf(path, sizeof(path), GOLDEN "/%s.in", strcmp(name, "version") ? name : "versions");
	f = fopen(path, "re");
	assert_non_null(f);
	assert_true(getdelim(&text, &len, EOF, f) > 0);
	fclose(f);
	return text;
}

static int begin(void **state)
{
	test_now_set(TEST_NOW_MONO_NS, TEST_NOW_REAL_NS);
	rt_pages_root = GOLDEN "/root";
	setenv("HOME", "/home/operator", 1);
	unsetenv("SUDO_UID");
	broken = NULL;
	end_text = "signal 11 (Segmentation fault): no message";
	return 0;
}

static int end(void **state)
{
	rt_pages_root = "";
	return 0;
}

static void the_doctor_crashes(void)
{
	broken = "doctor";
}

static void list_crashes(void)
{
	broken = "list";
}

static void nothing_is_known(void)
{
	broken = "list";
	rt_pages_root = GOLDEN "/none";
}

static const struct test_golden rows[] = {
	{"report.txt", "", STATUS_OK, NULL},
	{"report.json", "--json|acme-upf", STATUS_OK, NULL},
	{"doctor-crashes.txt", "", STATUS_OK, the_doctor_crashes},
	{"list-crashes.txt", "", STATUS_OK, list_crashes},
	{"nothing.txt", "", STATUS_OK, nothing_is_known},
};

static const struct test_refusal refused[] = {
	{"--duration|0.5s", STATUS_USAGE, "--duration 0.5s: out of range; give 1s to 1h"},
	{"-w|/nonexistent/report", STATUS_FAILED, "/nonexistent/report: No such file"},
};

/* ---- details */

static void only_named_applications_are_watched(void **state)
{
	struct test_output o = test_command(&cmd_bug_report, "--duration|10s|acme-upf|other");

	assert_int_equal(o.status, STATUS_OK);
	assert_string_equal(asked, " doctor --json --no-packets --duration 10s acme-upf other");
	test_output_free(&o);
}

static void a_file_has_the_same(void **state)
{
	struct test_output o;
	char text[16384] = "";
	FILE *f;

	test_folder_enter();
	o = test_command(&cmd_bug_report, "-w|report");
	assert_int_equal(o.status, STATUS_OK);
	assert_string_equal(o.out, "");
	test_output_free(&o);
	f = fopen("report", "re");
	assert_non_null(f);
	assert_true(fread(text, 1, sizeof(text) - 1, f) > 0);
	fclose(f);
	test_folder_leave();
	test_golden_text(GOLDEN, "report.txt", text);
}

/* The problem of a list that fails. */
static void check_problem(const char *words, const char *text, const char *expected)
{
	struct test_output o;
	char line[512];

	broken = "list";
	end_text = text;
	o = test_command(&cmd_bug_report, words);
	assert_int_equal(o.status, STATUS_OK);
	snprintf(line, sizeof(line), "  - list: %s\n", expected);
	if (!strstr(o.out, line))
		fail_msg("no%s in%s", line, strstr(o.out, "\nproblems"));
	test_output_free(&o);
}

static void applications_that_are_not_listed_have_no_name(void **state)
{
	check_problem("acme-upf|17",
		"status 1: no application is called 'acme-upf', 17 are called acme-upf2",
		"status 1: no application is called 'APP', 17 are called acme-upf2");
	check_problem("a\tb\033|caf\xe9", "status 1: 'a b?' 'caf\xe9'", "status 1: 'APP' 'APP'");
	check_problem("", "skipped /run/user/7/dpdk/other-upf/8 of user 7: no other-upf",
		"skipped /run/user/7/dpdk/APP/8 of user 7: no APP");
}

static void an_operand_that_is_a_program_stays(void **state)
{
	struct test_output o = test_command(&cmd_bug_report, "vpp");

	assert_int_equal(o.status, STATUS_OK);
	assert_non_null(strstr(o.out, "other_programs:\n  - vpp\n"));
	test_output_free(&o);
}

static void users_have_no_name(void **state)
{
	setenv("SUDO_UID", "1234", 1);
	check_problem("home", "'/home/alice.smith/rt/build', /home/operator/x /home/operator.b/y",
		"'HOME/rt/build', HOME/x HOME/y");
	check_problem("", "/srv/people/bob/rt /srv/people/bobby /var/home/eve: (/home/x\\eve)",
		"HOME/rt /srv/people/bobby HOME: (HOME)");
	setenv("HOME", "/srv/home/staff/joe/", 1);
	check_problem("", "/srv/home/staff/joe/rt", "HOME/rt");
	setenv("HOME", "/", 1);
	check_problem("", "/usr/lib /home", "/usr/lib /home");
	setenv("HOME", "/home/", 1);
	check_problem("", "/home/alice/rt", "HOME/rt");
}

static void names_and_addresses_are_replaced(void **state)
{
	static const char *const cases[][2] = {
		{"app and app2, app-3, an app", "APP and app2, app-3, an APP"},
		{"app/7 of app", "APP7 of APP"},
		{"from 192.0.2.1:80 to 10.1.2.3", "from ADDRESS:80 to ADDRESS"},
		{"02:00:00:00:00:ff 02-00-00-00-00-ff", "ADDRESS ADDRESS"},
		{"2001:db8::1 fe80::1:2 ::1 1:2:3:4:5:6:7:8", "ADDRESS ADDRESS ADDRESS ADDRESS"},
		{"0x7ffe12345678", "ADDRESS"},
		{"DPDK 22.11.7 at 12:34:56.789, 0x88b5, 1,234",
			"DPDK 22.11.7 at 12:34:56.789, 0x88b5, 1,234"},
		{"", ""},
	};
	struct scrub s;

	assert_int_equal(scrub_init(&s), 0);
	scrub_name(&s, "app", "APP");
	scrub_name(&s, "app/7", "APP7");
	scrub_name(&s, "", "never");
	scrub_name(&s, NULL, "never");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		json_t *j = scrub_text(&s, cases[i][0]);

		assert_string_equal(json_string_value(j), cases[i][1]);
		json_decref(j);
	}
	assert_true(json_is_null(scrub_text(&s, NULL)));
	scrub_free(&s);
}

#define CASE(f) cmocka_unit_test_setup(f, begin)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(only_named_applications_are_watched),
		CASE(a_file_has_the_same),
		CASE(applications_that_are_not_listed_have_no_name),
		CASE(an_operand_that_is_a_program_stays),
		CASE(users_have_no_name),
		CASE(names_and_addresses_are_replaced),
	};
	int failed = test_goldens(
		&cmd_bug_report, GOLDEN, rows, sizeof(rows) / sizeof(rows[0]), begin, end);

	failed += test_refusals(&cmd_bug_report, refused, sizeof(refused) / sizeof(refused[0]));
	return failed + cmocka_run_group_tests(tests, NULL, NULL);
}
