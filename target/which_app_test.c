/* SPDX-License-Identifier: BSD-3-Clause */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/util.h"
#include "test_apps.h"
#include "which_app.h"

static char folder[] = "/tmp/ringtap-which-app-XXXXXX";

static int open_in(const char *root, const char *name)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s%s%s", root, folder, name);
	fd = address_open(path, O_PATH | O_DIRECTORY);
	if (fd >= 0)
		close(fd);
	return fd;
}

/* A container can make any file: a link there would lead out of it. */
static void test_links_of_containers_are_not_followed(void **state)
{
	char link[64], target[64], root[32];

	assert_non_null(mkdtemp(folder));
	snprintf(target, sizeof(target), "%s/app", folder);
	snprintf(link, sizeof(link), "%s/link", folder);
	assert_int_equal(mkdir(target, 0700), 0);
	assert_int_equal(symlink(target, link), 0);
	assert_true(open_in("", "/app") >= 0);
	assert_true(open_in("", "/link") >= 0);
	assert_true(open_in("/proc/self/root", "/link") >= 0); /* not by number: the caller's own */
	snprintf(root, sizeof(root), "/proc/%d/root", (int)getpid());
	assert_true(open_in(root, "/app") >= 0);
	assert_true(open_in(root, "/app#1") >= 0);
	assert_true(open_in(root, "/app/4711") >= 0);
	assert_true(open_in(root, "/link") < 0);
	assert_true(open_in(root, "/link/4711") < 0);
	unlink(link);
	rmdir(target);
	rmdir(folder);
}

/* ---- words */

/* Two testpmds, a VPP with a secondary process that is its program, too, and one in a container. */
static int set_up(void **state)
{
	static const struct ringtap_port_info p0 = {.name = "p0", .device = "p0"};
	static const struct test_app apps[TEST_APPS_MAX] = {
		{.name = "pmd", .dir = "/run/dpdk/pmd", .pid = 4711, .ports = &p0, .port_count = 1},
		{.name = "pmd2", .dir = "/run/dpdk/pmd2", .pid = 12},
		{.name = "vpp", .dir = "/run/dpdk/vpp", .pid = 13},
		{.name = "vpp/14",
			.dir = "/run/dpdk/vpp/14",
			.pid = 14,
			.secondary = true,
			.primary = 2}};

	memcpy(test_apps.app, apps, sizeof(apps));
	test_apps.count = TEST_APPS_MAX;
	test_apps.process[0].program = test_apps.process[1].program = "dpdk-testpmd";
	test_apps.process[2].program = test_apps.process[3].program = "vpp_main";
	for (unsigned i = 0; i < TEST_APPS_MAX; i++)
		test_apps.process[i].pid = apps[i].pid;
	test_apps.process_count = TEST_APPS_MAX;
	return 0;
}

static void assert_found(const char *text, bool port_alone, int app, const char *port)
{
	struct ringtap_apps *apps;
	const char *its = "";
	int found = -1;

	assert_int_equal(ringtap_apps_find(&apps), 0);
	assert_int_equal(target_find("drops", apps, text, port_alone, &found, &its), 0);
	assert_int_equal(found, app);
	if (port)
		assert_string_equal(its, port);
	else
		assert_null(its);
	ringtap_apps_free(apps);
}

static void assert_refused(const char *text, bool port_alone, const char *why)
{
	struct ringtap_apps *apps;
	const char *port;
	int app;

	assert_int_equal(ringtap_apps_find(&apps), 0);
	assert_int_equal(target_find("drops", apps, text, port_alone, &app, &port), -ENOENT);
	assert_string_equal(message_last(), why);
	ringtap_apps_free(apps);
}

static void words_mean_names_numbers_and_programs(void **state)
{
	static const struct {
		const char *text;
		int app;
		const char *port;
	} cases[] = {{"pmd", 0, NULL}, {"pmd:", 0, NULL}, {"pmd:p0", 0, "p0"}, {"4711:p0", 0, "p0"},
		{"12", 1, NULL}, {"12:", 1, NULL}, {"pmd2:0000:03:00.0", 1, "0000:03:00.0"},
		{"vpp_main", 2, NULL}, {"vpp_main:1", 2, "1"}, {"vpp/14", 3, NULL}, {"14", 3, NULL},
		{":p0", 0, "p0"}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_found(cases[i].text, false, cases[i].app, cases[i].port);
		assert_found(cases[i].text, true, cases[i].app, cases[i].port);
	}
}

