/* SPDX-License-Identifier: BSD-3-Clause */
/* ringtap drops, from its command line to its output, with a reader that is made to order. */
#include <errno.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/test_util.h"
#include "base/util.h"
#include "cli/commands.h"
#include "cli/fake_reader.h"
#include "cli/test_command.h"
#include "common/record.h"
#include "drops.h"

static uint8_t udp[104] = {2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, 0, 0, 86, 0, 0, 0, 0, 64,
	17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 4, 0, 0, 53};
static uint8_t arp[60] = {255, 255, 255, 255, 255, 255, 2, 0, 0, 0, 0, 2, 8, 6};

static struct ringtap_fate_queue queues[2];
static struct ringtap_fate_pool pools[1];
static struct ringtap_fates fates;
static struct ringtap_open_packet open_packets[3];
static struct ringtap_port_stats ports[2][2];
static struct ringtap_snapshot snapshots[2];
static struct fake_run runs[2];

static int set_up(void **state)
{
	setenv("COLUMNS", "80", 1);
	queues[0] = (struct ringtap_fate_queue){.interface = 0,
		.received = 100,
		.offered = 60,
		.not_offered = 20,
		.free = 3,
		.open = 2,
		.unknown = 15,
		.inferred = 5,
		.unseen = 4,
		.stopped = 6};
	queues[1] = (struct ringtap_fate_queue){
		.interface = 1, .queue = 2, .received = 11, .offered = 11};
	pools[0] = (struct ringtap_fate_pool){.name = "pool", .size = 4095, .walked = true};
	fates = (struct ringtap_fates){.taken_ns = FAKE_START_NS,
		.walks = 1,
		.queue_count = 2,
		.pool_count = 1,
		.queues = {queues, sizeof(queues[0])},
		.pools = {pools, sizeof(pools[0])},
		.open = 2,
		.free = 1};
	open_packets[0] = (struct ringtap_open_packet){.data = arp,
		.caplen = 60,
		.length = 60,
		.ns = FAKE_START_NS - 7000,
		.interface = 0};
	open_packets[1] = open_packets[2] = open_packets[0];
	open_packets[1].free = true;
	open_packets[1].fate = RINGTAP_FATE_NOT_OFFERED;
	open_packets[2].free = true;
	open_packets[2].fate = RINGTAP_FATE_UNSEEN;
	runs[0] = (struct fake_run){.interface = 0, .packets = 20, .len = 100};
	fake = (struct fake){.apps = 1,
		.runs = runs,
		.run_count = 1,
		.bytes = udp,
		.fates = &fates,
		.open = open_packets,
		.program = "testpmd"};
	test_folder_enter();
	return 0;
}

static int tear_down(void **state)
{
	test_folder_leave();
	return 0;
}

/* Statistics: a driver that refused 7 of 1000 packets, and one that is unknown. */
static void set_statistics(void)
{
	for (unsigned i = 0; i < 2; i++) {
		ports[i][0] =
			(struct ringtap_port_stats){.name = "p0", .device = "p0", .used = true};
		ports[i][1] =
			(struct ringtap_port_stats){.name = "p1", .device = "p1", .port_id = 1};
		snapshots[i] = (struct ringtap_snapshot){.taken_ns = 1,
			.tsc_hz = 1000000000,
			.collectors = RINGTAP_POLLS,
			.port_count = 2,
			.ports = {ports[i], sizeof(ports[i][0])}};
	}
	ports[0][0].read_ns = ports[0][1].read_ns = 1;
	ports[1][0].read_ns = ports[1][1].read_ns = UINT64_MAX; /* after any end */
	ports[1][0].tx_before = ports[1][0].tx_after = 1000;
	ports[1][0].opackets = 993;
	ports[1][0].imissed = 12;
	ports[1][0].rx_nombuf = 34;
	fake.first = &snapshots[0];
	fake.now = &snapshots[1];
}

