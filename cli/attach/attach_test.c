/* SPDX-License-Identifier: BSD-3-Clause */
/* `ringtap attach` and `ringtap detach`, with applications that the tests make. */
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/signals.h"
#include "base/test_util.h"
#include "base/util.h"
#include "target/attach_app.h"
#include "cli/commands.h"
#include "target/process_events.h"
#include "target/test_apps.h"

/* The kernel would report processes of the machine, at times that have nothing to do with those of
 * the tests. */
int process_events_open(void)
{
	return -EPERM;
}

void process_events_take(int fd)
{
}

static int set_up(void **state)
{
	memset(&test_apps, 0, sizeof(test_apps));
	test_apps.app[0] = (struct test_app){.name = "pmd", .dir = "/no/pmd", .pid = 4711};
	test_apps.app[1] = (struct test_app){.name = "other", .dir = "/no/other", .pid = 12};
	test_apps.count = 2;
	return 0;
}

static const char *printed;

static int run(const struct command *cmd, const char *line)
{
	char copy[64];
	char *argv[8] = {(char *)cmd->name};
	int argc = 1, status;

	snprintf(copy, sizeof(copy), "%s", line);
	for (char *w = strtok(copy, " "); w; w = strtok(NULL, " "))
		argv[argc++] = w;
	argv[argc] = NULL;
	message_print("%s", "nothing"); /* before this command */
	test_stdout_begin();
	status = cmd->run(cmd, argc, argv);
	printed = test_stdout_end();
	return status;
}

static void assert_begins(const char *text, const char *with)
{
	if (strncmp(text, with, strlen(with)))
		fail_msg("'%s' instead of '%s'", text, with);
}

static void probe_is_loaded(void **state)
{
	test_apps.app[0].error = -EPROTONOSUPPORT;
	test_apps.telemetry = "{\"/info\":{\"version\":\"DPDK 22.11.7\",\"pid\":4711}}";
	assert_int_equal(run(&cmd_attach, "pmd"), STATUS_OK);
	assert_begins(printed, "The probe is in 'pmd' (pid 4711), after ");
	assert_null(strstr(printed, "runtime folder"));
	assert_int_equal(test_apps.injected, 4711);
	assert_string_equal(test_apps.dpdk, "DPDK 22.11.7");
	assert_string_equal(test_apps.asked, "/info");
	assert_string_equal(message_last(), "nothing");
}

/* This process is the application: see list_test.c. */
static void devices_of_a_static_vhost_library_are_noted(void **state)
{
	static const struct ringtap_port_info port = {.name = "nv", .driver = "net_vhost"};
	static const char why[] = "\nNote: its vhost ports are not visible";

	test_apps.app[0].pid = (uint32_t)getpid();
	for (unsigned i = 0; i < 3; i++) {
		test_apps.app[0].error = -EPROTONOSUPPORT;
		assert_int_equal(prctl(PR_SET_NAME, i ? "vhost-events" : "attach_test"), 0);
		test_apps.app[0].ports = &port;
		test_apps.app[0].port_count = i == 2;
		assert_int_equal(run(&cmd_attach, "pmd"), STATUS_OK);
		assert_int_equal(strstr(printed, why) != NULL, i == 1);
	}
	assert_int_equal(prctl(PR_SET_NAME, "attach_test"), 0);
}

static void version_may_be_unknown(void **state)
{
	static const char *const answers[] = {
		NULL, "", "{}", "{\"/info\":null}", "{\"/info\":{\"version\":7}}", "[]", "{"};

	for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
		test_apps.app[0].error = -ENOENT; /* neither telemetry nor the probe */
		test_apps.telemetry = answers[i];
		assert_int_equal(run(&cmd_attach, "4711"), STATUS_OK);
		assert_int_equal(test_apps.injected, 4711);
		assert_string_equal(test_apps.dpdk, "-");
	}
}

