/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets by what they are, and the lines that show them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "groups.h"
#include "held.h"
#include "tables.h"

static struct packet_groups groups;
static uint8_t udp[60] = {2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, 0, 0, 46, 0, 0, 0, 0, 64,
	17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 4, 0, 0, 53};
static uint8_t other[60] = {2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x88, 0xcc};

static int set_up(void **state)
{
	return groups_init(&groups);
}

static int tear_down(void **state)
{
	groups_free(&groups);
	return 0;
}

static struct sample sample(const uint8_t *data, uint32_t length, uint64_t age_ns)
{
	return (struct sample){.data = data,
		.caplen = 60,
		.length = length,
		.queue = 3,
		.ns = 5,
		.age_ns = age_ns};
}

static void add(const uint8_t *data, uint32_t length, uint64_t age_ns)
{
	const struct sample s = sample(data, length, age_ns);

	groups_add(&groups, &s);
}

static void test_protocols_come_by_their_number(void **state)
{
	const struct packet_group *top[4];

	add(other, 60, 1);
	add(udp, 60, 7);
	add(udp, 1000, 3);
	assert_int_equal(groups_top(&groups, top, 4), 2);
	assert_string_equal(top[0]->name, "IPv4 UDP");
	assert_int_equal(top[0]->packets, 2);
	assert_int_equal(top[0]->bytes, 1060);
	assert_int_equal(top[0]->oldest_ns, 7);
	assert_string_equal(top[1]->name, "LLDP");
	assert_int_equal(groups_top(&groups, top, 1), 1);
	assert_int_equal(groups.packets, 3);
	assert_int_equal(groups.sizes[0], 2);
	assert_int_equal(groups.sizes[4], 1);
}

static void test_flows_are_those_of_the_headers(void **state)
{
	const struct flow *top[4];
	char text[FLOW_TEXT];

	add(udp, 60, 1);
	add(udp, 60, 1);
	add(other, 60, 1);
	assert_int_equal(flows_top(groups.flows, FLOWS_BY_PACKETS, top, 4), 2);
	assert_string_equal(flow_text(&top[0]->key, text), "10.0.0.1:1024 > 10.0.0.2:53 UDP");
	assert_int_equal(top[0]->packets[0], 2);
	assert_string_equal(
		flow_text(&top[1]->key, text), "02:00:00:00:00:02 > 02:00:00:00:00:01 LLDP");
}

/* The packet of a ring may be gone when the example is printed. */
static void test_example_is_a_copy_and_the_first_of_its_interval(void **state)
{
	uint8_t gone[60];
	const struct packet_group *top[1];

	memcpy(gone, udp, sizeof(gone));
	add(gone, 100, 1);
	memset(gone, 0xff, sizeof(gone));
	add(udp, 200, 2);
	groups_top(&groups, top, 1);
	assert_int_equal(top[0]->example.length, 100);
	assert_memory_equal(top[0]->example.data, udp, sizeof(udp));
	groups_mark(&groups);
	assert_int_equal(top[0]->marked, 2);
	add(udp, 300, 3);
	assert_int_equal(top[0]->example.length, 300);
	groups_unmark(&groups);
	assert_int_equal(top[0]->marked, 0);
}

static void test_long_packets_are_cut_in_examples(void **state)
{
	uint8_t *jumbo = calloc(1, 9000);
	const struct packet_group *top[1];
	struct sample s = {.data = jumbo, .caplen = 9000, .length = 9000};

	assert_non_null(jumbo);
	memcpy(jumbo, udp, sizeof(udp));
	groups_add(&groups, &s);
	groups_top(&groups, top, 1);
	assert_int_equal(top[0]->example.caplen, SAMPLE_BYTES);
	assert_int_equal(top[0]->example.length, 9000);
	free(jumbo);
}

