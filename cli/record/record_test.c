/* SPDX-License-Identifier: BSD-3-Clause */
/* `ringtap record` from its command line to its files, on packets made to order (fake_reader.h). */
#include <errno.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/commands.h"
#include "common/pcapng.h"
#include "cli/fake_reader.h"
#include "cli/test_command.h"
#include "base/packet_file.h"
#include "base/test_util.h"
#include "base/util.h"
#include "test_record.h"

static void everything_is_in_the_file(void **state)
{
	struct test_pcap t;
	struct test_blocks b;

	fake.filtered = 5;
	fake.lost[0] = 7;
	assert_int_equal(record("-w f"), STATUS_OK);
	t = test_pcap_read("f");
	assert_int_equal(t.packets, TOTAL);
	assert_int_equal(t.first, 0);
	assert_int_equal(t.gaps, 0);
	assert_int_equal(t.first_ns, FAKE_START_NS);
	b = test_blocks_read("f");
	assert_int_equal(b.shb, 1);
	assert_int_equal(b.idb, 2);
	assert_int_equal(b.isb, 2);
	assert_true(b.ended[0] && b.ended[1]);
	assert_int_equal(b.packets_of[0], PORT0);
	assert_int_equal(b.stat_of[0][4], PORT0 + 5 + 7);
	assert_int_equal(b.stat_of[0][5], 3 + 4);
	assert_int_equal(b.stat_of[0][6], PORT0 + 7);
	assert_int_equal(b.stat_of[0][7], 7);
	assert_int_equal(b.stat_of[0][8], PORT0);
	assert_int_equal(b.stat_of[1][8], TOTAL - PORT0);
	assert_int_equal(record("-w f --fail-on-loss -q"), STATUS_LOSS);
}

/* Each has a limited number of captures. */
static void queues_that_are_not_captured(void **state)
{
	fake.queues_refused = 1;
	fake.wait_for_stop = true;
	assert_int_equal(record("-q -w f -a duration:1"), STATUS_OK);
	assert_non_null(strstr(message_last(), "record: 1 queues are not captured"));
	fake.wait_for_stop = false;
	assert_int_equal(record("-w f --fail-on-loss -q"), STATUS_LOSS);
	fake.start_error = -EBUSY;
	assert_int_equal(record("-q -w g"), STATUS_FAILED);
	assert_string_equal(message_last(), "record: capturing: fake error; see 'ringtap list'");
	assert_int_equal(access("g", F_OK), -1);
}

/* A later version of the library knows more reasons. */
static void losses_without_a_name_count(void **state)
{
	fake.lost_later = 3;
	assert_int_equal(record("-q -w f --fail-on-loss"), STATUS_LOSS);
	assert_int_equal(test_blocks_read("f").stat_of[0][7], 3);
}

static void counts_are_exact(void **state)
{
	/* Within a run, at the border of two, of a batch, and the last packet of all. */
	static const unsigned counts[] = {1, 99, 100, 101, 150, 151, 153, 154, 155, 1153, 1154};

	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		char line[64];
		struct test_blocks b;

		snprintf(line, sizeof(line), "-q -w f -c %u", counts[i]);
		assert_int_equal(record(line), STATUS_OK);
		assert_int_equal(fake.stops, i + 1);
		assert_int_equal(test_pcap_read("f").packets, counts[i]);
		b = test_blocks_read("f");
		/* Packets after the end are in no statistics as delivered. */
		assert_int_equal(b.stat_of[0][8], b.packets_of[0]);
		assert_int_equal(b.stat_of[1][8], b.packets_of[1]);
	}
}

