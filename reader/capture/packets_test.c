/* SPDX-License-Identifier: BSD-3-Clause */
/* The packets of a run, valid and forged. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "capture.h"

#define PACKETS 200u /* more than a batch */
#define CAPLEN  61u
#define OPTIONS 72u                         /* all five, and opt_endofopt */
#define LEN     (RT_EPB_MIN + 64 + OPTIONS) /* bytes of a record */

static uint8_t ring[PACKETS * LEN];
static struct ringtap_packets *it;
static struct ringtap_run run;

static uint8_t *put_option(uint8_t *at, uint16_t code, uint16_t len, const void *value)
{
	memcpy(at, &code, 2);
	memcpy(at + 2, &len, 2);
	memcpy(at + 4, value, len);
	return at + 4 + ((len + 3) & ~3);
}

static void put(uint32_t i)
{
	uint8_t *at = ring + (size_t)i * LEN, *end = at + LEN - 4;
	const struct rt_epb e = {.type = RT_EPB_TYPE,
		.total_len = LEN,
		.if_index = i % 3,
		.ts_high = 1,
		.ts_low = i,
		.cap_len = CAPLEN,
		.orig_len = CAPLEN + i};
	const uint32_t flags = 1 + i % 2, queue = i, len = LEN;
	const uint64_t drops = i + (1ull << 40), id = i ? i + (1ull << 50) : 0;
	const uint8_t hash[5] = {5, (uint8_t)i, 2, 3, 4};

	memset(at, 0, LEN);
	memcpy(at, &e, sizeof(e));
	at[RT_EPB_HEADER] = (uint8_t)i;
	at += RT_EPB_HEADER + 64;
	at = put_option(at, 2, 4, &flags);
	at = put_option(at, 6, 4, &queue);
	at = put_option(at, 3, 5, hash);
	at = put_option(at, 5, 8, &id);
	put_option(at, 4, 8, &drops);
	memcpy(end, &len, 4);
}

static int set_up(void **state)
{
	for (uint32_t i = 0; i < PACKETS; i++)
		put(i);
	run = (struct ringtap_run){.size = sizeof(run),
		.packets = PACKETS,
		.bytes = sizeof(ring),
		.records = ring,
		.interface_count = 3};
	return ringtap_packets_create(&it);
}

static int tear_down(void **state)
{
	ringtap_packets_free(it);
	return 0;
}

/* Overwrites a word of a record, at a byte offset. */
static void forge(uint32_t record, uint32_t at, uint32_t value)
{
	memcpy(ring + (size_t)record * LEN + at, &value, sizeof(value));
}

static uint32_t count(void)
{
	uint32_t n = 0;

	while (ringtap_packet_next(it))
		n++;
	return n;
}

static void test_every_packet_once(void **state)
{
	const struct ringtap_packet *p;

	ringtap_packets_start(it, &run);
	for (uint32_t i = 0; i < PACKETS; i++) {
		assert_true(ringtap_packets_more(it));
		p = ringtap_packet_next(it);
		assert_non_null(p);
		assert_ptr_equal(p->data, ring + (size_t)i * LEN + RT_EPB_HEADER);
		assert_int_equal(p->data[0], (uint8_t)i);
		assert_int_equal(p->caplen, CAPLEN);
		assert_int_equal(p->length, CAPLEN + i);
		assert_int_equal(p->ns, (1ull << 32) + i);
		assert_int_equal(p->interface, i % 3);
	}
	assert_false(ringtap_packets_more(it));
	assert_null(ringtap_packet_next(it));
	assert_null(ringtap_packet_next(it));
	assert_int_equal(ringtap_packets_error(it), 0);
}

static void assert_all_fields(const struct ringtap_packet *p, uint32_t i)
{
	assert_int_equal(p->direction, i % 2 ? RINGTAP_TX : RINGTAP_RX);
	assert_int_equal(p->queue, i);
	assert_true(p->has_hash);
	assert_int_equal(p->hash, 0x04030200 | (uint8_t)i);
	assert_int_equal(p->dropcount, i + (1ull << 40));
	assert_int_equal(p->id, i ? i + (1ull << 50) : 0);
}

static void test_all_fields(void **state)
{
	ringtap_packets_start(it, &run);
	ringtap_packets_fields(it, RINGTAP_FIELDS_ALL);
	for (uint32_t i = 0; i < PACKETS; i++)
		assert_all_fields(ringtap_packet_next(it), i);
	assert_null(ringtap_packet_next(it));
}

static void test_fields_without_options_are_unknown(void **state)
{
	const struct ringtap_packet *p;

	for (uint32_t at = 0; at < OPTIONS; at += 4)
		forge(0, RT_EPB_HEADER + 64 + at, 0);
	ringtap_packets_start(it, &run);
	ringtap_packets_fields(it, RINGTAP_FIELDS_ALL);
	p = ringtap_packet_next(it);
	assert_int_equal(p->direction, 0);
	assert_int_equal(p->queue, RINGTAP_NO_INDEX);
	assert_false(p->has_hash);
	assert_int_equal(p->dropcount, 0);
	assert_all_fields(ringtap_packet_next(it), 1);
}