static void test_protocols_without_room_are_counted(void **state)
{
	const struct packet_group *top[1];

	for (unsigned i = 0; i < KEYED_MAX + 10; i++) {
		other[12] = (uint8_t)(0x90 + i / 256);
		other[13] = (uint8_t)i;
		add(other, 60, 0);
	}
	assert_int_equal(groups.no_room, 10);
	assert_int_equal(groups.packets, KEYED_MAX + 10);
	assert_int_equal(groups_top(&groups, top, 1), 1);
	assert_int_equal(groups_clear(&groups), 0);
	assert_int_equal(groups.packets, 0);
	assert_int_equal(groups_top(&groups, top, 1), 0);
}

static void test_a_packet_in_one_line(void **state)
{
	struct sample s = sample(udp, 98, 0);
	char text[SAMPLE_TEXT];

	assert_string_equal(
		sample_text(&s, text), "10.0.0.1:1024 > 10.0.0.2:53 UDP, 98 bytes, TTL 64");
	s.caplen = 3;
	assert_string_equal(sample_text(&s, text), "unreadable, 98 bytes");
	s = sample(other, 60, 0);
	assert_non_null(strstr(sample_text(&s, text), "02:00:00:00:00:02 > 02:00:00:00:00:01"));
}

static void test_classes_of_ages_end_below_their_limit(void **state)
{
	assert_int_equal(age_class(0), 0);
	assert_int_equal(age_class(99999), 0);
	assert_int_equal(age_class(100000), 1);
	assert_int_equal(age_class(NS_PER_S - 1), 4);
	assert_int_equal(age_class(NS_PER_S), 5);
	assert_int_equal(age_class(UINT64_MAX), AGES - 1);
}

static void test_growth_needs_two_readings(void **state)
{
	struct held h = {.read_ns = 3 * NS_PER_S};
	const struct held_count c = {.older = 50, .before = 80};

	assert_true(isnan(held_growth(&h, &c)));
	h.before_ns = NS_PER_S;
	assert_true(held_growth(&h, &c) == -15);
}

static void test_verdict_needs_several_readings_without_a_decrease(void **state)
{
	static const struct {
		uint64_t older;
		bool grows;
	} readings[] = {{10, false}, {20, false}, {30, false}, {30, false}, {31, true}, {31, true},
		{40, true}, {39, false}, {41, false}, {42, false}, {43, true}};
	struct held h = {0};

	for (unsigned i = 0; i < sizeof(readings) / sizeof(readings[0]); i++) {
		h.all.before = h.all.older;
		h.all.older = readings[i].older;
		held_note_growth(&h);
		assert_int_equal(held_grows(&h), readings[i].grows);
		h.before_ns = 1; /* from the second one on */
	}
}

static void test_pools_that_cannot_be_read_are_said(void **state)
{
	struct ringtap_fate_pool pools[] = {{.name = "ring", .walked = true}, {.name = "odd"}};
	struct ringtap_fates fates = {.pool_count = 2, .pools = {pools, sizeof(pools[0])}};
	const struct fates_session s = {.fates = &fates};
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	assert_non_null(f);
	fates_print_pools_unread(&s, f);
	fflush(f);
	assert_non_null(strstr(text, "freed: odd."));
	assert_null(strstr(text, "more"));
	rewind(f);
	pools[1].walked = true;
	fates.pools_beyond = 3;
	fates_print_pools_unread(&s, f);
	fclose(f);
	assert_string_equal(
		text, "There are 3 pools more, too many: their free mbufs cannot be found.\n");
	free(text);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_protocols_come_by_their_number),
		TEST(test_flows_are_those_of_the_headers),
		TEST(test_example_is_a_copy_and_the_first_of_its_interval),
		TEST(test_long_packets_are_cut_in_examples),
		TEST(test_protocols_without_room_are_counted),
		TEST(test_a_packet_in_one_line),
		TEST(test_classes_of_ages_end_below_their_limit),
		TEST(test_growth_needs_two_readings),
		TEST(test_verdict_needs_several_readings_without_a_decrease),
		TEST(test_pools_that_cannot_be_read_are_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