static void files_of_a_ring_are_valid_and_complete(void **state)
{
	static const char *const lines[] = {"-q -w c.pcapng -b packets:100",
		"-q -w c.pcapng -b filesize:5", "-q -w c.pcapng -b filesize:1",
		"-q -P -w c.pcapng -b filesize:3", "-q -w c.pcapng -b packets:10 -a filesize:50"};
	size_t count;

	for (size_t l = 0; l < sizeof(lines) / sizeof(lines[0]); l++) {
		char **files;
		uint64_t next = 0;

		assert_int_equal(record(lines[l]), STATUS_OK);
		files = names("c_*.pcapng", &count);
		assert_true(count > 5);
		for (size_t i = 0; i < count; i++) {
			struct test_pcap t = test_pcap_read(files[i]);
			struct stat st;

			assert_int_equal(stat(files[i], &st), 0);
			if (strstr(lines[l], "filesize:5") && t.packets > 1)
				assert_true(st.st_size <= (strstr(lines[l], ":50") ? 50000 : 5000));
			if (strstr(lines[l], "-P -w") && t.packets > 1)
				assert_true(st.st_size <= 3000);
			assert_true(t.packets > 0);
			assert_int_equal(t.first, next);
			assert_int_equal(t.gaps, 0);
			next = t.last + 1;
			unlink(files[i]);
		}
		assert_int_equal(next, TOTAL);
	}
}

/* A target is of one link type, and so is its filter. */
static void ports_have_targets_of_their_link_types(void **state)
{
	static const struct {
		const char *interfaces;
		uint64_t linktypes;
		unsigned ports;
	} cases[] = {
		{"", 101, 2}, /* all, of Ethernet and then of raw IP */
		{"-i app0:p0", 0, 1},
		{"-i app0:p1", 101, 1},
		{"-i app0:p1 -i app0:p0", 101000, 2},
		{"app0", 101, 2},
		{"app0:p0", 0, 1},
		{":p1", 101, 1},
		{"app0:p1 -i p0", 101000, 2},
	};

	fake.linktype = RINGTAP_LINKTYPE_RAW;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char line[128];

		snprintf(line, sizeof(line), "-q -w f -f icmp %s", cases[i].interfaces);
		assert_int_equal(record(line), STATUS_OK);
		assert_int_equal(fake.linktypes, cases[i].linktypes);
		assert_int_equal(fake.ports[i % 4], cases[i].ports);
	}
}

static void link_types_that_do_not_fit_are_refused(void **state)
{
	fake.linktype = RINGTAP_LINKTYPE_RAW;
	assert_int_equal(record("-P -w f"), STATUS_USAGE);
	test_assert_has(message_last(), "record: the ports have link types 1 and 101, and a pcap "
					"file has one; leave out -P, or record them apart");
	assert_int_equal(record("-w f -f vlan"), STATUS_USAGE);
	test_assert_has(message_last(),
		"record: for ports of 'app0' without Ethernet headers: filter 'vlan': no VLAN "
		"support for");
	assert_int_equal(record("-w f -f udp --cut headers:nosuch"), STATUS_USAGE);
	test_assert_has(message_last(), "record: filter 'nosuch' of --cut: ");
	assert_int_equal(fake.attached, 0);
	assert_int_equal(record("-q -P -w f -i app0:p0"), STATUS_OK);
}

static void old_files_are_removed(void **state)
{
	size_t count;
	char **files;

	assert_int_equal(record("-q -w c.pcapng -b packets:100 -b files:3"), STATUS_OK);
	files = names("c_*.pcapng", &count);
	assert_int_equal(count, 3);
	assert_non_null(strstr(files[0], "c_00010_"));
	assert_int_equal(test_pcap_read(files[0]).first, 900);
	assert_int_equal(test_pcap_read(files[2]).packets, 54);
}

static void number_of_files_ends_the_capture(void **state)
{
	size_t count;

	assert_int_equal(record("-q -w c.pcapng -b packets:100 -a files:3"), STATUS_OK);
	assert_int_equal(test_pcap_read(names("c_*.pcapng", &count)[2]).packets, 100);
	assert_int_equal(count, 3);
	assert_int_equal(fake.stops, 1);
}

static void size_ends_the_capture(void **state)
{
	struct stat st;

	assert_int_equal(record("-q -w f -a filesize:8"), STATUS_OK);
	assert_int_equal(stat("f", &st), 0);
	assert_true(st.st_size <= 8000 && st.st_size > 8000 - 2 * RT_PCAPNG_ISB_MAX - 104);
	assert_int_equal(test_pcap_read("f").gaps, 0);
	assert_int_equal(fake.stops, 1);
}

