/* SPDX-License-Identifier: BSD-3-Clause */
/* Files of packets, of both byte orders, with what foreign writers may put there, and damaged. */
#include <errno.h>
#include <endian.h>
#include <string.h>

#include "base/test_util.h"
#include "records.h"

enum { SECTION = 0x0a0d0d0a, INTERFACE = 1, PACKET = 6, STATISTICS = 5 };

/* A file of one byte order. */
struct file {
	uint8_t at[8192];
	size_t len, block; /* the last block begins at block */
	bool swap;
};

static void put16(struct file *f, uint16_t v)
{
	v = f->swap ? htobe16(v) : v;
	memcpy(f->at + f->len, &v, sizeof(v));
	f->len += sizeof(v);
}

static void put32(struct file *f, uint32_t v)
{
	v = f->swap ? htobe32(v) : v;
	memcpy(f->at + f->len, &v, sizeof(v));
	f->len += sizeof(v);
}

static void put64(struct file *f, uint64_t v)
{
	v = f->swap ? htobe64(v) : v;
	memcpy(f->at + f->len, &v, sizeof(v));
	f->len += sizeof(v);
}

static void begin_block(struct file *f, uint32_t type)
{
	f->block = f->len;
	put32(f, type);
	put32(f, 0);
}

static void end_block(struct file *f)
{
	uint32_t len = (uint32_t)(f->len + 4 - f->block);
	size_t end = f->len + 4;

	put32(f, len);
	f->len = f->block + 4;
	put32(f, len);
	f->len = end;
}

static void option(struct file *f, uint16_t code, const void *value, size_t len)
{
	put16(f, code);
	put16(f, (uint16_t)len);
	memset(f->at + f->len, 0, (len + 3) & ~3u);
	memcpy(f->at + f->len, value, len);
	f->len += (len + 3) & ~3u;
}

static void option64(struct file *f, uint16_t code, uint64_t v)
{
	put16(f, code);
	put16(f, 8);
	put64(f, v);
}

static void section(struct file *f)
{
	begin_block(f, SECTION);
	put32(f, 0x1a2b3c4d);
	put16(f, 1);
	put16(f, 0);
	put64(f, UINT64_MAX);
	end_block(f);
}

static const char *comment; /* comment of the next interfaces */

/* resolution: if_tsresol; 0: none. NULL: no such option. */
static void interface(struct file *f, const char *name, const char *description, const char *filter,
	uint8_t resolution)
{
	begin_block(f, INTERFACE);
	put16(f, 1);
	put16(f, 0);
	put32(f, 0);
	if (comment)
		option(f, 1, comment, strlen(comment));
	if (name)
		option(f, 2, name, strlen(name));
	if (description)
		option(f, 3, description, strlen(description));
	if (resolution)
		option(f, 9, &resolution, 1);
	if (filter)
		option(f, 11, filter, strlen(filter) + 1);
	end_block(f);
}

static void packet(struct file *f, uint32_t port, uint64_t ticks, uint32_t flags, uint64_t id)
{
	begin_block(f, PACKET);
	put32(f, port);
	put32(f, (uint32_t)(ticks >> 32));
	put32(f, (uint32_t)ticks);
	put32(f, 5);
	put32(f, 60);
	memcpy(f->at + f->len, "abcde\0\0", 8);
	f->len += 8;
	put16(f, 2);
	put16(f, 4);
	put32(f, flags);
	put16(f, 6);
	put16(f, 4);
	put32(f, 3);
	option64(f, 5, id);
	option64(f, 4, 2);
	put32(f, 0);
	end_block(f);
}

static void statistics(struct file *f, uint64_t start, uint64_t missed, uint64_t lost)
{
	begin_block(f, STATISTICS);
	put32(f, 0);
	put64(f, 0);
	option64(f, 2, start);
	option64(f, 5, missed);
	option64(f, 7, lost);
	end_block(f);
}

static struct records *records;
static struct file file;

static int set_up(void **state)
{
	memset(&file, 0, sizeof(file));
	return records_new(&records);
}

static int tear_down(void **state)
{
	records_free(records);
	return 0;
}