static void test_what_is_not_there_touches_nothing(void **state)
{
	static const struct test_refusal refusals[] = {
		{"-w no/file app0", STATUS_FAILED, "drops: cannot write 'no/file': No such file"},
		{"nowhere", STATUS_FAILED, "drops: no application is called 'nowhere'"},
		{"app0:p7", STATUS_FAILED, "application 'app0' has no port 'p7'; there is p0, p1"},
		{"app0:lo", STATUS_FAILED,
			"has no port 'lo', which is an interface of the kernel; 'ringtap host lo' "
			"captures on it"},
	};

	test_refusals(&cmd_drops, refusals, sizeof(refusals) / sizeof(refusals[0]));
	assert_int_equal(fake.attached, 0);
}

static void test_an_application_that_cannot_be_attached_to(void **state)
{
	static const struct test_refusal refusal = {"app0", STATUS_FAILED, "fake error"};

	fake.attach_error = -EIO;
	test_refusals(&cmd_drops, &refusal, 1);
}

static void test_a_file_stays_where_nothing_was_attached(void **state)
{
	static const struct test_refusal refusal = {"-w old app0", STATUS_FAILED, "fake error"};
	size_t len;
	uint8_t *data;

	test_write("old", "what was there", 14);
	fake.attach_error = -EIO;
	test_refusals(&cmd_drops, &refusal, 1);
	data = test_read("old", &len);
	assert_int_equal(len, 14);
	free(data);
}

static void test_sums_are_those_of_all_queues(void **state)
{
	json_t *j = test_application(&cmd_drops, "--once --json app0");

	assert_string_equal(json_string_value(json_object_get(j, "name")), "app0");
	assert_int_equal(test_number(j, "received"), 111);
	assert_int_equal(test_number(j, "offered"), 71);
	assert_int_equal(test_number(j, "not_offered"), 23); /* with those in their pools */
	assert_int_equal(test_number(j, "open"), 2);
	assert_int_equal(test_number(j, "unknown"), 15);
	assert_int_equal(test_number(j, "unseen"), 4);
	assert_int_equal(test_number(j, "port_stopped"), 6);
	assert_int_equal(test_number(j, "lost"), 0);
	assert_int_equal(json_array_size(json_object_get(j, "queues")), 2);
	assert_int_equal(test_number(test_at(j, "queues", 0), "not_offered"), 23);
	assert_int_equal(test_number(test_at(j, "queues", 0), "in_pools"), 3);
	assert_int_equal(test_number(test_at(j, "queues", 0), "likely_offered"), 5);
	assert_int_equal(test_number(test_at(j, "queues", 1), "queue"), 2);
	assert_int_equal(test_number(test_at(j, "queues", 1), "received"), 11);
	assert_true(json_is_null(json_object_get(j, "upper_port")));
	assert_true(json_is_false(json_object_get(j, "copies_not_seen")));
	assert_true(json_is_null(json_object_get(j, "counted_by_application")));
	json_decref(j);
}

/* Free packets at the end are shown, too, unless it is unknown what has become of them. */
static void test_packets_are_those_of_the_capture_and_those_in_pools(void **state)
{
	json_t *j = test_application(&cmd_drops, "--once --json app0"), *packets, *group;

	packets = json_object_get(j, "not_offered_packets");
	assert_int_equal(test_number(packets, "packets"), 21);
	assert_int_equal(test_number(packets, "in_pools_at_end"), 1);
	group = test_at(packets, "protocols", 0);
	assert_string_equal(json_string_value(json_object_get(group, "protocol")), "IPv4 UDP");
	assert_int_equal(test_number(group, "packets"), 20);
	group = json_object_get(group, "example");
	assert_string_equal(json_string_value(json_object_get(group, "packet")),
		"10.0.0.1:1024 > 10.0.0.2:53 UDP, 104 bytes, TTL 64");
	assert_string_equal(
		json_string_value(json_object_get(json_object_get(group, "port"), "name")), "p0");
	assert_string_equal(json_string_value(json_object_get(group, "time")),
		"2023-11-14T22:13:20.118456789Z");
	assert_int_equal(test_number(group, "age_ns"), FAKE_AGE_NS);
	group = json_object_get(test_at(packets, "protocols", 1), "example");
	assert_int_equal(test_number(group, "age_ns"), 7000);
	json_decref(j);
}