static void program_name_means_its_only_process(void **state)
{
	test_apps.process[0].pid = 815; /* no application yet */
	test_apps.process[1].pid = 4711;
	test_apps.process[0].program = test_apps.process[1].program = "vpp";
	test_apps.process_count = 1;
	assert_int_equal(run(&cmd_attach, "vpp"), STATUS_OK);
	assert_int_equal(test_apps.injected, 815);
	test_apps.injected = 0;
	test_apps.process[1].program = "testpmd";
	test_apps.process_count = 2;
	assert_int_equal(run(&cmd_attach, "testpmd"), STATUS_OK);
	assert_string_equal(printed, "'pmd' (pid 4711) has the probe already\n");
	test_apps.process[1].program = "vpp";
	assert_int_equal(run(&cmd_attach, "vpp"), STATUS_FAILED);
	assert_string_equal(message_last(),
		"attach: several applications run 'vpp' (pmd (pid 4711), pid 815); name one by its "
		"name or process id");
	assert_int_equal(test_apps.injected, 0);
}

static void start_process(void *arg)
{
	test_apps.process_count = 1;
}

static void end_process(void *arg)
{
	test_apps.process_count = 0;
}

static void interrupt(void *arg)
{
	raise(SIGTERM);
}

/* EAL has made its threads, and may not have finished yet. */
static void wait_leaves_a_process_alone_that_starts(void **state)
{
	test_now_set(TEST_NOW_MONO_NS, TEST_NOW_REAL_NS);
	test_apps.process[0].pid = 1u << 30; /* more than the kernel gives */
	test_apps.process[0].program = "vpp";
	test_now_after(7 * NS_PER_S / 2, start_process, NULL);
	test_now_after(9 * NS_PER_S / 2, interrupt, NULL);
	assert_int_equal(run(&cmd_attach, "--wait -q vpp"), STATUS_OK);
	assert_int_equal(test_apps.injected, 0);
	stop_forget();
}

/* Twice a second the applications are looked at. The kernel has no such process: an attached one
 * has ended at the next look. */
static void wait_attaches_after_each_restart(void **state)
{
	test_now_set(TEST_NOW_MONO_NS, TEST_NOW_REAL_NS);
	test_apps.process[0].pid = 1u << 30;
	test_apps.process[0].program = "vpp";
	test_now_after(7 * NS_PER_S, start_process, NULL);
	test_now_after(33 * NS_PER_S / 4, end_process, NULL); /* attached to at 8 s */
	test_now_after(20 * NS_PER_S, start_process, NULL);
	test_now_after(81 * NS_PER_S / 4, end_process, NULL); /* at 20 s: its number is known */
	test_now_after(30 * NS_PER_S, interrupt, NULL);
	assert_int_equal(run(&cmd_attach, "--wait --json vpp"), STATUS_OK);
	assert_int_equal(test_apps.injected, 1u << 30);
	assert_int_equal(test_count(printed, "\"command\":\"attach\""), 2);
	assert_int_equal(test_count(printed, "\n"), 2); /* a line each */
	stop_forget();
}

static void probe_that_is_there_stays(void **state)
{
	assert_int_equal(run(&cmd_attach, "pmd"), STATUS_OK);
	assert_string_equal(printed, "'pmd' (pid 4711) has the probe already\n");
	assert_int_equal(test_apps.injected, 0);
	assert_string_equal(test_apps.asked, "");
	snprintf(test_apps.app[0].info.program, sizeof(test_apps.app[0].info.program), "testpmd");
	assert_int_equal(run(&cmd_attach, "--json pmd"), STATUS_OK);
	assert_non_null(strstr(printed, "\"program\": \"testpmd\""));
}

static void probe_that_sleeps_is_woken(void **state)
{
	test_apps.app[0].error = -EUNATCH;
	test_apps.telemetry = "{}";
	assert_int_equal(run(&cmd_attach, "pmd"), STATUS_OK);
	assert_begins(printed, "The probe is in 'pmd' (pid 4711), after ");
	assert_int_equal(test_apps.injected, 0);
	assert_string_equal(test_apps.asked, "/ringtap/attach,wake");
	test_apps.app[0].error = -EUNATCH;
	test_apps.app[0].why = "'ringtap attach' wakes it";
	test_apps.telemetry = NULL;
	assert_int_equal(run(&cmd_attach, "pmd"), STATUS_FAILED);
	assert_string_equal(message_last(),
		"attach: cannot load the probe into 'pmd' (pid 4711): its probe is detached, and "
		"its telemetry socket does not answer: Connection refused");
}