/* Reads a file to its end, at most 16 records. Returns their number. *end: 0 or the error. */
static unsigned take(const void *data, size_t len, struct record out[16], int *end)
{
	struct window bytes;
	unsigned n = 0;
	int ret = 0;

	window_memory(&bytes, data, len);
	records_start(records, &bytes);
	while (n < 16 && (ret = records_next(records, &out[n], 1)) > 0)
		n++;
	*end = ret;
	return n;
}

static unsigned take_file(struct record out[16])
{
	int end;
	unsigned n = take(file.at, file.len, out, &end);

	assert_int_equal(end, 0);
	return n;
}

static void all_fields_in_both_byte_orders(void **state)
{
	struct record r[16];

	for (int swap = 0; swap < 2; swap++) {
		memset(&file, 0, sizeof(file));
		file.swap = swap;
		section(&file);
		interface(&file, "p0", NULL, NULL, 9);
		begin_block(&file, 0x80000123); /* a block of another program */
		put32(&file, 77);
		end_block(&file);
		packet(&file, 0, UINT64_C(1700000000123456789), 1, UINT64_C(0x1122334455667788));
		packet(&file, 0, 5, 2, 7);
		packet(&file, 0, 6, 3, 7);
		assert_int_equal(take_file(r), 3);
		assert_int_equal(records_swapped(records), swap);
		assert_int_equal(r[0].number, 1 + 3 * swap);
		assert_int_equal(r[0].ns, UINT64_C(1700000000123456789));
		assert_int_equal(r[0].id, UINT64_C(0x1122334455667788));
		assert_int_equal(r[0].queue, 3);
		assert_int_equal(r[0].caplen, 5);
		assert_int_equal(r[0].length, 60);
		assert_int_equal(r[0].direction, DIRECTION_RX);
		assert_int_equal(r[1].direction, DIRECTION_TX);
		assert_int_equal(r[2].direction, DIRECTION_NONE);
	}
	assert_int_equal(records_port_count(records), 1);
	assert_int_equal(records_port(records, 0)->gaps, 2 * 3 * 2);
}

static void units_of_time(void **state)
{
	static const struct {
		uint8_t resolution;
		uint64_t ticks, ns;
	} cases[] = {{0, 5, 5000}, {9, 5, 5}, {3, 5, 5000000}, {128 | 30, 1u << 30, 1000000000},
		{128 | 30, 3u << 29, 1500000000}, {128 | 10, 512, 500000000}};
	struct record r[16];

	section(&file);
	for (uint32_t i = 0; i < 6; i++)
		interface(&file, NULL, NULL, NULL, cases[i].resolution);
	for (uint32_t i = 0; i < 6; i++)
		packet(&file, i, cases[i].ticks, 1, 0);
	assert_int_equal(take_file(r), 6);
	for (uint32_t i = 0; i < 6; i++)
		assert_int_equal(r[i].ns, cases[i].ns);
	assert_string_equal(records_port(records, 5)->name, "interface 5");
}

#define OF(app) "port 0 of DPDK application " app ", 0000:01:00.0"

static void applications_have_ids_and_names(void **state)
{
	struct record r[16];

	section(&file);
	interface(&file, "p0", OF("left"), NULL, 9);
	interface(&file, "p0", OF("right"), NULL, 9);
	interface(&file, "right:p1", OF("right"), NULL, 9); /* as in a recording of both */
	interface(&file, "own", "described by the user", NULL, 9);
	packet(&file, 0, 1, 1, 1);
	packet(&file, 1, 2, 1, 1);
	assert_int_equal(take_file(r), 2);
	assert_int_equal(records_port_count(records), 4);
	assert_string_equal(records_port(records, 0)->shown, "left:p0");
	assert_string_equal(records_port(records, 1)->shown, "right:p0");
	assert_string_equal(records_port(records, 2)->shown, "right:p1");
	assert_string_equal(records_port(records, 3)->shown, "own");
	assert_int_equal(records_port(records, 0)->application_id, 0);
	assert_int_equal(records_port(records, 1)->application_id, 1);
	assert_int_equal(records_port(records, 2)->application_id, 1);
	assert_int_equal(records_port(records, 3)->application_id, 0);
	/* The next file has the same ones, in another order. */
	memset(&file, 0, sizeof(file));
	section(&file);
	interface(&file, "p0", OF("right"), NULL, 9);
	packet(&file, 0, 3, 1, 1);
	assert_int_equal(take_file(r), 1);
	assert_int_equal(records_port_count(records), 4);
	assert_int_equal(r[0].port, 1);
	assert_int_equal(r[0].number, 3);
}