static void test_a_filter_chooses_packets_and_not_counts(void **state)
{
	json_t *doc = test_document(&cmd_drops, "--once --json -f arp app0"), *packets;
	json_t *j = test_at(doc, "applications", 0);

	assert_int_equal(test_number(j, "not_offered"), 23);
	packets = json_object_get(j, "not_offered_packets");
	assert_int_equal(test_number(packets, "packets"), 1);
	assert_int_equal(json_array_size(json_object_get(packets, "protocols")), 1);
	assert_string_equal(json_string_value(json_object_get(doc, "filter")), "arp");
	assert_true(json_is_true(json_object_get(doc, "final")));
	json_decref(doc);
}

static void test_a_port_chooses_counts_and_packets(void **state)
{
	json_t *j = test_application(&cmd_drops, "--once --json app0:p1");

	assert_int_equal(test_number(j, "received"), 11);
	assert_int_equal(test_number(j, "not_offered"), 0);
	assert_int_equal(test_number(json_object_get(j, "not_offered_packets"), "packets"), 0);
	assert_int_equal(json_array_size(json_object_get(j, "queues")), 1);
	/* All ports may have sent what it received. */
	assert_int_equal(json_array_size(json_object_get(j, "ports")), 2);
	json_decref(j);
}

static void test_ports_have_what_their_drivers_counted(void **state)
{
	json_t *j;

	set_statistics();
	j = test_application(&cmd_drops, "--once --json app0");
	assert_int_equal(test_number(test_at(j, "ports", 0), "missed"), 12);
	assert_int_equal(test_number(test_at(j, "ports", 0), "no_mbuf"), 34);
	assert_int_equal(test_number(test_at(j, "ports", 0), "offered"), 1000);
	assert_int_equal(test_number(test_at(j, "ports", 0), "refused"), 7);
	assert_int_equal(test_number(test_at(j, "ports", 0), "tx_unknown"), 0);
	assert_true(json_is_false(json_object_get(test_at(j, "ports", 0), "stopped")));
	assert_true(json_is_false(json_object_get(test_at(j, "ports", 0), "counters_began_again")));
	assert_int_equal(test_number(j, "pid"), 4711);
	json_decref(j);
}

static void test_without_statistics_ports_are_unknown(void **state)
{
	json_t *j = test_application(&cmd_drops, "--once --json app0");

	assert_true(json_is_null(json_object_get(test_at(j, "ports", 0), "missed")));
	assert_true(json_is_null(json_object_get(test_at(j, "ports", 0), "refused")));
	json_decref(j);
}

/* Standard output is not a terminal: tables for each interval, and at the end. */
static void test_tables_of_each_interval(void **state)
{
	const char *text;

	fake.wait_for_stop = true;
	text = test_command_output(&cmd_drops, "--updates 2 --interval 100ms app0", STATUS_OK);
	assert_int_equal(test_count(text, "Z\nringtap drops  app0"), 3);
}

