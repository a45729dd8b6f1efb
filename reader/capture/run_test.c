/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "capture.h"

/* Four records: 32, 36, 40 and 44 bytes; times 100, 101, 102 and 103; interfaces 0, 1, 2 and 3. */
static uint32_t bytes[38];
static struct ringtap_run run;

static int set_up(void **state)
{
	uint32_t *at = bytes;

	memset(bytes, 0, sizeof(bytes));
	for (uint32_t i = 0; i < 4; i++) {
		uint32_t total = 32 + 4 * i;
		struct rt_epb e = {.type = RT_EPB_TYPE,
			.total_len = total,
			.if_index = i,
			.ts_high = 1,
			.ts_low = 100 + i,
			.cap_len = 4 * i,
			.orig_len = 4 * i};

		memcpy(at, &e, sizeof(e));
		at += total / 4;
		at[-1] = total;
	}
	run = (struct ringtap_run){.size = sizeof(run),
		.records = bytes,
		.bytes = sizeof(bytes),
		.packets = 4,
		.first_ns = (1ull << 32) + 100,
		.last_ns = (1ull << 32) + 103};
	return 0;
}

static uint64_t spoil_length(unsigned record, uint32_t len)
{
	static const unsigned at[] = {0, 32, 68, 108};

	bytes[at[record] / 4 + 1] = len;
	return at[record];
}

static void test_take_ends_after_n_packets(void **state)
{
	static const uint64_t ends[] = {0, 32, 68, 108, 152, 152};

	for (uint64_t n = 0; n < 6; n++) {
		struct ringtap_run rest = run, part;

		assert_int_equal(ringtap_run_take(&rest, n, UINT64_MAX, &part), n < 4 ? n : 4);
		assert_int_equal(part.bytes, ends[n]);
		assert_int_equal(part.packets, n < 4 ? n : 4);
		assert_int_equal(rest.bytes, 152 - ends[n]);
		assert_int_equal(rest.packets, 4 - part.packets);
		assert_ptr_equal(part.records, bytes);
		if (rest.packets)
			assert_ptr_equal(rest.records, (const uint8_t *)bytes + ends[n]);
	}
}

static void test_take_sets_the_times(void **state)
{
	struct ringtap_run rest = run, part;

	ringtap_run_take(&rest, 2, UINT64_MAX, &part);
	assert_int_equal(part.first_ns, (1ull << 32) + 100);
	assert_int_equal(part.last_ns, (1ull << 32) + 101);
	assert_int_equal(rest.first_ns, (1ull << 32) + 102);
	assert_int_equal(rest.last_ns, (1ull << 32) + 103);
}

static void test_take_splits_no_packet(void **state)
{
	static const struct {
		uint64_t max, packets, bytes;
	} cases[] = {{0, 0, 0}, {31, 0, 0}, {32, 1, 32}, {67, 1, 32}, {68, 2, 68}, {151, 3, 108},
		{152, 4, 152}, {UINT64_MAX, 4, 152}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct ringtap_run rest = run, part;

		assert_int_equal(
			ringtap_run_take(&rest, UINT64_MAX, cases[i].max, &part), cases[i].packets);
		assert_int_equal(part.bytes, cases[i].bytes);
	}
}

/* The application can change the memory after the checks. */
static void test_take_stops_where_a_record_has_become_invalid(void **state)
{
	static const uint32_t lies[] = {0, 4, 31, 34, 200, UINT32_MAX};

	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		uint64_t at = spoil_length(1, lies[i]);
		struct ringtap_run rest = run, part;

		assert_int_equal(ringtap_run_take(&rest, 3, UINT64_MAX, &part), 1);
		assert_int_equal(part.bytes, at);
		assert_int_equal(ringtap_run_take(&rest, 1, UINT64_MAX, &part), 0);
		assert_int_equal(rest.packets, 3);
	}
}

/* Records that have become longer: bytes are exhausted before packets. */
static void test_take_ends_with_the_bytes(void **state)
{
	struct ringtap_run rest = run, part;

	spoil_length(1, 36 + 40 + 44);
	assert_int_equal(ringtap_run_take(&rest, 3, UINT64_MAX, &part), 2);
	assert_int_equal(rest.bytes, 0);
	assert_int_equal(rest.packets, 2);
	assert_int_equal(ringtap_run_take(&rest, UINT64_MAX, UINT64_MAX, &part), 0);
	assert_int_equal(part.packets, 0);
	assert_int_equal(part.bytes, 0);
	assert_int_equal(rest.packets, 2);
}