static void one_application_needs_no_name(void **state)
{
	struct record r[16];

	section(&file);
	interface(&file, "p0", OF("left"), NULL, 9);
	interface(&file, "e\033[31m\351", OF("left"), "\0udp", 9);
	packet(&file, 0, 1, 1, 1);
	assert_int_equal(take_file(r), 1);
	assert_string_equal(records_port(records, 0)->shown, "p0");
	assert_string_equal(records_port(records, 1)->shown, "e?[31m?");
	assert_false(records_port(records, 0)->filtered);
	assert_false(records_port(records, 1)->filtered); /* an empty expression */
	memset(&file, 0, sizeof(file));
	section(&file);
	interface(&file, "p0", OF("left"), "udp", 9);
	packet(&file, 0, 1, 1, 1);
	assert_int_equal(take_file(r), 1);
	assert_true(records_port(records, 0)->filtered);
}

static void parts_are_named(void **state)
{
	static const struct {
		const char *comment;
		uint32_t sample;
		bool first;
	} cases[] = {{NULL, 0, false}, {"clock: timestamp=tsc", 0, false},
		{"sampling: every=", 0, false}, {"sampling: every=1024", 1024, false},
		{"sampling: every=8 later=1", 8, false},
		{"first: bytes=32768 flows=16384 inner", 0, true}, {"firsts: 1", 0, false}};
	struct record r[16];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char name[] = {'p', (char)('0' + i), 0};

		memset(&file, 0, sizeof(file));
		section(&file);
		comment = cases[i].comment;
		interface(&file, name, OF("left"), NULL, 9);
		packet(&file, 0, 1, 1, 1);
		assert_int_equal(take_file(r), 1);
		assert_int_equal(records_port(records, (uint32_t)i)->sample, cases[i].sample);
		assert_int_equal(records_port(records, (uint32_t)i)->first, cases[i].first);
	}
	comment = NULL;
}

/* Counts go on from file to file; another capture begins with none. */
static void losses_of_captures(void **state)
{
	static const struct {
		uint64_t start, missed, lost, before;
	} files[] = {{0, 2, 12, 0}, {0, 9, 15, 0}, {0, 9, 15, 0}, {1, 1, 4, 15}, {2, 0, 0, 19}};
	struct record r[16];

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		const struct port *p;

		memset(&file, 0, sizeof(file));
		section(&file);
		interface(&file, "p0", NULL, NULL, 9);
		statistics(&file, files[i].start, files[i].missed, files[i].lost);
		assert_int_equal(take_file(r), 0);
		p = records_port(records, 0);
		assert_int_equal(p->missed, files[i].missed);
		assert_int_equal(p->lost, files[i].lost);
		assert_int_equal(p->lost_before, files[i].before);
	}
}

/* Statistics without isb_endtime come while the recording goes on. */
static void the_end_of_the_recording_is_a_record(void **state)
{
	const uint32_t end[2] = {1, 500}; /* high, low: as the file has times */
	struct record r[16];

	section(&file);
	interface(&file, "p0", NULL, NULL, 9);
	statistics(&file, 0, 0, 0);
	begin_block(&file, STATISTICS);
	put32(&file, 0);
	put64(&file, 0);
	option(&file, 3, end, sizeof(end));
	end_block(&file);
	assert_int_equal(take_file(r), 1);
	assert_int_equal(r[0].kind, RECORD_END);
	assert_int_equal(r[0].ns, (UINT64_C(1) << 32) + 500);
	assert_int_equal(r[0].number, 0);
}

/* ---- damage ---- */

static void put_three(void)
{
	section(&file);
	interface(&file, "p0", NULL, NULL, 9);
	for (uint64_t id = 1; id <= 3; id++)
		packet(&file, 0, id, 1, id);
}

