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
	run = (struct ringtap_run){.data = (const uint8_t *)bytes,
		.len = sizeof(bytes),
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

static void test_prefix_ends_after_n_packets(void **state)
{
	static const uint64_t ends[] = {0, 32, 68, 108, 152, 152};

	for (uint64_t n = 0; n < 6; n++)
		assert_int_equal(ringtap_run_prefix(&run, n, NULL), ends[n]);
	assert_int_equal(ringtap_run_prefix(&run, UINT64_MAX, NULL), 152);
}

static void test_prefix_tells_the_time_of_its_last_packet(void **state)
{
	uint64_t last = 0;

	ringtap_run_prefix(&run, 2, &last);
	assert_int_equal(last, (1ull << 32) + 101);
	ringtap_run_prefix(&run, 4, &last);
	assert_int_equal(last, (1ull << 32) + 103);
}

static void test_fit_takes_whole_packets_only(void **state)
{
	static const struct {
		uint64_t max, packets, bytes;
	} cases[] = {{0, 0, 0}, {31, 0, 0}, {32, 1, 32}, {67, 1, 32}, {68, 2, 68}, {151, 3, 108},
		{152, 4, 152}, {UINT64_MAX, 4, 152}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t got = 99;

		assert_int_equal(ringtap_run_fit(&run, cases[i].max, &got), cases[i].packets);
		assert_int_equal(got, cases[i].bytes);
	}
}

/* The memory is the application's: what was checked when it was handed out may have changed. */
static void test_prefix_stops_where_a_record_has_become_nonsense(void **state)
{
	static const uint32_t lies[] = {0, 4, 31, 34, 200, UINT32_MAX};

	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		uint64_t at = spoil_length(1, lies[i]);

		assert_int_equal(ringtap_run_prefix(&run, 3, NULL), at);
	}
}

static void test_fit_stops_where_a_record_has_become_nonsense(void **state)
{
	static const uint32_t lies[] = {0, 4, 31, 34, 200, UINT32_MAX};

	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		uint64_t at = spoil_length(2, lies[i]), got;

		assert_int_equal(ringtap_run_fit(&run, 151, &got), 2);
		assert_int_equal(got, at);
	}
}

static uint32_t ids[RT_MAX_IFS] = {10, 11, 12};
static struct rt_source source = {.if_ids = ids, .if_known = 3};
static struct ringtap_capture cap = {.sources = &source, .source_count = 1};

static uint32_t id_at(const uint32_t *copy, unsigned off)
{
	return copy[off / 4 + 2];
}

static void test_copy_of_the_only_application_is_exact(void **state)
{
	uint32_t copy[38];

	ringtap_run_copy(&cap, &run, 0, run.len, (uint8_t *)copy);
	assert_memory_equal(copy, bytes, sizeof(bytes));
}

static void test_copy_renumbers_interfaces(void **state)
{
	uint32_t copy[38];

	run.renumber = true;
	ringtap_run_copy(&cap, &run, 0, run.len, (uint8_t *)copy);
	assert_int_equal(id_at(copy, 0), 10);
	assert_int_equal(id_at(copy, 32), 11);
	assert_int_equal(id_at(copy, 68), 12);
	/* Only the ids. */
	bytes[2] = 10;
	bytes[32 / 4 + 2] = 11;
	bytes[68 / 4 + 2] = 12;
	bytes[108 / 4 + 2] = id_at(copy, 108);
	assert_memory_equal(copy, bytes, sizeof(bytes));
}

static void test_copy_never_numbers_beyond_what_is_known(void **state)
{
	uint32_t copy[38];

	run.renumber = true;
	ringtap_run_copy(&cap, &run, 0, run.len, (uint8_t *)copy);
	assert_int_equal(id_at(copy, 108), 0);
}

static void test_copy_takes_a_part(void **state)
{
	uint32_t copy[9];

	run.renumber = true;
	ringtap_run_copy(&cap, &run, 32, 36, (uint8_t *)copy);
	assert_int_equal(id_at(copy, 0), 11);
	assert_int_equal(copy[8], 36);
}

static void test_copy_of_nonsense_stays_within_its_bounds(void **state)
{
	uint32_t copy[39] = {[38] = 0xabcdef};

	run.renumber = true;
	spoil_length(1, 2000);
	ringtap_run_copy(&cap, &run, 0, run.len, (uint8_t *)copy);
	assert_int_equal(copy[38], 0xabcdef);
	assert_int_equal(id_at(copy, 0), 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_prefix_ends_after_n_packets, set_up),
		cmocka_unit_test_setup(test_prefix_tells_the_time_of_its_last_packet, set_up),
		cmocka_unit_test_setup(test_fit_takes_whole_packets_only, set_up),
		cmocka_unit_test_setup(
			test_prefix_stops_where_a_record_has_become_nonsense, set_up),
		cmocka_unit_test_setup(test_fit_stops_where_a_record_has_become_nonsense, set_up),
		cmocka_unit_test_setup(test_copy_of_the_only_application_is_exact, set_up),
		cmocka_unit_test_setup(test_copy_renumbers_interfaces, set_up),
		cmocka_unit_test_setup(test_copy_never_numbers_beyond_what_is_known, set_up),
		cmocka_unit_test_setup(test_copy_takes_a_part, set_up),
		cmocka_unit_test_setup(test_copy_of_nonsense_stays_within_its_bounds, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
