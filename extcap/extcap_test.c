/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests of Wireshark from the command line to the answer, with applications of the fake reader:
 * each has ports p0, of 4 RX queues, and p1, of 2 TX queues. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/test_util.h"
#include "cli/fake_reader.h"

int extcap_main(int argc, char **argv);
#define main extcap_main
#include "main.c"
#undef main

static const struct fake_run runs[] = {{0, 0, 100, 60}, {0, 1, 3, 1500}};

static int set_up(void **state)
{
	fake = (struct fake){.apps = 2, .runs = runs, .run_count = 2};
	test_folder_enter();
	return 0;
}

static int tear_down(void **state)
{
	test_folder_leave();
	return 0;
}

static const char *printed;

/* Words are separated by blanks; a filter has underscores for its own. */
static int extcap(const char *line)
{
	static char copy[512]; /* options keep pointers into it until the next call */
	char *argv[64] = {"ringtap-extcap"};
	int argc = 1, status;

	snprintf(copy, sizeof(copy), "%s", line);
	for (char *w = strtok(copy, " "); w; w = strtok(NULL, " ")) {
		for (char *c = w; !strncmp(argv[argc - 1], "--extcap-capture-filter", 23) && *c;
			c++)
			*c = *c == '_' ? ' ' : *c;
		argv[argc++] = w;
	}
	argv[argc] = NULL;
	test_stdout_begin();
	status = extcap_main(argc, argv);
	printed = test_stdout_end();
	return status;
}

static void mistakes_are_named(void **state)
{
	static const struct {
		const char *line;
		int status;
		const char *message;
	} bad[] = {
		{"--nonsense", STATUS_USAGE, "extcap: --nonsense: unknown option"},
		{"stray", STATUS_USAGE, "stray: only options are taken"},
		{"--extcap-interface eth0 --extcap-dlts", STATUS_USAGE,
			"extcap: eth0: not an interface of ours"},
		{"--extcap-interface ringtap: --extcap-dlts", STATUS_USAGE,
			"extcap: ringtap:: not an interface"},
		{"--extcap-dlts", STATUS_USAGE, "no --extcap-interface given"},
		{"--extcap-interface ringtap:x:y", STATUS_USAGE, "nothing to do"},
		{"--capture --extcap-interface ringtap:x:y", STATUS_USAGE, "--fifo"},
		{"--fifo f --extcap-interface ringtap:x:y", STATUS_USAGE, "nothing to do"},
		{"--capture --fifo f --extcap-interface ringtap:x:y --snapshot-length z",
			STATUS_USAGE, "--snapshot-length z: not a size"},
		{"--capture --fifo f --extcap-interface ringtap:x:y --snapshot-length 262145",
			STATUS_USAGE, "--snapshot-length 262145: out of range"},
		{"--capture --fifo f --extcap-interface ringtap:app0:p0 --cut l5", STATUS_USAGE,
			"extcap: --cut l5: "},
		{"--capture --fifo f --extcap-interface ringtap:app0:p0 --first 32k", STATUS_USAGE,
			"extcap: --first 32k: unknown limit"},
		{"--capture --fifo f --extcap-interface ringtap:app0:p0 --first 1p/flow --ids",
			STATUS_USAGE, "extcap: --first: cuts"},
		{"--capture --fifo f --extcap-interface ringtap:x:y --queue z", STATUS_USAGE,
			"--queue z: not a queue; give 0 to 65535, or all"},
		{"--capture --fifo f --extcap-interface ringtap:x:y --queue 65536", STATUS_USAGE,
			"--queue 65536: not a queue"},
		{"--capture --fifo f --extcap-interface ringtap:x:y --buffer 5", STATUS_USAGE,
			"extcap: --buffer 5: not a size with a unit; give 64K to 64G"},
		{"--capture --fifo f --extcap-interface ringtap:x:y --buffer 65G", STATUS_USAGE,
			"extcap: --buffer 65G: not a size"},
		{"--capture --fifo f --extcap-interface ringtap:x:y --buffer x", STATUS_USAGE,
			"extcap: --buffer x: not a size"},
		{"--direction up", STATUS_USAGE, "--direction up: unknown; choose from rx|tx|both"},
		{"--timestamp sundial", STATUS_USAGE, "unknown; choose from tsc|nic"},
		{"--capture --fifo f --extcap-interface ringtap:none:y", STATUS_FAILED, "none"},
		{"--capture --fifo none/f --extcap-interface ringtap:app0:p0", STATUS_FAILED,
			"extcap: cannot write 'none/f'"},
		{"--capture --fifo f --extcap-interface ringtap:app0:p0 --extcap-capture-filter ip_and",
			STATUS_USAGE, "syntax error"},
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(extcap(bad[i].line), bad[i].status);
		if (!strstr(message_last(), bad[i].message) || strstr(message_last(), "record"))
			fail_msg("'%s' gave '%s'", bad[i].line, message_last());
		assert_string_equal(printed, "");
	}
	assert_int_equal(access("f", F_OK), -1);
}