/* A name before a program: it is the user's own choice. */
static void names_come_before_programs(void **state)
{
	test_apps.app[1].name = "vpp_main";
	assert_found("vpp_main", false, 1, NULL);
}

static void the_nearest_program_is_named(void **state)
{
	assert_refused("vpp_mian", false,
		"drops: no application is called 'vpp_mian'; did you mean 'vpp_main'?");
	/* One that runs a DPDK without telemetry and probe: no command but attach takes it. */
	test_apps.process[TEST_APPS_MAX - 1].pid = 99;
	test_apps.process[TEST_APPS_MAX - 1].program = "spdk_tgt";
	assert_refused("spdk_tg", false,
		"drops: no application is called 'spdk_tg'; 'ringtap list' shows what there is");
}

static void programs_of_several_applications_are_ambiguous(void **state)
{
	static const char why[] = "drops: several applications run 'dpdk-testpmd' (pmd (pid 4711), "
				  "pmd2 (pid 12)); name one by its name or process id";

	assert_refused("dpdk-testpmd", false, why);
	assert_refused("dpdk-testpmd:p0", false, why);
	assert_refused("dpdk-testpmd", true, why);
	test_apps.process[1].program = "other";
	assert_found("dpdk-testpmd:p0", false, 0, "p0");
	/* A secondary process whose primary runs another program is an application of its own. */
	test_apps.process[3].program = "other";
	assert_refused("other", false,
		"drops: several applications run 'other' (pmd2 (pid 12), vpp/14 (pid 14)); name one by "
		"its name or process id");
}

static void a_port_alone_needs_its_colon(void **state)
{
	assert_refused("p0", false,
		"drops: no application is called 'p0'; 'ringtap list' shows what there is");
	assert_found("p0", true, 0, "p0");
	/* It cannot be an application with a port. */
	assert_refused(
		"pm:", false, "drops: no port or application is called 'pm'; did you mean 'pmd'?");
	assert_refused("0000:03:00.0", false,
		"drops: no port or application is called '0000:03:00.0'; 'ringtap list' shows what "
		"there is");
}

static void names_may_have_colons(void **state)
{
	test_apps.app[2].name = "a:b:c";
	assert_found("a:b:c", false, 2, NULL);
	assert_found("a:b:c", true, 2, NULL);
	assert_found("a:b:c:", false, 2, NULL);
	assert_found("a:b:c:0000:03:00.0", false, 2, "0000:03:00.0");
	assert_refused("a:b", false,
		"drops: no port or application is called 'a:b'; 'ringtap list' shows what there "
		"is");
	test_apps.app[2].name = "pmd:p0";
	assert_found("pmd:p0", false, 0, "p0");
}

/* One of another user may be what the user means. */
static void what_was_skipped_is_named(void **state)
{
	test_apps.count = 0;
	test_apps.notes = 0;
	assert_int_equal(print_no_apps("drops", NULL, ""), -ENOENT);
	assert_string_equal(message_last(),
		"drops: no running DPDK application found; run ringtap as its user or as root");
	test_apps.notes = 1;
	assert_int_equal(print_no_apps("drops", NULL, "start it, and "), -ENOENT);
	assert_string_equal(message_last(),
		"drops: no running DPDK application found (skipped /run/dpdk/x belongs to user 7, "
		"not to user 0); start it, and run ringtap as its user or as root");
	test_apps.notes = 2;
	(void)print_no_apps("drops", NULL, "");
	assert_non_null(strstr(message_last(), "not to user 0, and others); run"));
}

static void an_application_that_starts_is_tried_again(void **state)
{
	print_not_attached(
		"record", "np", -EAGAIN, "it is starting: DPDK is not initialised in it yet");
	assert_string_equal(message_last(),
		"record: cannot attach to 'np': it is starting: DPDK is not initialised in it yet; "
		"try again in a moment");
}

static void an_interrupted_attempt_has_no_advice(void **state)
{
	print_not_attached("record", "np", -ECANCELED, "interrupted");
	assert_string_equal(message_last(), "record: cannot attach to 'np': interrupted");
}