static void applications_are_merged_under_their_names(void **state)
{
	static const struct fake_run two[] = {
		{0, 0, 10, 60}, {1, 0, 20, 60}, {1, 1, 5, 60}, {0, 1, 1, 60}};
	struct test_blocks b;
	size_t len;
	uint8_t *data;

	fake.apps = 2;
	fake.renumber = true;
	fake.runs = two;
	fake.run_count = 4;
	assert_int_equal(record("-q -w f -i app0: -i app1:p0 -i app1:p1"), STATUS_OK);
	assert_int_equal(fake.attached, 2);
	assert_int_equal(fake.ports[0], 1);
	assert_int_equal(fake.ports[1], 2);
	b = test_blocks_read("f");
	assert_int_equal(b.idb, 4);
	assert_int_equal(b.packets_of[0], 10);
	assert_int_equal(b.packets_of[1], 1);
	assert_int_equal(b.packets_of[2], 20);
	assert_int_equal(b.packets_of[3], 5);
	assert_int_equal(test_pcap_read("f").gaps, 0);
	data = test_read("f", &len);
	assert_non_null(memmem(data, len, "app1:p1", 7));
	free(data);
	/* And with some of them behind the end. */
	assert_int_equal(record("-q -w f -c 12 -i app0: -i app1:"), STATUS_OK);
	b = test_blocks_read("f");
	assert_int_equal(b.stat_of[0][8], 10);
	assert_int_equal(b.stat_of[1][8], 0);
	assert_int_equal(b.stat_of[2][8], 2);
	assert_int_equal(b.stat_of[3][8], 0);
}

static void interfaces_are_described_before_their_packets(void **state)
{
	static const struct fake_run late[] = {
		{0, 0, 10, 60}, {0, 0, 10, 60}, {0, 0, 2, 60}, {0, 1, 20, 60}};

	fake.runs = late;
	fake.run_count = 4;
	fake.late_interface = 2;
	assert_int_equal(record("-q -w f"), STATUS_OK);
	/* test_blocks_read() fails if an IDB is missing before its packets. */
	assert_int_equal(test_blocks_read("f").idb, 2);
	assert_int_equal(test_blocks_read("f").packets_of[1], 20);
}

static void which_application_is_meant(void **state)
{
	fake.apps = 0;
	assert_int_equal(record("-w f"), STATUS_FAILED);
	assert_non_null(strstr(message_last(), "no running DPDK application"));
	fake.apps = 1;
	assert_int_equal(record("-w f -i appX:p0"), STATUS_FAILED);
	assert_non_null(strstr(message_last(), "no port or application is called 'appX:p0'"));
	fake.apps = 2;
	assert_int_equal(record("-w f"), STATUS_FAILED);
	assert_non_null(strstr(message_last(), "several applications (app0, app1); name one, as in "
					       "'ringtap record app0'"));
	assert_int_equal(record("-w f -i p0"), STATUS_FAILED);
	assert_non_null(strstr(message_last(), "name one, as in 'ringtap record app0:p0'"));
	assert_int_equal(record("-w f -i appX:p0"), STATUS_FAILED);
	assert_non_null(strstr(message_last(), "no port or application is called 'appX:p0'"));
	assert_int_equal(record("-w f appX"), STATUS_FAILED);
	assert_non_null(strstr(message_last(), "no application is called 'appX'"));
	assert_int_equal(record("-w f -i app0: -i app0:p1"), STATUS_USAGE);
	assert_non_null(strstr(message_last(), "app0:p1: a target before it covers the same port"));
	assert_int_equal(record("-w f app0 app0:p1"), STATUS_USAGE);
	assert_non_null(strstr(message_last(), "app0:p1: a target before it covers the same port"));
	assert_int_equal(access("f", F_OK), -1);
	assert_int_equal(fake.attached, 0);
}

static void refused_attach_leaves_no_file(void **state)
{
	fake.attach_error = -ENODEV;
	assert_int_equal(record("-w f -i 7"), STATUS_FAILED);
	assert_non_null(
		strstr(message_last(), "application 'app0' has no port '7'; there is p0, p1"));
	fake.attach_error = -ENOTSUP;
	assert_int_equal(record("-w f -i p1"), STATUS_FAILED);
	assert_non_null(strstr(message_last(), "fake error"));
	assert_int_equal(access("f", F_OK), -1);
	test_write("f", "precious", 8);
	assert_int_equal(record("-w f"), STATUS_FAILED);
	assert_int_equal(access("f", F_OK), 0);
}