/* The packets before the damage come, and the error names it. */
static void assert_damaged(size_t len, unsigned packets, const char *what)
{
	struct record r[16];
	int end;

	assert_int_equal(take(file.at, len, r, &end), packets);
	assert_int_equal(end, -EBADMSG);
	if (!strstr(records_error(records), what))
		fail_msg("'%s' instead of '%s'", records_error(records), what);
	/* Nothing more comes. */
	assert_true(records_next(records, r, 1) < 0);
	records_free(records);
	set_up(NULL);
}

static void files_that_end_too_early(void **state)
{
	size_t last;

	put_three();
	last = file.block;
	for (size_t len = last + 1; len < file.len; len++) {
		struct file copy = file;

		assert_damaged(len, 2, "the file ends in the middle of a block");
		file = copy;
	}
}

static void set(size_t at, uint32_t v)
{
	memcpy(file.at + file.block + at, &v, sizeof(v));
}

static void blocks_that_cannot_be(void **state)
{
	static const struct {
		size_t at;
		uint32_t value;
		const char *what;
	} cases[] = {{4, 0xffffffff, "a block of"}, {4, 8, "a block of 8 bytes"},
		{4, 0, "a block of 0 bytes"}, {4, 31, "a block of 31 bytes"},
		{8, 7, "a packet of interface 7, which is not there"},
		{20, 0xffff, "more than its block has"},
		{20, UINT32_MAX, "more than its block has"}, {4, 24, "two different lengths"},
		{0, SECTION, "no byte order"}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		memset(&file, 0, sizeof(file));
		put_three();
		set(cases[i].at, cases[i].value);
		assert_damaged(file.len, 2, cases[i].what);
	}
}

static void statistics_of_nothing(void **state)
{
	put_three();
	begin_block(&file, STATISTICS);
	put32(&file, 1);
	put64(&file, 0);
	end_block(&file);
	assert_damaged(file.len, 3, "statistics of interface 1, which is not there");
}

static void short_blocks(void **state)
{
	put_three();
	begin_block(&file, INTERFACE);
	put32(&file, 1);
	end_block(&file);
	assert_damaged(file.len, 3, "an interface block of");
	memset(&file, 0, sizeof(file));
	put_three();
	begin_block(&file, PACKET);
	put32(&file, 0);
	end_block(&file);
	assert_damaged(file.len, 3, "a packet block of");
}

/* Either byte order, with microseconds or nanoseconds. */
static void pcap_files_lack_what_is_explained(void **state)
{
	static const uint32_t magics[] = {0xa1b2c3d4, 0xd4c3b2a1, 0xa1b23c4d, 0x4d3cb2a1};

	for (unsigned i = 0; i < 4; i++) {
		char header[24] = "";
		struct record r[16];
		int end;

		memcpy(header, &magics[i], sizeof(magics[i]));
		assert_int_equal(take(header, sizeof(header), r, &end), 0);
		assert_int_equal(end, -EBADMSG);
		assert_string_equal(records_error(records),
			"byte 0: this is a classic pcap file: 'editcap -F pcapng IN OUT' converts "
			"it, but ids and fates are only in what was recorded as pcapng");
	}
}

static void other_files(void **state)
{
	static const char other[] = "PK\3\4 this is something else, a file of another program";
	struct record r[16];
	int end;

	assert_int_equal(take(other, sizeof(other), r, &end), 0);
	assert_int_equal(end, -EBADMSG);
	assert_non_null(strstr(records_error(records), "not a pcapng file"));
}

#define with_records(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_records(all_fields_in_both_byte_orders),
		with_records(units_of_time),
		with_records(applications_have_ids_and_names),
		with_records(one_application_needs_no_name),
		with_records(parts_are_named),
		with_records(losses_of_captures),
		with_records(the_end_of_the_recording_is_a_record),
		with_records(files_that_end_too_early),
		with_records(blocks_that_cannot_be),
		with_records(statistics_of_nothing),
		with_records(short_blocks),
		with_records(pcap_files_lack_what_is_explained),
		with_records(other_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