static void without_arguments_there_is_help(void **state)
{
	assert_int_equal(extcap(""), STATUS_USAGE);
	assert_non_null(strstr(printed, "--extcap-interfaces"));
	assert_int_equal(extcap("--help"), STATUS_OK);
	assert_non_null(strstr(printed, "--extcap-interfaces"));
	for (const char *line = printed; *line; line = strchr(line, '\n') + 1)
		assert_in_range(strcspn(line, "\n"), 0, TEXT_WIDTH);
}

#define SSH_LINE "interface {value=ringtap-ssh}{display=DPDK ports of another host, by SSH}\n"

/* The last of three applications has no probe: it is not there. */
static void interfaces_are_ports_and_applications(void **state)
{
	fake.apps = 3;
	assert_int_equal(extcap("--extcap-interfaces --extcap-version=4.0"), STATUS_OK);
	assert_string_equal(printed,
		"extcap {version=" RINGTAP_VERSION "}{display=ringtap}\n" SSH_LINE
		"interface {value=ringtap:app0:p0}{display=DPDK port p0 of app0}\n"
		"interface {value=ringtap:app0:p1}{display=DPDK port p1 of app0}\n"
		"interface {value=ringtap:app0}{display=all DPDK ports of app0}\n"
		"interface {value=ringtap:app1:p0}{display=DPDK port p0 of app1}\n"
		"interface {value=ringtap:app1:p1}{display=DPDK port p1 of app1}\n"
		"interface {value=ringtap:app1}{display=all DPDK ports of app1}\n");
	fake.apps = 0;
	assert_int_equal(extcap("--extcap-interfaces"), STATUS_OK);
	assert_string_equal(
		printed, "extcap {version=" RINGTAP_VERSION "}{display=ringtap}\n" SSH_LINE);
}

static void link_type_is_that_of_the_port(void **state)
{
	assert_int_equal(extcap("--extcap-interface ringtap:app0:p0 --extcap-dlts"), STATUS_OK);
	assert_string_equal(printed, "dlt {number=1}{name=EN10MB}{display=Ethernet}\n");
	fake.linktype = RINGTAP_LINKTYPE_RAW;
	assert_int_equal(extcap("--extcap-interface ringtap:app0:p1 --extcap-dlts"), STATUS_OK);
	assert_string_equal(printed, "dlt {number=12}{name=RAW}{display=Raw IP}\n");
}

static void queues_are_those_of_the_port(void **state)
{
	static const struct {
		const char *interface;
		unsigned queues;
	} cases[] = {{"app0:p0", 4}, {"app0:p1", 2}, {"app0:0", 4}, {"app0:1", 2}, {"app1", 4},
		{"app0:p7", 0}, {"none:p0", 0}, {"app0:", 4}};
	char line[128], expected[512];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int n = snprintf(expected, sizeof(expected),
			"value {arg=1}{value=all}{display=all}{default=true}\n");

		for (unsigned k = 0; k < cases[i].queues; k++)
			n += snprintf(expected + n, sizeof(expected) - (size_t)n,
				"value {arg=1}{value=%u}{display=%u}{default=false}\n", k, k);
		snprintf(line, sizeof(line),
			"--extcap-config --extcap-reload-option queue --extcap-interface ringtap:%s",
			cases[i].interface);
		assert_int_equal(extcap(line), STATUS_OK);
		assert_string_equal(printed, expected);
	}
	assert_int_equal(
		extcap("--extcap-config --extcap-reload-option direction --extcap-interface "
		       "ringtap:app0:p0"),
		STATUS_OK);
	assert_string_equal(printed, "");
}