/* A second probe would not help, or the process must not be touched. */
static void some_errors_are_final(void **state)
{
	static const int errors[] = {-EHOSTDOWN, -EPROTOTYPE, -EACCES};

	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		test_apps.app[0].error = errors[i];
		test_apps.app[0].why = "a sentence";
		assert_int_equal(run(&cmd_attach, "pmd"), STATUS_FAILED);
		assert_string_equal(message_last(),
			"attach: cannot load the probe into 'pmd' (pid 4711): a sentence");
		assert_string_equal(printed, "");
		assert_int_equal(test_apps.injected, 0);
	}
}

static void failed_injection_has_its_reason(void **state)
{
	test_apps.app[0].error = -EPROTONOSUPPORT;
	test_apps.inject_error = -EPERM;
	assert_int_equal(run(&cmd_attach, "pmd"), STATUS_FAILED);
	assert_string_equal(message_last(),
		"attach: cannot load the probe into 'pmd' (pid 4711): the kernel says no");
}

static void process_must_be_visible(void **state)
{
	test_apps.app[0].error = -EPROTONOSUPPORT;
	test_apps.app[0].pid = 0;
	assert_int_equal(run(&cmd_attach, "pmd"), STATUS_FAILED);
	assert_begins(message_last(),
		"attach: cannot load the probe into 'pmd': its process is not visible here");
	assert_int_equal(test_apps.injected, 0);
}

/* Any user may make a folder that names the process of another one. */
static void folder_of_another_user_is_refused(void **state)
{
	if (geteuid()) {
		print_message("skipped: chown() needs root\n");
		skip();
	}
	test_folder_enter();
	assert_int_equal(chown(".", 65534, 65534), 0);
	test_apps.app[0].error = -EPROTONOSUPPORT;
	test_apps.app[0].dir = ".";
	test_apps.app[0].pid = (uint32_t)getpid();
	assert_int_equal(run(&cmd_attach, "pmd"), STATUS_FAILED);
	assert_non_null(strstr(message_last(), "belongs to another user than the process; remove"));
	assert_int_equal(test_apps.injected, 0);
	assert_int_equal(chown(".", 0, 0), 0);
	assert_int_equal(run(&cmd_attach, "pmd"), STATUS_OK);
	assert_int_equal(test_apps.injected, getpid());
	test_folder_leave();
}

/* A process that no folder names. */
static void process_by_its_number(void **state)
{
	assert_int_equal(run(&cmd_attach, "77"), STATUS_OK);
	assert_begins(printed, "The probe is in '77' (pid 77), after ");
	assert_non_null(strstr(printed, "; its runtime folder is not visible here\n"));
	assert_int_equal(test_apps.injected, 77);
	assert_int_equal(test_apps.opened, 0);
	test_apps.appears = (struct test_app){.name = "new", .dir = "/no/new", .pid = 78};
	assert_int_equal(run(&cmd_attach, "78"), STATUS_OK);
	assert_begins(printed, "The probe is in 'new' (pid 78), after ");
	assert_int_equal(test_apps.opened, 1);
}

static void unknown_names_are_refused(void **state)
{
	static const char *const names[] = {"nothing", "0", "99999999999", "pm"};
	const struct command *const cmds[] = {&cmd_attach, &cmd_detach};

	for (size_t c = 0; c < 2; c++) {
		for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
			char line[128];

			snprintf(line, sizeof(line), "%s: no application is called '%s'; %s",
				cmds[c]->name, names[i],
				strcmp(names[i], "pm") ? "'ringtap list' shows what there is"
						       : "did you mean 'pmd'?");
			assert_int_equal(run(cmds[c], names[i]), STATUS_FAILED);
			assert_string_equal(message_last(), line);
		}
		test_apps.find_error = -ENOMEM;
		assert_int_equal(run(cmds[c], "pmd"), STATUS_FAILED);
		assert_non_null(strstr(message_last(), "looking for applications: "));
		test_apps.find_error = 0;
	}
	assert_int_equal(test_apps.injected, 0);
}

