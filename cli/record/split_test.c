/* SPDX-License-Identifier: BSD-3-Clause */
/* `ringtap record --split`: a file for each interface or direction. */
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/test_command.h"
#include "test_record.h"

/* Packets of each interface of the file. */
static void assert_packets(const char *path, unsigned first, unsigned second)
{
	struct test_blocks b = test_blocks_read(path);

	assert_int_equal(b.packets_of[0], first);
	assert_int_equal(b.packets_of[1], second);
}

static void assert_files(const char *pattern, size_t expected)
{
	size_t count;

	names(pattern, &count);
	assert_int_equal(count, expected);
}

static void a_file_for_each_interface(void **state)
{
	struct test_blocks b;

	assert_int_equal(record("-w a.pcapng --split interface"), STATUS_OK);
	assert_files("*", 2);
	assert_packets("a_p0.pcapng", PORT0, 0);
	assert_packets("a_p1.pcapng", 0, TOTAL - PORT0);
	/* All interfaces are described, so that their numbers stay; counts are its own. */
	b = test_blocks_read("a_p1.pcapng");
	assert_int_equal(b.idb, 2);
	assert_int_equal(b.isb, 1);
	assert_true(b.ended[1]);
	assert_int_equal(b.stat_of[1][8], TOTAL - PORT0);
}

static void a_file_for_each_direction(void **state)
{
	struct test_blocks rx, tx;

	fake.burst = 4;
	assert_int_equal(record("-w a.pcapng --split direction"), STATUS_OK);
	assert_files("*", 2);
	rx = test_blocks_read("a_rx.pcapng");
	tx = test_blocks_read("a_tx.pcapng");
	/* 288 times four and four, and two packets are left, which are received. */
	assert_int_equal(rx.epb, 578);
	assert_int_equal(tx.epb, 576);
	assert_int_equal(rx.packets_of[0] + tx.packets_of[0], PORT0);
	assert_int_equal(test_pcap_read("a_tx.pcapng").first, 4);
	assert_int_equal(tx.isb, 2);
	assert_int_equal(tx.stat_of[0][4], PORT0);
}

static void one_direction_is_one_file(void **state)
{
	assert_int_equal(record("-w a.pcapng --split direction --direction rx"), STATUS_OK);
	assert_files("*", 1);
	assert_packets("a_rx.pcapng", PORT0, TOTAL - PORT0);
	assert_int_equal(record("-w b --split direction --direction tx"), STATUS_OK);
	assert_files("b*", 1);
	assert_files("b_tx", 1);
}

static void an_interface_that_appears_gets_its_file(void **state)
{
	fake.late_interface = 1;
	assert_int_equal(record("-w a --split interface"), STATUS_OK);
	assert_packets("a_p1", 0, TOTAL - PORT0);
}

static void interfaces_of_several_applications(void **state)
{
	static const struct fake_run two[] = {{0, 0, 10, 60}, {1, 0, 5, 60}};

	fake.apps = 2;
	fake.renumber = true;
	fake.runs = two;
	fake.run_count = 2;
	assert_int_equal(record("app0 app1 -w a.pcapng --split interface"), STATUS_OK);
	assert_files("*", 4);
	assert_int_equal(test_blocks_read("a_app0_p0.pcapng").epb, 10);
	assert_int_equal(test_blocks_read("a_app1_p0.pcapng").epb, 5);
	assert_int_equal(test_blocks_read("a_app1_p1.pcapng").epb, 0);
}

static void limits_count_all_files(void **state)
{
	fake.burst = 4;
	assert_int_equal(record("-q -w a --split direction -c 10"), STATUS_OK);
	assert_int_equal(test_pcap_read("a_rx").packets, 6);
	assert_int_equal(test_pcap_read("a_tx").packets, 4);
}

static void other_formats(void **state)
{
	fake.burst = 4;
	assert_int_equal(record("-q -P -w a.pcap --split direction"), STATUS_OK);
	assert_int_equal(test_pcap_read("a_rx.pcap").packets, 578);
	assert_int_equal(test_pcap_read("a_tx.pcap").packets, 576);
	assert_int_equal(record("-q -w a.pcapng.lz4 --compress lz4 --split direction"), STATUS_OK);
	assert_files("a_?x.pcapng.lz4", 2);
	assert_int_equal(record("-q --split direction"), STATUS_OK);
	assert_files("ringtap_app0_*_?x.pcapng", 2);
}

static void names_and_counts_are_in_the_summary(void **state)
{
	struct test_output o;

	fake.burst = 4;
	o = test_command(&cmd_record, "-w|a.pcapng|--split|direction");
	assert_int_equal(o.status, STATUS_OK);
	assert_non_null(strstr(o.err, "File: a_rx.pcapng\n"));
	assert_non_null(strstr(o.err, "a_tx.pcapng: 576 packets"));
	test_output_free(&o);
}

static void what_is_no_file_is_refused(void **state)
{
	assert_int_equal(record("-w /dev/null --split direction"), STATUS_FAILED);
	assert_non_null(strstr(message_last(), "'/dev/null' is not a regular file"));
	assert_int_equal(record("-w no/a --split direction"), STATUS_FAILED);
	assert_non_null(strstr(message_last(), "cannot write 'no/a_rx'"));
	assert_int_equal(fake.attached, 0);
	assert_int_equal(record("-w no/a --split interface"), STATUS_FAILED);
	assert_non_null(strstr(message_last(), "writing no/a_p0"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RECORD_TEST(a_file_for_each_interface),
		RECORD_TEST(a_file_for_each_direction),
		RECORD_TEST(one_direction_is_one_file),
		RECORD_TEST(an_interface_that_appears_gets_its_file),
		RECORD_TEST(interfaces_of_several_applications),
		RECORD_TEST(limits_count_all_files),
		RECORD_TEST(other_formats),
		RECORD_TEST(names_and_counts_are_in_the_summary),
		RECORD_TEST(what_is_no_file_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