/* Each option of a capture, numbered in this order, and the values refer to the numbers. */
static void configuration_has_all_options(void **state)
{
	static const char *const calls[] = {"direction", "queue", "snapshot-length", "buffer",
		"timestamp", "ids", "sample", "tags", "inner", "cut", "first"};
	char text[64];
	const char *at;

	assert_int_equal(extcap("--extcap-interface ringtap:app0:p1 --extcap-config"), STATUS_OK);
	at = printed;
	for (unsigned i = 0; i < 11; i++) {
		snprintf(text, sizeof(text), "arg {number=%u}{call=--%s}", i, calls[i]);
		at = strstr(at, text);
		assert_non_null(at);
	}
	assert_non_null(strstr(printed, "value {arg=0}{value=tx}{display=sent}{default=false}\n"));
	assert_non_null(strstr(printed, "value {arg=1}{value=1}{display=1}{default=false}\n"));
	assert_null(strstr(printed, "{arg=1}{value=2}"));
	assert_non_null(strstr(printed, "value {arg=4}{value=nic}{display=NIC}{default=false}\n"));
	assert_non_null(strstr(printed, "value {arg=7}{value=as-is}"));
	assert_non_null(strstr(printed, "{range=0,262144}{default=0}"));
}

#define FILTER "--extcap-interface ringtap:x:y --extcap-capture-filter "

/* An error is the output, which has libpcap's text. */
static void filters_are_checked(void **state)
{
	static const struct {
		const char *filter, *error;
	} cases[] = {{"tcp_port_80", NULL}, {"vlan_5_and_udp", NULL}, {"inbound", NULL},
		{"outbound_and_udp", NULL}, {"ip_and_and", "syntax error"},
		{"host_300.1.1.1", "invalid IPv4"}, {"tcp_port", "syntax error"},
		{"portrange_5-x", "unknown port"}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char line[128];

		snprintf(line, sizeof(line), FILTER "%s", cases[i].filter);
		assert_int_equal(extcap(line), STATUS_OK);
		if (!cases[i].error)
			assert_string_equal(printed, "");
		else if (!strstr(printed, cases[i].error) || strchr(printed, '\n')[1])
			fail_msg("'%s' gave '%s'", cases[i].filter, printed);
	}
}

static void capture_goes_to_the_pipe(void **state)
{
	struct test_blocks b;

	assert_int_equal(
		extcap("--capture --fifo f --extcap-interface ringtap:app0:p0"), STATUS_OK);
	assert_string_equal(printed, "");
	b = test_blocks_read("f");
	assert_int_equal(b.epb, 103);
	assert_int_equal(test_pcap_read("f").gaps, 0);
	assert_int_equal(fake.attached, 1);
	assert_int_equal(fake.ports[0], 1);
	/* An application alone means all its ports. */
	assert_int_equal(extcap("--capture --fifo g --extcap-interface ringtap:app1"), STATUS_OK);
	assert_int_equal(test_blocks_read("g").epb, 103);
}

static bool file_has(const char *path, const char *text)
{
	static char bytes[65536];
	FILE *f = fopen(path, "r");
	size_t n;

	assert_non_null(f);
	n = fread(bytes, 1, sizeof(bytes), f);
	fclose(f);
	return memmem(bytes, n, text, strlen(text));
}

static void options_of_a_capture_are_those_of_record(void **state)
{
	assert_int_equal(extcap("--capture --fifo f --extcap-interface ringtap:app0:p0 "
				"--cut headers --first 100p/flow"),
		STATUS_OK);
	assert_true(file_has("f", "cut: headers"));
	/* Fields of Wireshark's window that are left empty. */
	assert_int_equal(
		extcap("--capture --fifo g --extcap-interface ringtap:app0:p0 --cut= --first="),
		STATUS_OK);
	assert_false(file_has("g", "cut:"));
}

static void write_program(const char *name, const char *text)
{
	test_write(name, text, strlen(text));
	assert_int_equal(chmod(name, 0700), 0);
}