static void quiet_prints_errors_only(void **state)
{
	assert_int_equal(run(&cmd_attach, "-q pmd"), STATUS_OK);
	assert_string_equal(printed, "");
	assert_int_equal(run(&cmd_detach, "--quiet pmd"), STATUS_OK);
	assert_string_equal(printed, "");
	assert_string_equal(message_last(), "nothing");
}

static void detached_probe_sleeps(void **state)
{
	assert_int_equal(run(&cmd_detach, "other"), STATUS_OK);
	assert_string_equal(printed, "The probe in 'other' (pid 12) sleeps\n");
	assert_int_equal(test_apps.detached, 1);
}

static void nothing_to_detach(void **state)
{
	static const int errors[] = {-EUNATCH, -EPROTONOSUPPORT};

	for (size_t i = 0; i < 2; i++) {
		test_apps.app[0].error = errors[i];
		assert_int_equal(run(&cmd_detach, "pmd"), STATUS_OK);
		assert_string_equal(printed, "'pmd' (pid 4711) has no probe that is awake\n");
	}
	assert_int_equal(test_apps.detached, 0);
}

static void failed_detaching_has_its_reason(void **state)
{
	test_apps.app[0].error = -ETIMEDOUT;
	assert_int_equal(run(&cmd_detach, "pmd"), STATUS_FAILED);
	assert_string_equal(message_last(),
		"detach: cannot detach from 'pmd' (pid 4711): Connection timed out");
	test_apps.app[0].error = 0;
	test_apps.app[0].detach_error = -EPROTO;
	test_apps.app[0].why = "the probe is older";
	assert_int_equal(run(&cmd_detach, "pmd"), STATUS_FAILED);
	assert_string_equal(
		message_last(), "detach: cannot detach from 'pmd' (pid 4711): the probe is older");
	assert_int_equal(run(&cmd_detach, "77"), STATUS_FAILED);
	assert_begins(message_last(), "detach: '77': its runtime folder is not visible here");
	assert_string_equal(printed, "");
}

/* ---- other commands: --attach ---- */

static void missing_probe_is_loaded_if_that_is_agreed_on(void **state)
{
	static const struct {
		int error;
		bool agreed;
		pid_t injected;
	} cases[] = {{-EPROTONOSUPPORT, true, 4711}, {-ENOENT, true, 4711}, {-EAGAIN, true, 4711},
		{-EPROTONOSUPPORT, false, 0}, {0, true, 0}, {-EHOSTDOWN, true, 0},
		{-ETIMEDOUT, true, 0}};
	struct ringtap_apps *apps;

	assert_int_equal(ringtap_apps_find(&apps), 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		test_apps.injected = 0;
		test_apps.app[0].error = cases[i].error;
		/* At a terminal, a question would be printed. */
		if (!cases[i].agreed && isatty(STDIN_FILENO) && isatty(STDERR_FILENO))
			continue;
		assert_int_equal(attach_missing("top", apps, 0, cases[i].agreed), 0);
		assert_int_equal(test_apps.injected, cases[i].injected);
	}
	test_apps.app[0].error = -ENOENT;
	test_apps.inject_error = -EPERM;
	assert_int_equal(attach_missing("top", apps, 0, true), -EPERM);
	assert_begins(message_last(), "top: cannot load the probe into 'pmd' (pid 4711): ");
	ringtap_apps_free(apps);
}

#define with_apps(f) cmocka_unit_test_setup(f, set_up)

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_apps(probe_is_loaded),
		with_apps(devices_of_a_static_vhost_library_are_noted),
		with_apps(version_may_be_unknown),
		with_apps(program_name_means_its_only_process),
		with_apps(wait_leaves_a_process_alone_that_starts),
		with_apps(wait_attaches_after_each_restart),
		with_apps(probe_that_is_there_stays),
		with_apps(probe_that_sleeps_is_woken),
		with_apps(some_errors_are_final),
		with_apps(failed_injection_has_its_reason),
		with_apps(process_must_be_visible),
		with_apps(folder_of_another_user_is_refused),
		with_apps(process_by_its_number),
		with_apps(unknown_names_are_refused),
		with_apps(quiet_prints_errors_only),
		with_apps(detached_probe_sleeps),
		with_apps(nothing_to_detach),
		with_apps(failed_detaching_has_its_reason),
		with_apps(missing_probe_is_loaded_if_that_is_agreed_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