/* The second of two recorders is refused, and the first one's file stays as it is. */
static void an_output_has_one_recorder(void **state)
{
	bool created;
	int fd = packet_file_open("shared", false, &created);
	size_t len;
	uint8_t *text;

	assert_int_equal(write(fd, "precious", 8), 8);
	assert_int_equal(symlink("shared", "other-name"), 0);
	assert_int_equal(record("-w other-name"), STATUS_FAILED);
	assert_string_equal(message_last(),
		"record: cannot write 'other-name': another program writes to it; choose another "
		"file");
	text = test_read("shared", &len);
	assert_int_equal(len, 8);
	free(text);
	close(fd);
	assert_int_equal(record("-w other-name"), STATUS_OK);
}

static void a_link_names_the_file_that_is_made(void **state)
{
	struct stat st;

	assert_int_equal(symlink("behind", "link"), 0);
	fake.attach_error = -ENOTSUP;
	assert_int_equal(record("-w link"), STATUS_FAILED);
	assert_int_equal(access("behind", F_OK), -1); /* as without a link */
	assert_int_equal(lstat("link", &st), 0);
	fake.attach_error = 0;
	assert_int_equal(record("-w link"), STATUS_OK);
	assert_int_equal(lstat("behind", &st), 0);
	assert_true(S_ISREG(st.st_mode) && st.st_size > 0);
	assert_int_equal(lstat("link", &st), 0);
	assert_true(S_ISLNK(st.st_mode));
}

static void a_queue_that_no_port_has(void **state)
{
	assert_int_equal(record("-q -w f --queue 99"), STATUS_FAILED);
	assert_non_null(
		strstr(message_last(), "--queue: port p0 has no queue 99 (it has RX 0-3, TX 0), "
				       "port p1 has no queue 99 (it has RX 0, TX 0-1); there is "
				       "nothing to capture: give a queue that it has, or leave out "
				       "--queue for all"));
	assert_int_equal(access("f", F_OK), -1);
	assert_int_equal(fake.attached, 0);
	assert_int_equal(record("-q -w f -i p0 --queue 1 --direction tx"), STATUS_FAILED);
	assert_non_null(strstr(message_last(), "p0 has no TX queue 1 (it has RX 0-3, TX 0)"));
}

static void a_queue_that_some_ports_have(void **state)
{
	fake.end = -EBADMSG; /* whose message comes last */
	assert_int_equal(record("-q -w f -i p0 --queue 2 -i p1 --queue 1"), STATUS_FAILED);
	assert_null(strstr(message_last(), "--queue"));
	fake.end = 0;
	fake.wait_for_stop = true;
	assert_int_equal(record("-q -w f --queue 2 -c 10"), STATUS_OK);
	assert_non_null(strstr(message_last(),
		"--queue: port p1 has no queue 2 (it has RX 0, TX 0-1); nothing of it is captured: "
		"give a queue"));
	assert_int_equal(record("-q -w f -i p0 -i p1 --queue 2 -c 10"), STATUS_OK);
	assert_non_null(strstr(message_last(), "p1 has no queue 2"));
}

static void pcap_and_compression(void **state)
{
	struct test_pcap t;

	assert_int_equal(record("-q -P -s 1000 -w f"), STATUS_OK);
	t = test_pcap_read("f");
	assert_int_equal(t.packets, TOTAL);
	assert_int_equal(t.gaps, 0);
	assert_int_equal(t.snaplen, 1000);
	assert_int_equal(t.first_ns, FAKE_START_NS);
	if (system("command -v zstd lz4 >/dev/null")) {
		print_message("skipped: the programs zstd and lz4 are not installed\n");
		skip();
	}
	assert_int_equal(record("-q -w z.zst --compress zstd"), STATUS_OK);
	assert_int_equal(system("zstd -q -d -f z.zst -o z"), 0);
	assert_int_equal(test_pcap_read("z").packets, TOTAL);
	assert_int_equal(record("-q -w l.lz4 --compress lz4"), STATUS_OK);
	assert_int_equal(system("lz4 -q -d -f l.lz4 l"), 0);
	assert_int_equal(test_blocks_read("l").epb, TOTAL);
	assert_int_equal(test_blocks_read("l").isb, 2);
}