static void test_tables(void **state)
{
	const char *text;

	set_statistics();
	text = test_command_output(&cmd_drops, "--once app0", STATUS_OK);
	test_assert_has(text, "ringtap drops  app0 (testpmd, pid 4711), ");
	test_assert_has(text,
		"\nMissed by the NIC: 12, no mbuf: 34, not offered: 23 (20.72 %), refused: 7\n");
	test_assert_has(text,
		"\n111 packets received: 71 offered, 23 not offered (20.72 %), 2 open, 15 unknown\n");
	test_assert_has(text, "\n  p0        12       34    1,000        7\n");
	test_assert_has(
		text, "\n  p0, 0             100       60           23  23.0     2       15\n");
	test_assert_has(
		text, "\n  p1, 2              11       11            0   0.0     0        0\n");
	test_assert_has(text, "\n  IPv4 UDP       20  95.2 ");
	test_assert_has(text, "\n  ARP             1   4.8 ");
	test_assert_has(text, "5 of the unknown ones were likely offered");
	test_assert_has(text, "4 of the unknown ones may have been sent on queues that were new");
	test_assert_has(text, "6 of the unknown ones were not sent while a port was stopped");
	test_assert_has(text, "Not offered: no TX function got the packet");
	test_assert_has_not(text, "only in the totals");
	test_assert_has_not(text, "is stopped");
	test_assert_has_not(text, "began again");
	test_assert_has_not(text, "Open vSwitch");
	test_assert_fits(text);
}

/* Each note stands for something that the tables do not have. */
static void test_notes(void **state)
{
	const char *text;

	set_statistics();
	fake.lost[0] = 1500;
	fake.lost_tx = 32;
	fake.driver = "net_bonding";
	fake.program = "ovs-vswitchd-dpdk";
	fates.rest_offered = 9;
	ports[1][0].stopped_ns = 5;
	ports[1][1].epoch = 1;
	ports[1][1].tx_unknown = 8;
	text = test_command_output(&cmd_drops, "--once -f arp app0", STATUS_OK);
	test_assert_has(text, "1,500 packets that were not offered are only in the totals");
	test_assert_has(text, "Threads without a slot sent 32 packets");
	test_assert_has(text, "Up to 9 of those not offered may have been");
	test_assert_has(text, "p0 is stopped: it refuses all packets");
	test_assert_has_not(text, "p1 is stopped");
	test_assert_has(text, "p1: the driver's counters began again in between");
	test_assert_has(text, "of 8 packets");
	test_assert_has(text, "p1 receives from other ports: its packets count at those.");
	test_assert_has(text, "Open vSwitch copies packets for internal ports");
	test_assert_has(text, "Why Open vSwitch dropped packets is not known: its process is not");
	test_assert_has(text, "Not offered, that match arp");
	test_assert_fits(text);
}

/* None of none may have been offered. */
static void test_a_bound_is_at_most_all(void **state)
{
	fates.rest_offered = 1000000;
	test_assert_has(test_command_output(&cmd_drops, "--once app0", STATUS_OK),
		"Up to 23 of those not offered may have been");
}

static void test_a_long_sum_goes_on_below(void **state)
{
	const char *text;

	queues[0].received = queues[0].offered = 12345678901234567;
	text = test_command_output(&cmd_drops, "--once app0", STATUS_OK);
	test_assert_has(text, "\n12,345,678,901,234,578 packets received: ");
	test_assert_has(text, " offered, 23 not\n  offered (0.00 %), 2 open, 15 unknown\n");
}

static void test_notes_are_in_the_document(void **state)
{
	json_t *j;

	set_statistics();
	fake.lost[0] = 1500;
	fake.lost_tx = 32;
	fake.driver = "net_failsafe";
	fake.program = "ovs-vswitchd";
	fates.rest_offered = 9;
	fates.pools_beyond = 2;
	ports[1][0].stopped_ns = 5;
	j = test_application(&cmd_drops, "--once --json app0");
	assert_int_equal(test_number(j, "lost"), 1500);
	assert_int_equal(test_number(j, "sent_unseen"), 32);
	assert_int_equal(test_number(j, "rest_offered"), 9);
	assert_int_equal(test_number(j, "pools_beyond"), 2);
	assert_string_equal(
		json_string_value(json_object_get(json_object_get(j, "upper_port"), "name")), "p1");
	assert_true(json_is_true(json_object_get(j, "copies_not_seen")));
	assert_true(json_is_true(json_object_get(test_at(j, "ports", 0), "stopped")));
	json_decref(j);
}