/* Packets read ahead without the fields are read again. */
static void test_fields_apply_from_the_next_packet_on(void **state)
{
	for (uint32_t before = 0; before < 130; before++) {
		ringtap_packets_fields(it, RINGTAP_FIELDS_BASIC);
		ringtap_packets_start(it, &run);
		for (uint32_t i = 0; i < before; i++)
			assert_non_null(ringtap_packet_next(it));
		ringtap_packets_fields(it, RINGTAP_FIELDS_ALL);
		assert_all_fields(ringtap_packet_next(it), before);
		assert_int_equal(count(), PACKETS - before - 1);
	}
}

static void test_interfaces_are_file_wide(void **state)
{
	static const uint32_t ids[] = {7, 5, 9};

	run.interfaces = ids;
	ringtap_packets_start(it, &run);
	for (uint32_t i = 0; i < PACKETS; i++)
		assert_int_equal(ringtap_packet_next(it)->interface, ids[i % 3]);
}

/* Valid packets are returned first, also if they are in the same batch. */
static void test_forged_record_ends_the_run(void **state)
{
	static const struct {
		uint32_t at, value;
	} lies[] = {{0, 5}, {4, 0}, {4, 28}, {4, 31}, {4, 34}, {4, UINT32_MAX},
		{4, PACKETS * LEN + 4}, {8, 3}, {8, UINT32_MAX}, {20, LEN - RT_EPB_MIN + 1},
		{20, UINT32_MAX}, {24, 60}};

	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		for (uint32_t record = 0; record < PACKETS; record += 37) {
			forge(record, lies[i].at, lies[i].value);
			ringtap_packets_start(it, &run);
			assert_int_equal(count(), record);
			assert_int_equal(ringtap_packets_error(it), -EBADMSG);
			assert_false(ringtap_packets_more(it));
			put(record);
		}
	}
	ringtap_packets_start(it, &run);
	assert_int_equal(count(), PACKETS);
	assert_int_equal(ringtap_packets_error(it), 0);
}

/* An application that splits or merges records must not change the number of packets. */
static void test_no_more_packets_than_announced(void **state)
{
	for (uint64_t n = 1; n < PACKETS; n += 9) {
		run.packets = n;
		ringtap_packets_start(it, &run);
		assert_int_equal(count(), n);
		assert_int_equal(ringtap_packets_error(it), -EBADMSG);
		assert_false(ringtap_packets_more(it));
	}
}

static void test_fewer_packets_than_announced_is_an_error(void **state)
{
	static const uint32_t records[] = {1, 63, 64, 65, 128, PACKETS};

	for (size_t i = 0; i < sizeof(records) / sizeof(records[0]); i++) {
		run.packets = records[i] + 1;
		run.bytes = (uint64_t)records[i] * LEN;
		ringtap_packets_start(it, &run);
		assert_int_equal(count(), records[i]);
		assert_int_equal(ringtap_packets_error(it), -EBADMSG);
	}
}

static void test_packets_that_are_read_again_count_once(void **state)
{
	for (uint32_t before = 0; before < 130; before++) {
		ringtap_packets_fields(it, RINGTAP_FIELDS_BASIC);
		ringtap_packets_start(it, &run);
		for (uint32_t i = 0; i < before; i++)
			assert_non_null(ringtap_packet_next(it));
		ringtap_packets_fields(it, RINGTAP_FIELDS_ALL);
		assert_int_equal(count(), PACKETS - before);
		assert_int_equal(ringtap_packets_error(it), 0);
	}
}

/* Also after packets were read again, which starts inside a batch. */
static void test_forged_record_ends_the_run_with_other_fields(void **state)
{
	forge(40, 4, 0);
	ringtap_packets_start(it, &run);
	assert_non_null(ringtap_packet_next(it));
	ringtap_packets_fields(it, RINGTAP_FIELDS_ALL);
	assert_int_equal(count(), 39);
	assert_int_equal(ringtap_packets_error(it), -EBADMSG);
}

static void test_forged_options_stay_in_their_record(void **state)
{
	static const uint32_t heads[] = {0xffff0002, 0xfffc0006, 0x00400003, 0x00010002, 0x00000002,
		0x00090004, 0x12345678, UINT32_MAX, 0xfffd1234};

	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
		forge(0, RT_EPB_HEADER + 64, heads[i]);
		ringtap_packets_start(it, &run);
		ringtap_packets_fields(it, RINGTAP_FIELDS_ALL);
		assert_int_equal(ringtap_packet_next(it)->direction, 0);
		assert_int_equal(count(), PACKETS - 1);
		put(0);
	}
}

/* A returned packet stays consistent. */
static void test_packet_keeps_its_lengths_while_the_ring_changes(void **state)
{
	const struct ringtap_packet *p;

	ringtap_packets_start(it, &run);
	p = ringtap_packet_next(it);
	memset(ring, 0xff, sizeof(ring));
	assert_int_equal(p->caplen, CAPLEN);
	assert_int_equal(p->length, CAPLEN);
	assert_int_equal(p->interface, 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_every_packet_once),
		TEST(test_all_fields),
		TEST(test_fields_without_options_are_unknown),
		TEST(test_fields_apply_from_the_next_packet_on),
		TEST(test_interfaces_are_file_wide),
		TEST(test_forged_record_ends_the_run),
		TEST(test_no_more_packets_than_announced),
		TEST(test_fewer_packets_than_announced_is_an_error),
		TEST(test_packets_that_are_read_again_count_once),
		TEST(test_forged_record_ends_the_run_with_other_fields),
		TEST(test_forged_options_stay_in_their_record),
		TEST(test_packet_keeps_its_lengths_while_the_ring_changes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