/* Several frames, compressed by other threads: the same packets in the same order, files of the
 * same sizes. */
static void threads_compress(void **state)
{
	static const struct fake_run large[] = {{0, 0, 9000, 1500}, {0, 1, 9000, 1500}};
	struct test_pcap t;
	size_t count;
	char **name;

	if (system("command -v zstd >/dev/null")) {
		print_message("skipped: the program zstd is not installed\n");
		skip();
	}
	fake = (struct fake){.apps = 1, .runs = large, .run_count = 2};
	assert_int_equal(record("-q -w z.zst --compress zstd --threads 3"), STATUS_OK);
	assert_int_equal(system("zstd -q -d -f z.zst -o z"), 0);
	t = test_pcap_read("z");
	assert_int_equal(t.packets, 18000);
	assert_int_equal(t.gaps, 0);
	assert_int_equal(record("-q -P -w p.zst --compress zstd --threads 2"), STATUS_OK);
	assert_int_equal(system("zstd -q -d -f p.zst -o p"), 0);
	assert_int_equal(test_pcap_read("p").packets, 18000);
	assert_int_equal(
		record("-q -w r.zst --compress zstd --threads 4 -b packets:5000"), STATUS_OK);
	name = names("r_*.zst", &count);
	assert_int_equal(count, 4);
	for (size_t i = 0; i < count; i++) {
		char line[256];

		snprintf(line, sizeof(line), "zstd -q -d -f %s -o r", name[i]);
		assert_int_equal(system(line), 0);
		t = test_pcap_read("r");
		assert_int_equal(t.packets, i < 3 ? 5000 : 3000);
		assert_int_equal(t.first, 5000 * i);
		assert_int_equal(t.gaps, 0);
	}
}

/* The file ends with a whole frame, and the count is that of its packets. */
static void full_file_of_several_threads(void **state)
{
	static const struct fake_run large[] = {{0, 0, 9000, 1500}, {0, 1, 9000, 1500}};
	struct rlimit old, now;
	struct stat st;

	fake = (struct fake){.apps = 1, .runs = large, .run_count = 2};
	assert_int_equal(record("-q -w all.lz4 --compress lz4 --threads 4"), STATUS_OK);
	assert_int_equal(stat("all.lz4", &st), 0);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	now = (struct rlimit){(rlim_t)st.st_size / 2, old.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &now), 0);
	assert_int_equal(record("-w f.lz4 --no-direct --compress lz4 --threads 4"), STATUS_FAILED);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	assert_non_null(
		strstr(message_last(), "writing f.lz4: the limit of file sizes is reached"));
	if (system("command -v lz4 >/dev/null")) {
		print_message("skipped: the program lz4 is not installed\n");
		skip();
	}
	assert_int_equal(system("lz4 -q -d -f f.lz4 f"), 0);
	assert_in_range(test_pcap_read("f").packets, 1000, 17999);
	assert_int_equal(test_pcap_read("f").gaps, 0);
}

static uint64_t number(json_t *j, const char *key)
{
	json_t *v = json_object_get(j, key);

	assert_true(json_is_integer(v));
	return (uint64_t)json_integer_value(v);
}

/* The summary of a command with --json; the caller frees it. */
static json_t *summary_of(const char *line)
{
	int out = dup(STDOUT_FILENO);
	json_t *j;

	fflush(stdout);
	assert_non_null(freopen("json", "w", stdout));
	assert_int_equal(record(line), STATUS_OK);
	fflush(stdout);
	dup2(out, STDOUT_FILENO);
	close(out);
	j = json_load_file("json", 0, NULL);
	assert_non_null(j);
	return j;
}