static void without_a_name_the_only_application_is_meant(void **state)
{
	assert_refused(NULL, false,
		"drops: there are several applications (pmd, pmd2, vpp); name one, as in 'ringtap "
		"drops pmd'");
	test_apps.app[1].error = test_apps.app[2].error = -EPROTONOSUPPORT;
	assert_found(NULL, false, 0, NULL);
	assert_found(":", false, 0, NULL);
	test_apps.app[1].error = 0;
	test_apps.app[1].ports = test_apps.app[0].ports;
	test_apps.app[1].port_count = 1;
	assert_refused(":p0", false,
		"drops: there are several applications (pmd, pmd2, vpp); name one, as in 'ringtap "
		"drops pmd:p0'");
	test_apps.count = 1;
	assert_found(":p7", false, 0, "p7"); /* attaching says which ports there are */
}

/* This process is the application: see list_test.c. */
static void a_port_may_be_a_hidden_device(void **state)
{
	static const struct ringtap_port_info vm0 = {.name = "vm0", .driver = "vhost-user"};
	struct ringtap_apps *apps;
	struct ringtap_list *list;

	assert_int_equal(ringtap_apps_find(&apps), 0);
	assert_int_equal(target_pid(apps, test_apps.app[1].dir), 12);
	assert_int_equal(target_pid(apps, "another"), 0);
	ringtap_apps_free(apps);
	list = target_ports(test_apps.app[0].dir);
	print_no_port("record", "pmd", (uint32_t)getpid(), "vm0", list);
	assert_string_equal(
		message_last(), "record: application 'pmd' has no port 'vm0'; there is p0");
	assert_int_equal(prctl(PR_SET_NAME, "vhost-events"), 0);
	print_no_port("record", "pmd", (uint32_t)getpid(), "vm0", list);
	assert_string_equal(message_last(),
		"record: application 'pmd' has no port 'vm0'; there is p0; its vhost ports are not "
		"visible, as the program contains DPDK's vhost library: only calls between files "
		"can be diverted");
	ringtap_list_free(list);
	test_apps.app[0].ports = &vm0;
	list = target_ports(test_apps.app[0].dir);
	print_no_port("record", "pmd", (uint32_t)getpid(), "other", list);
	assert_null(strstr(message_last(), "not visible"));
	ringtap_list_free(list);
	assert_int_equal(prctl(PR_SET_NAME, "which_app_test"), 0);
}

static void words_with_ports_are_split(void **state)
{
	struct target_candidates others;
	struct ringtap_apps *apps;
	const char *port;

	test_apps.count = 1;
	assert_int_equal(ringtap_apps_find(&apps), 0);
	assert_int_equal(target_word(apps, test_apps.app[0].name, &port, &others), 0);
	assert_null(port);
	assert_int_equal(target_word(apps, ":p0", &port, &others), 0);
	assert_string_equal(port, "p0");
	assert_int_equal(target_word(apps, "no-such:p0", &port, &others), -ENOENT);
	assert_int_equal(target_word(apps, "", &port, &others), -ENOENT);
	ringtap_apps_free(apps);
	test_apps.count = 2;
	assert_int_equal(ringtap_apps_find(&apps), 0);
	assert_int_equal(target_word(apps, ":p0", &port, &others), -ENOTUNIQ);
	ringtap_apps_free(apps);
}

static void words_that_are_too_long_or_empty_mean_nothing(void **state)
{
	char word[300];
	struct ringtap_apps *apps;

	memset(word, 'x', sizeof(word));
	assert_int_equal(ringtap_apps_find(&apps), 0);
	assert_int_equal(target_app(apps, word, sizeof(word), NULL), -ENOENT);
	assert_int_equal(target_app(apps, word, 0, NULL), -ENOENT);
	assert_int_equal(target_app(apps, "0", 1, NULL), -ENOENT);
	ringtap_apps_free(apps);
}

#define with_apps(f) cmocka_unit_test_setup(f, set_up)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_links_of_containers_are_not_followed),
		with_apps(words_mean_names_numbers_and_programs),
		with_apps(names_come_before_programs),
		with_apps(the_nearest_program_is_named),
		with_apps(programs_of_several_applications_are_ambiguous),
		with_apps(a_port_alone_needs_its_colon),
		with_apps(names_may_have_colons),
		with_apps(what_was_skipped_is_named),
		with_apps(an_application_that_starts_is_tried_again),
		with_apps(an_interrupted_attempt_has_no_advice),
		with_apps(without_a_name_the_only_application_is_meant),
		with_apps(a_port_may_be_a_hidden_device),
		with_apps(words_with_ports_are_split),
		with_apps(words_that_are_too_long_or_empty_mean_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