/* It replaces the process. Returns its exit status. */
static int run_extcap(const char *line)
{
	pid_t pid;
	int status;

	fflush(NULL);
	pid = fork();
	if (!pid)
		_exit(extcap(line));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void assert_text(const char *file, const char *text)
{
	char found[1024] = "";
	FILE *f = fopen(file, "r");

	assert_non_null(f);
	found[fread(found, 1, sizeof(found) - 1, f)] = '\0';
	fclose(f);
	assert_string_equal(found, text);
}

/* Both shells pass on what Wireshark gives, quotes and all; ssh runs the command as sshd does. */
static void another_host_gets_the_options(void **state)
{
	char before[1024];

	snprintf(before, sizeof(before), "%s", getenv("PATH") ? getenv("PATH") : "");
	write_program("ssh",
		"#!/bin/sh\nfor word; do echo \"$word\"; done >words\nexec sh -c \"$word\"\n");
	write_program("ringtap", "#!/bin/sh\nfor word; do echo \"$word\"; done\n");
	setenv("PATH", ".:/usr/bin:/bin", 1);
	assert_int_equal(run_extcap("--capture --fifo f --extcap-interface ringtap-ssh --host r1"),
		STATUS_OK);
	assert_text("f", "record\n-q\n-w\n-\n");
	assert_text("words",
		"-T\n-o\nBatchMode=yes\n-o\nServerAliveInterval=15\n--\nr1\nringtap record -q -w -\n");
	assert_int_equal(
		run_extcap("--capture --fifo f --extcap-interface ringtap-ssh --host -oX=y "
			   "--ssh-port 2222 --user me --key k --target it's;ls$(ls):0 --direction "
			   "tx --snapshot-length 96 --buffer 64M --queue 3 --timestamp nic --ids "
			   "--sample 8 --tags as-is --inner --cut headers --first 32k/flow "
			   "--extcap-capture-filter udp_port_53"),
		STATUS_OK);
	assert_text("f",
		"record\n-q\n-w\n-\n-f\nudp port 53\n--direction\ntx\n-s\n96\n"
		"--buffer\n65536K\n--sample\n8\n--queue\n3\n--timestamp\nnic\n--ids\n"
		"--tags\nas-is\n--inner\n--cut\nheaders\n--first\n32k/flow\n--\nit's;ls$(ls):0\n");
	unlink("ssh");
	setenv("PATH", ".", 1);
	assert_int_equal(run_extcap("--capture --fifo f --extcap-interface ringtap-ssh --host r1"),
		STATUS_FAILED);
	setenv("PATH", before, 1);
	assert_int_equal(extcap("--capture --fifo f --extcap-interface ringtap-ssh"), STATUS_USAGE);
	assert_non_null(strstr(message_last(), "ringtap-ssh: no host; give --host"));
	assert_int_equal(extcap("--capture --fifo no/f --extcap-interface ringtap-ssh --host r1"),
		STATUS_FAILED);
	assert_non_null(strstr(message_last(), "cannot write 'no/f'"));
}

/* Its fields come first. */
static void another_host_has_fields(void **state)
{
	assert_int_equal(extcap("--extcap-interface ringtap-ssh --extcap-config"), STATUS_OK);
	assert_true(strstr(printed, "{call=--host}") < strstr(printed, "{call=--direction}"));
	assert_non_null(strstr(printed, "{call=--queue}{display=Queue}{type=string}"));
	assert_int_equal(extcap("--extcap-interface ringtap-ssh --extcap-dlts"), STATUS_OK);
	assert_string_equal(printed, "dlt {number=1}{name=EN10MB}{display=Ethernet}\n");
}

/* Wireshark shows it when the capture ends. */
static void losses_are_reported(void **state)
{
	fake.lost[0] = 7;
	assert_int_equal(
		extcap("--capture --fifo f --extcap-interface ringtap:app0:p0"), STATUS_OK);
	assert_non_null(strstr(message_last(), "extcap: 7 packets were lost"));
}

#define with_files(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_files(mistakes_are_named),
		with_files(without_arguments_there_is_help),
		with_files(interfaces_are_ports_and_applications),
		with_files(link_type_is_that_of_the_port),
		with_files(queues_are_those_of_the_port),
		with_files(configuration_has_all_options),
		with_files(filters_are_checked),
		with_files(capture_goes_to_the_pipe),
		with_files(options_of_a_capture_are_those_of_record),
		with_files(losses_are_reported),
		with_files(another_host_gets_the_options),
		with_files(another_host_has_fields),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
