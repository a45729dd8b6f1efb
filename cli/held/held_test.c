/* SPDX-License-Identifier: BSD-3-Clause */
/* ringtap held, with a reader that is made to order: places, ages, growth, and what they print. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/test_util.h"
#include "base/util.h"
#include "cli/commands.h"
#include "cli/fake_reader.h"
#include "cli/test_command.h"
#include "report.h"

#define PACKETS 8

static uint8_t udp[60] = {2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, 0, 0, 46, 0, 0, 0, 0, 64,
	17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 4, 0, 0, 53};

static struct ringtap_fate_queue queues[4]; /* the last one is beyond those of the session */
static struct ringtap_fate_pool pools[2];
static struct ringtap_fates fates;
static struct ringtap_open_packet packets[PACKETS];
static struct ringtap_port_stats ports[2];
static struct ringtap_snapshot snapshot;

/* Packet i was received so long ago, at a queue of a port, into an mbuf of a pool. */
static void put(unsigned i, uint64_t age_ns, uint32_t interface, uint32_t queue, uint32_t pool)
{
	packets[i] = (struct ringtap_open_packet){.data = udp,
		.caplen = 60,
		.length = 60,
		.ns = FAKE_START_NS - age_ns,
		.interface = interface,
		.queue = queue,
		.pool = pool};
}

static int set_up(void **state)
{
	setenv("COLUMNS", "80", 1);
	queues[0] = (struct ringtap_fate_queue){.received = 500};
	queues[1] = (struct ringtap_fate_queue){.queue = 1, .received = 300};
	queues[2] = (struct ringtap_fate_queue){.interface = 1, .received = 7};
	queues[3] = (struct ringtap_fate_queue){.queue = 7};
	pools[0] = (struct ringtap_fate_pool){
		.name = "small", .size = 4095, .walked = true, .open = 4, .free = 9};
	pools[1] = (struct ringtap_fate_pool){.name = "large", .size = 511, .walked = true};
	fates = (struct ringtap_fates){.taken_ns = FAKE_START_NS,
		.walks = 2,
		.queue_count = 3,
		.pool_count = 2,
		.queues = {queues, sizeof(queues[0])},
		.pools = {pools, sizeof(pools[0])},
		.open = PACKETS - 1,
		.free = 1};
	put(0, 2 * NS_PER_S, 0, 1, 0);
	put(1, 3 * NS_PER_S, 0, 1, 0);
	put(2, 4 * NS_PER_S, 0, 1, 0);
	put(3, 1000, 0, 1, 0);
	put(4, 70 * NS_PER_S, 1, 0, 1);
	put(5, 50000, 1, 0, 1);
	put(6, NS_PER_S, 0, 7, RINGTAP_NO_INDEX); /* neither queue nor pool are known */
	put(7, 5 * NS_PER_S, 0, 0, 0);
	packets[7].free = true; /* it is not held */
	ports[0] = (struct ringtap_port_stats){
		.name = "p0", .device = "p0", .rx_queues = 2, .rx_descriptors = 1, .read_ns = 1};
	ports[1] = (struct ringtap_port_stats){.name = "p1", .device = "p1", .port_id = 1};
	snapshot = (struct ringtap_snapshot){
		.tsc_hz = 1000000000, .port_count = 2, .ports = {ports, sizeof(ports[0])}};
	fake = (struct fake){.apps = 1, .fates = &fates, .open = packets, .program = "testpmd"};
	return 0;
}

static void set_statistics(void)
{
	ports[0].read_ns = ports[1].read_ns = UINT64_MAX;
	fake.first = fake.now = &snapshot;
}

static void assert_counts(const json_t *j, json_int_t open, json_int_t older)
{
	assert_int_equal(test_number(j, "open"), open);
	assert_int_equal(test_number(j, "older"), older);
}

static void test_what_is_not_there_is_refused(void **state)
{
	static const struct test_refusal refusals[] = {
		{"nowhere", STATUS_FAILED, "held: no application is called 'nowhere'"},
		{"app0:p7", STATUS_FAILED, "application 'app0' has no port 'p7'; there is p0, p1"},
	};

	test_refusals(&cmd_held, refusals, 2);
	assert_int_equal(fake.attached, 0);
}

static void test_packets_by_place(void **state)
{
	json_t *j = test_application(&cmd_held, "--once --json app0");

	assert_counts(j, 7, 5);
	assert_int_equal(test_number(j, "oldest_ns"), 70 * NS_PER_S);
	assert_int_equal(test_number(j, "pool_walks"), 2);
	assert_true(json_is_null(json_object_get(j, "older_per_second"))); /* a single reading */
	assert_int_equal(json_array_size(json_object_get(j, "queues")), 3);
	assert_counts(test_at(j, "queues", 0), 0, 0);
	assert_counts(test_at(j, "queues", 1), 4, 3);
	assert_int_equal(test_number(test_at(j, "queues", 1), "received"), 300);
	assert_counts(test_at(j, "queues", 2), 2, 1);
	assert_counts(test_at(j, "pools", 0), 4, 3);
	assert_int_equal(test_number(test_at(j, "pools", 0), "size"), 4095);
	assert_int_equal(test_number(test_at(j, "pools", 0), "free_packets"), 9);
	assert_counts(test_at(j, "pools", 1), 2, 1);
	json_decref(j);
}