/* A program that was compiled when the structure was shorter. */
static void test_take_writes_only_the_size_of_the_caller(void **state)
{
	struct ringtap_run rest = run, part;

	memset(&part, 0x55, sizeof(part));
	rest.size = offsetof(struct ringtap_run, interface_count);
	assert_int_equal(ringtap_run_take(&rest, 1, UINT64_MAX, &part), 1);
	assert_int_equal(part.interface_count, 0x55555555);
}

static uint32_t ids[RT_MAX_IFS] = {10, 11, 12, 13};

static uint32_t id_at(const uint32_t *copy, unsigned off)
{
	return copy[off / 4 + 2];
}

static void test_pcapng_of_the_only_application_is_in_place(void **state)
{
	assert_ptr_equal(ringtap_run_pcapng(&run, NULL, 0), bytes);
}

static void test_pcapng_renumbers_interfaces(void **state)
{
	uint32_t copy[38];

	run.interfaces = ids;
	run.interface_count = 4;
	assert_null(ringtap_run_pcapng(&run, NULL, 0));
	assert_null(ringtap_run_pcapng(&run, copy, sizeof(copy) - 1));
	assert_ptr_equal(ringtap_run_pcapng(&run, copy, sizeof(copy)), copy);
	assert_int_equal(id_at(copy, 0), 10);
	assert_int_equal(id_at(copy, 32), 11);
	assert_int_equal(id_at(copy, 68), 12);
	assert_int_equal(id_at(copy, 108), 13);
	/* Only the ids. */
	bytes[2] = 10;
	bytes[32 / 4 + 2] = 11;
	bytes[68 / 4 + 2] = 12;
	bytes[108 / 4 + 2] = 13;
	assert_memory_equal(copy, bytes, sizeof(bytes));
}

static void test_pcapng_of_an_unknown_interface_is_none(void **state)
{
	uint32_t copy[38];

	run.interfaces = ids;
	run.interface_count = 3;
	assert_null(ringtap_run_pcapng(&run, copy, sizeof(copy)));
}

/* Blocks that a reader of the file would stumble over, or fewer or more of them than were handed
 * out. */
static void test_pcapng_of_invalid_records_is_none(void **state)
{
	static const uint32_t lies[] = {0, 4, 31, 34, 36 + 40, 36 + 40 + 44, 200, 2000, UINT32_MAX};
	uint32_t copy[39] = {[38] = 0xabcdef};

	run.interfaces = ids;
	run.interface_count = 4;
	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		spoil_length(1, lies[i]);
		assert_null(ringtap_run_pcapng(&run, copy, 152));
		assert_int_equal(copy[38], 0xabcdef);
	}
	spoil_length(1, 36);
	assert_ptr_equal(ringtap_run_pcapng(&run, copy, 152), copy);
	bytes[37]++; /* the trailing length of the last */
	assert_null(ringtap_run_pcapng(&run, copy, 152));
	bytes[37]--;
	bytes[0]++; /* the type of the first */
	assert_null(ringtap_run_pcapng(&run, copy, 152));
	bytes[0]--;
	run.packets = 3;
	assert_null(ringtap_run_pcapng(&run, copy, 152));
}

/* One record over the place of two, with the trailing length of the second: lengths add up. */
static void test_pcapng_of_fewer_records_is_none(void **state)
{
	uint32_t copy[38];

	run.interfaces = ids;
	run.interface_count = 4;
	spoil_length(1, 36 + 40);
	bytes[108 / 4 - 1] = 36 + 40;
	assert_null(ringtap_run_pcapng(&run, copy, sizeof(copy)));
	run.packets = 3;
	assert_ptr_equal(ringtap_run_pcapng(&run, copy, sizeof(copy)), copy);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_take_ends_after_n_packets, set_up),
		cmocka_unit_test_setup(test_take_sets_the_times, set_up),
		cmocka_unit_test_setup(test_take_splits_no_packet, set_up),
		cmocka_unit_test_setup(test_take_stops_where_a_record_has_become_invalid, set_up),
		cmocka_unit_test_setup(test_take_ends_with_the_bytes, set_up),
		cmocka_unit_test_setup(test_take_writes_only_the_size_of_the_caller, set_up),
		cmocka_unit_test_setup(test_pcapng_of_the_only_application_is_in_place, set_up),
		cmocka_unit_test_setup(test_pcapng_renumbers_interfaces, set_up),
		cmocka_unit_test_setup(test_pcapng_of_an_unknown_interface_is_none, set_up),
		cmocka_unit_test_setup(test_pcapng_of_invalid_records_is_none, set_up),
		cmocka_unit_test_setup(test_pcapng_of_fewer_records_is_none, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