static void test_an_application_that_ends(void **state)
{
	json_t *j;

	fake.end = 0; /* -EPIPE, and its applications are dead */
	j = test_application(&cmd_drops, "--once --json app0");
	assert_true(json_is_true(json_object_get(j, "ended")));
	test_assert_has(message_last(), "drops: app0 has ended; the results are those until then");
	json_decref(j);
}

static void test_corrupt_records_end_it_and_leave_what_came_before(void **state)
{
	const char *text;

	fake.end = -EBADMSG;
	text = test_command_output(&cmd_drops, "--once app0", STATUS_FAILED);
	test_assert_has(
		message_last(), "drops: reading app0: fake error; what came before is right");
	test_assert_has(text, "IPv4 UDP");
}

static void test_the_file_has_the_packets_by_the_time_of_reception(void **state)
{
	static const char noticed[] = "not offered to any port; noticed 5 ms after its reception";
	static const char found[] = "not offered to any port; free in its pool 7 us after its "
				    "reception, when the capture ended";
	static const uint8_t end[8] = {0, 0, 0, 0, 216}; /* opt_endofopt, and the block's length */
	struct test_blocks blocks;
	uint8_t *data;
	size_t len;
	uint64_t first;

	test_command_output(&cmd_drops, "--once -s 64 -w out app0", STATUS_OK);
	blocks = test_blocks_read("out");
	assert_int_equal(blocks.shb, 1);
	assert_int_equal(blocks.idb, 2);
	assert_int_equal(blocks.epb, 21);
	data = test_read("out", &len);
	assert_non_null(memmem(data, len, noticed, strlen(noticed)));
	assert_non_null(memmem(data, len, end, sizeof(end)));
	assert_non_null(memmem(data, len, found, strlen(found)));
	free(data);
	first = test_pcap_read("out").first_ns;
	assert_int_equal(first, FAKE_START_NS - FAKE_AGE_NS);
}

/* As on a full disk: what is there is whole, and reported once. */
static void test_a_file_that_cannot_grow_keeps_whole_packets(void **state)
{
	const struct rlimit small = {.rlim_cur = 65536, .rlim_max = RLIM_INFINITY};
	struct rlimit before;
	struct test_blocks blocks;
	const char *text;

	runs[0].packets = 2000;
	getrlimit(RLIMIT_FSIZE, &before);
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	text = test_command_output(&cmd_drops, "--once -w out app0", STATUS_FAILED);
	setrlimit(RLIMIT_FSIZE, &before);
	signal(SIGXFSZ, SIG_DFL);
	test_assert_has(message_last(),
		"drops: writing out: File too large; what was written before is whole");
	test_assert_has(text, " 2,000 ");
	blocks = test_blocks_read("out");
	assert_in_range(blocks.epb, 1, 1999);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_what_is_not_there_touches_nothing),
		TEST(test_an_application_that_cannot_be_attached_to),
		TEST(test_a_file_stays_where_nothing_was_attached),
		TEST(test_sums_are_those_of_all_queues),
		TEST(test_packets_are_those_of_the_capture_and_those_in_pools),
		TEST(test_a_filter_chooses_packets_and_not_counts),
		TEST(test_a_port_chooses_counts_and_packets),
		TEST(test_ports_have_what_their_drivers_counted),
		TEST(test_without_statistics_ports_are_unknown),
		TEST(test_tables),
		TEST(test_tables_of_each_interval),
		TEST(test_notes),
		TEST(test_a_bound_is_at_most_all),
		TEST(test_a_long_sum_goes_on_below),
		TEST(test_notes_are_in_the_document),
		TEST(test_an_application_that_ends),
		TEST(test_corrupt_records_end_it_and_leave_what_came_before),
		TEST(test_the_file_has_the_packets_by_the_time_of_reception),
		TEST(test_a_file_that_cannot_grow_keeps_whole_packets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