static void test_places_are_pools_by_queues(void **state)
{
	json_t *j = test_application(&cmd_held, "--once --json app0"), *place;

	assert_int_equal(json_array_size(json_object_get(j, "places")), 3);
	place = test_at(j, "places", 0);
	assert_string_equal(json_string_value(json_object_get(place, "pool")), "small");
	assert_string_equal(
		json_string_value(json_object_get(json_object_get(place, "port"), "name")), "p0");
	assert_int_equal(test_number(place, "queue"), 1);
	assert_counts(place, 4, 3);
	place = test_at(j, "places", 2);
	assert_true(json_is_null(json_object_get(place, "pool")));
	assert_true(json_is_null(json_object_get(place, "port")));
	assert_counts(place, 1, 1);
	assert_int_equal(test_number(j, "unplaced"), 0);
	json_decref(j);
}

static void test_ages(void **state)
{
	static const json_int_t counts[AGES] = {2, 0, 0, 0, 0, 4, 0, 1, 0};
	json_t *j = test_application(&cmd_held, "--once --json app0");

	assert_int_equal(json_array_size(json_object_get(j, "ages")), AGES);
	for (size_t i = 0; i < AGES; i++)
		assert_int_equal(test_number(test_at(j, "ages", i), "packets"), counts[i]);
	json_decref(j);
}

static void test_older_is_a_bound(void **state)
{
	json_t *doc = test_document(&cmd_held, "--once --json --older 3s app0");
	json_t *j = test_at(doc, "applications", 0);

	assert_counts(j, 7, 3);
	assert_int_equal(test_number(json_object_get(j, "older_packets"), "packets"), 3);
	assert_int_equal(test_number(doc, "older_than_ns"), 3 * NS_PER_S);
	json_decref(doc);
}

static void test_groups_are_those_of_older_packets(void **state)
{
	json_t *j = test_application(&cmd_held, "--once --json app0"), *group;

	group = test_at(json_object_get(j, "older_packets"), "protocols", 0);
	assert_string_equal(json_string_value(json_object_get(group, "protocol")), "IPv4 UDP");
	assert_int_equal(test_number(group, "packets"), 5);
	group = json_object_get(group, "example");
	assert_int_equal(test_number(group, "age_ns"), 2 * NS_PER_S);
	assert_int_equal(test_number(group, "queue"), 1);
	json_decref(j);
}

static void test_a_port_chooses_packets(void **state)
{
	json_t *j = test_application(&cmd_held, "--once --json app0:p1");

	assert_counts(j, 2, 1);
	assert_int_equal(json_array_size(json_object_get(j, "queues")), 1);
	json_decref(j);
}

static void test_tables(void **state)
{
	const char *text;

	set_statistics();
	text = test_command_output(&cmd_held, "--once app0", STATUS_OK);
	test_assert_has(text, "ringtap held  app0 (testpmd, pid 4711), ");
	test_assert_has(text,
		"\n7 received packets are open, 5 of them for more than 1 s; the oldest for 70 s\n");
	test_assert_has(text, "\n3 of them are of small and were received at p0 queue 1\n");
	test_assert_has(text, "\n  below 100 us        2  28.6\n");
	test_assert_has(text, "\n  1 to 10 s           4  57.1\n");
	test_assert_has(text, "\n  p0, 1           4      3                -\n");
	test_assert_has(text, "\n  others          1      1                -\n");
	test_assert_has(text, "\n  small, of 4,095 mbufs     4      3                -\n");
	test_assert_has(text, "\n  small, p0, 1              4      3                -\n");
	test_assert_has(text, "\n  not known yet, others     1      1                -\n");
	test_assert_has(text, "Open for more than 1 s");
	test_assert_has(text, "Up to 2 of the older ones may have been freed");
	test_assert_has(text, "Packets received before this command began are not counted.");
	test_assert_has_not(text, "not read yet");
	test_assert_has_not(text, "p0, 0");
	test_assert_fits(text);
}

/* The example of protocol 0. */
static json_t *example(json_t *j)
{
	return json_object_get(
		test_at(json_object_get(j, "older_packets"), "protocols", 0), "example");
}