/* A port that was stopped before its driver was read: zeros would be wrong. */
static void counters_of_a_driver_that_was_not_read_are_null(void **state)
{
	for (unsigned unread = 0; unread < 2; unread++) {
		json_t *j, *port;

		fake.nic_unread = unread;
		j = summary_of("-q --json -w f");
		port = json_array_get(
			json_object_get(json_array_get(json_object_get(j, "applications"), 0),
				"interfaces"),
			0);
		assert_int_equal(json_is_null(json_object_get(port, "nic_read")), unread);
		assert_int_equal(
			json_is_null(json_object_get(json_object_get(port, "nic"), "rx_packets")),
			unread);
		if (!unread)
			assert_int_equal(number(json_object_get(port, "nic"), "missed"), 3);
		json_decref(j);
	}
}

static void summary_as_json(void **state)
{
	json_t *j, *app, *file, *tap;
	double rate, seconds;

	fake.lost[0] = 9;
	fake.not_sampled = 700;
	fake.cut = 50;
	fake.evicted = 6;
	j = summary_of("-q --json -w f -c 120 --sample 8 --first 1k/flow");
	rate = json_real_value(json_object_get(j, "packets_per_second"));
	seconds = (double)number(j, "duration_ns") / NS_PER_S;
	assert_true(rate * seconds > 119 && rate * seconds < 121);
	assert_int_equal(number(j, "captured"), TOTAL);
	assert_int_equal(number(j, "seen"), TOTAL + 9 + 700 + 50);
	assert_int_equal(number(j, "not_sampled"), 700);
	assert_int_equal(number(j, "cut"), 50);
	assert_int_equal(number(j, "flows_evicted"), 6);
	assert_int_equal(number(j, "written"), 120);
	assert_int_equal(number(j, "discarded"), TOTAL - 120);
	assert_int_equal(number(json_object_get(j, "lost"), "ring_full"), 9);
	assert_string_equal(json_string_value(json_object_get(j, "ended_by")), "packets");
	assert_true(json_is_null(json_object_get(j, "client")));
	app = json_array_get(json_object_get(j, "applications"), 0);
	tap = json_array_get(json_object_get(app, "interfaces"), 0);
	assert_int_equal(number(tap, "sample"), 8);
	assert_int_equal(number(tap, "not_sampled"), 700);
	assert_int_equal(number(tap, "cut"), 50);
	assert_string_equal(json_string_value(json_object_get(tap, "first")), "1k/flow");
	tap = json_array_get(
		json_object_get(json_array_get(json_object_get(app, "interfaces"), 1), "taps"), 0);
	assert_int_equal(number(tap, "captured"), 51);
	file = json_array_get(json_object_get(j, "files"), 0);
	assert_string_equal(json_string_value(json_object_get(file, "name")), "f");
	assert_int_equal(number(file, "packets"), 120);
	json_decref(j);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RECORD_TEST(everything_is_in_the_file),
		RECORD_TEST(queues_that_are_not_captured),
		RECORD_TEST(losses_without_a_name_count),
		RECORD_TEST(counts_are_exact),
		RECORD_TEST(files_of_a_ring_are_valid_and_complete),
		RECORD_TEST(ports_have_targets_of_their_link_types),
		RECORD_TEST(link_types_that_do_not_fit_are_refused),
		RECORD_TEST(old_files_are_removed),
		RECORD_TEST(number_of_files_ends_the_capture),
		RECORD_TEST(size_ends_the_capture),
		RECORD_TEST(applications_are_merged_under_their_names),
		RECORD_TEST(interfaces_are_described_before_their_packets),
		RECORD_TEST(which_application_is_meant),
		RECORD_TEST(refused_attach_leaves_no_file),
		RECORD_TEST(an_output_has_one_recorder),
		RECORD_TEST(a_link_names_the_file_that_is_made),
		RECORD_TEST(a_queue_that_no_port_has),
		RECORD_TEST(a_queue_that_some_ports_have),
		RECORD_TEST(pcap_and_compression),
		RECORD_TEST(threads_compress),
		RECORD_TEST(full_file_of_several_threads),
		RECORD_TEST(summary_as_json),
		RECORD_TEST(counters_of_a_driver_that_was_not_read_are_null),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