static void assert_operations(uint64_t history, const char *text, size_t count)
{
	json_t *j, *list;
	const char *out;

	packets[0].has_history = true;
	packets[0].mbuf = 0x7f0000001080;
	packets[0].history = history;
	j = test_application(&cmd_held, "--once --json app0");
	list = json_object_get(example(j), "history");
	assert_int_equal(json_array_size(list), count);
	assert_string_equal(
		json_string_value(json_object_get(example(j), "mbuf")), "0x7f0000001080");
	out = test_command_output(&cmd_held, "--once app0", STATUS_OK);
	test_assert_has(out, "Operations on the mbufs of these examples, the oldest first");
	test_assert_has(out, text);
	test_assert_fits(out);
	json_decref(j);
}

static void test_histories_of_mbufs(void **state)
{
	json_t *j = test_application(&cmd_held, "--once --json app0");

	assert_true(json_is_null(json_object_get(example(j), "history")));
	assert_true(json_is_null(json_object_get(example(j), "mbuf")));
	json_decref(j);
	test_assert_has_not(
		test_command_output(&cmd_held, "--once app0", STATUS_OK), "Operations on");
	assert_operations(0x47, "  IPv4 UDP  0x7f0000001080  lib alloc, Rx\n", 2);
	assert_operations(0, "0x7f0000001080  none\n", 0);
	assert_operations(0x4704, "0x7f0000001080  lib alloc\n", 1); /* what is before is older */
	assert_operations(0x123456789abcdef, "0x7f0000001080  lib free, PMD free, ", 15);
	assert_operations(0xd7, "operation 13, Rx\n", 2);
	assert_operations(0x7777777777777777, "  ..., Rx, Rx", 16);
}

static void test_notes(void **state)
{
	const char *text;

	fates.walks = 0;
	fates.pools_beyond = 1;
	pools[1].walked = false;
	text = test_command_output(&cmd_held, "--once app0", STATUS_OK);
	test_assert_has(text, "The pools were not read yet");
	test_assert_has(text, "large.");
	test_assert_has(text, "There are 1 pools more");
	test_assert_has_not(text, "may have been freed: their mbufs"); /* without statistics */
	test_assert_fits(text);
}

/* One pool needs no table by pool and queue. */
static void test_a_single_pool(void **state)
{
	for (unsigned i = 0; i < PACKETS; i++)
		packets[i].pool = 0;
	test_assert_has_not(
		test_command_output(&cmd_held, "--once app0", STATUS_OK), "By mempool, receiving");
}

static void test_without_fates_it_fails(void **state)
{
	fake.fates = NULL;
	assert_string_equal(test_command_output(&cmd_held, "--once app0", STATUS_FAILED), "");
	test_assert_has(message_last(), "held: reading the fates of app0: No data available");
}

/* Two readings, a second apart. */
static void test_growth_is_that_of_older_packets(void **state)
{
	struct held *h = held_new("held");
	json_t *doc, *j;

	assert_non_null(h);
	assert_int_equal(ringtap_capture_create(&h->view.s.cap, NULL), 0);
	assert_int_equal(fates_read(&h->view.s), 0);
	fates.open -= 5;
	assert_int_equal(held_read(h), 0);
	assert_int_equal(h->all.older, 3);
	assert_true(isnan(held_growth(h, &h->all)));
	fates.open += 5;
	assert_int_equal(held_read(h), 0);
	assert_int_equal(h->all.before, 3);
	h->read_ns = h->before_ns + 2 * NS_PER_S;
	assert_true(held_growth(h, &h->all) == 1);
	assert_int_equal(h->grown, 1);
	h->view.s.app.name = "app0";
	doc = held_json(h);
	j = test_at(doc, "applications", 0);
	assert_true(json_real_value(json_object_get(j, "older_per_second")) == 1);
	assert_int_equal(test_number(j, "readings_grown"), 1);
	assert_true(json_is_false(json_object_get(j, "grows")));
	json_decref(doc);
	held_free(h);
}

static void test_a_pool_chooses_packets(void **state)
{
	struct held *h = held_new("held");

	assert_non_null(h);
	assert_int_equal(ringtap_capture_create(&h->view.s.cap, NULL), 0);
	assert_int_equal(fates_read(&h->view.s), 0);
	h->pool = "large";
	assert_int_equal(held_read(h), 0);
	assert_int_equal(h->all.open, 2);
	assert_int_equal(h->all.older, 1);
	assert_int_equal(held_largest(h)->pool, 1);
	held_free(h);
}

#define TEST(f) cmocka_unit_test_setup(f, set_up)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_what_is_not_there_is_refused),
		TEST(test_packets_by_place),
		TEST(test_places_are_pools_by_queues),
		TEST(test_ages),
		TEST(test_older_is_a_bound),
		TEST(test_groups_are_those_of_older_packets),
		TEST(test_a_port_chooses_packets),
		TEST(test_tables),
		TEST(test_histories_of_mbufs),
		TEST(test_notes),
		TEST(test_a_single_pool),
		TEST(test_without_fates_it_fails),
		TEST(test_growth_is_that_of_older_packets),
		TEST(test_a_pool_chooses_packets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
