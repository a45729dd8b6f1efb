/* SPDX-License-Identifier: BSD-3-Clause */
/* The fates of recordings that have them. */
#include "common/pcapng.h"
#include "facts.h"
#include "sheets.h"
#include "test_join.h"

static void put_mark_of(struct test *t, enum record_kind kind, uint64_t ns)
{
	const struct record r = {.kind = kind, .ns = ns};

	join_records(t->j, &r, 1, t->records);
}

static void put_mark(struct test *t, enum record_kind kind)
{
	put_mark_of(t, kind, 0);
}

static void put_fate(struct test *t, uint64_t ns, uint64_t id, enum rt_fates_fate fate)
{
	const struct record r = {.kind = RECORD_FATE, .fate = (uint8_t)fate, .ns = ns, .id = id};

	join_records(t->j, &r, 1, t->records);
}

static void put_unknown(struct test *t, uint64_t ns, uint64_t id, enum rt_fates_why why)
{
	const struct record r = {.kind = RECORD_FATE,
		.fate = RT_FATES_UNKNOWN,
		.why = (uint8_t)why,
		.ns = ns,
		.id = id};

	join_records(t->j, &r, 1, t->records);
}

static void expect_told(const struct test *t, unsigned i, enum fate fate, uint64_t id)
{
	assert_true(i < t->told.count);
	assert_int_equal(t->told.fate[i], fate);
	assert_int_equal(t->told.id[i], id);
}

static uint64_t known(const struct test *t, enum known k)
{
	return t->j->fates.total.count[k];
}

static void check_known_sum(const struct test *t)
{
	uint64_t sum = 0;

	for (int k = 0; k < KNOWN; k++)
		sum += known(t, (enum known)k);
	assert_int_equal(sum, t->j->fates.total.received);
}

static void fates_are_awaited_beyond_the_timeout(void **state)
{
	struct test t;

	begin(&t, MEMORY);
	put_mark(&t, RECORD_FATES_BEGIN);
	for (uint64_t id = 1; id <= 6; id++)
		RX(&t, 1000 + id, id);
	TX(&t, 1010, 1);
	put_fate(&t, 1100, 2, RT_FATES_NOT_OFFERED);
	RX(&t, 9000, 7); /* all are over */
	put_fate(&t, 9100, 3, RT_FATES_NOT_OFFERED);
	put_fate(&t, 9100, 4, RT_FATES_INFERRED);
	TX(&t, 9200, 5);                             /* late */
	put_fate(&t, 9300, 1, RT_FATES_NOT_OFFERED); /* nothing is known of it any more */
	put_fate(&t, 9300, 2, RT_FATES_OPEN);
	put_fate(&t, 9300, 3, RT_FATES_OPEN); /* a second one */
	put_fate(&t, 9300, 7, RT_FATES_OPEN);
	put_mark(&t, RECORD_FATES_END);
	join_end(t.j);
	expect_told(&t, 0, FATE_SENT, 1);
	expect_told(&t, 1, FATE_NOT_OFFERED, 2);
	expect_told(&t, 2, FATE_NOT_OFFERED, 3);
	expect_told(&t, 3, FATE_LIKELY_OFFERED, 4);
	expect_told(&t, 4, FATE_UNKNOWN, 5);
	expect_told(&t, 5, FATE_OPEN, 7);
	expect_told(&t, 6, FATE_OFFERED, 5);
	expect_told(&t, 7, FATE_OFFERED, 6);
	assert_int_equal(t.told.count, 8);
	assert_int_equal(known(&t, KNOWN_OFFERED), 3);
	assert_int_equal(known(&t, KNOWN_NOT_OFFERED), 2);
	assert_int_equal(known(&t, KNOWN_UNKNOWN), 1);
	assert_int_equal(known(&t, KNOWN_OPEN), 1);
	assert_int_equal(t.j->fates.total.likely, 1);
	assert_int_equal(t.j->fates.elsewhere, 3);
	assert_int_equal(t.j->fates.noticed.max, 9100 - 1003);
	check_known_sum(&t);
	/* By records, nothing differs. */
	assert_int_equal(t.j->not_sent, 5);
	assert_int_equal(t.j->received, t.j->sent + t.j->not_sent + t.j->open + t.j->let_go);
	assert_int_equal(t.j->unknown, 1);
	end(&t);
}

/* Traffic ends before the recording does. */
static void nothing_is_pending_after_the_end_of_the_recording(void **state)
{
	for (unsigned ends = 0; ends < 2; ends++) {
		struct test t;

		begin(&t, MEMORY);
		RX(&t, 1000, 1);
		RX(&t, 1001, 2);
		TX(&t, 1002, 2);
		put_mark_of(&t, RECORD_END, 1000 + TIMEOUT - !ends);
		join_end(t.j);
		assert_int_equal(t.j->not_sent, ends);
		assert_int_equal(t.j->open, !ends);
		assert_int_equal(t.j->last_ns, 1002);
		expect_told(&t, 1, ends ? FATE_NOT_SENT : FATE_OPEN, 1);
		end(&t);
	}
}

/* The end is later than a last packet that no other record confirms, but not by the timeout. */
static void a_packet_after_a_pause_is_pending_at_the_end(void **state)
{
	const uint64_t late = UINT64_C(60000000000);
	struct test t;

	begin(&t, MEMORY);
	RX(&t, 1000, 1);
	RX(&t, late, 2);
	put_mark_of(&t, RECORD_END, late + TIMEOUT - 1);
	join_end(t.j);
	assert_int_equal(t.j->not_sent, 1);
	assert_int_equal(t.j->open, 1);
	assert_int_equal(t.j->outliers, 0);
	end(&t);
}

static void packets_with_a_fate_are_not_pending(void **state)
{
	struct test t;

	begin(&t, MEMORY);
	put_mark(&t, RECORD_FATES_BEGIN);
	for (uint64_t id = 1; id <= 4; id++)
		RX(&t, 1000 + id, id);
	put_fate(&t, 1100, 1, RT_FATES_NOT_OFFERED);
	put_fate(&t, 1100, 2, RT_FATES_UNKNOWN);
	put_fate(&t, 1100, 3, RT_FATES_OPEN);
	put_mark(&t, RECORD_FATES_END);
	join_end(t.j);
	assert_int_equal(t.j->not_sent, 2);
	assert_int_equal(t.j->open, 2);
	end(&t);
}

static void unknown_fates_have_reasons(void **state)
{
	struct test t;

	begin(&t, MEMORY);
	put_mark(&t, RECORD_FATES_BEGIN);
	for (uint64_t id = 1; id <= 4; id++)
		RX(&t, 1000 + id, id);
	put_unknown(&t, 1100, 1, RT_FATES_WHY_OTHER);
	put_unknown(&t, 1100, 2, RT_FATES_WHY_UNSEEN);
	put_unknown(&t, 1100, 3, RT_FATES_WHY_STOPPED);
	put_unknown(&t, 1100, 4, (enum rt_fates_why)77); /* a reason of a later version */
	put_mark(&t, RECORD_FATES_END);
	join_end(t.j);
	assert_int_equal(known(&t, KNOWN_UNKNOWN), 4);
	assert_int_equal(t.j->fates.total.unseen, 1);
	assert_int_equal(t.j->fates.total.stopped, 1);
	check_known_sum(&t);
	end(&t);
}

/* A recorder that was killed, or a file of which the next one is missing. */
static void without_an_end_packets_are_open(void **state)
{
	struct test t;

	begin(&t, MEMORY);
	put_mark(&t, RECORD_FATES_BEGIN);
	RX(&t, 1000, 1);
	RX(&t, 5000, 2);
	RX(&t, 5001, 3);
	TX(&t, 5002, 3);
	join_end(t.j);
	assert_int_equal(known(&t, KNOWN_OPEN), 2);
	assert_int_equal(known(&t, KNOWN_OFFERED), 1);
	check_known_sum(&t);
	assert_int_equal(t.told.count, 3);
	end(&t);
}

/* The ids of the second are others', and what is left of the first has its fate. */
static void two_recordings_with_fates(void **state)
{
	struct test t;

	begin(&t, MEMORY);
	RX(&t, 1000, 1); /* a file without fates */
	put_mark(&t, RECORD_FATES_BEGIN);
	RX(&t, 1001, 2);
	put_mark(&t, RECORD_FATES_BEGIN); /* the next file of a ring buffer */
	RX(&t, 1002, 3);
	put_fate(&t, 1003, 2, RT_FATES_NOT_OFFERED);
	put_mark(&t, RECORD_FATES_END);
	put_mark(&t, RECORD_FATES_BEGIN);
	RX(&t, 1004, 3);
	put_fate(&t, 1005, 3, RT_FATES_UNKNOWN);
	put_mark(&t, RECORD_FATES_END);
	join_end(t.j);
	assert_int_equal(t.j->fates.total.received, 3);
	assert_int_equal(known(&t, KNOWN_OFFERED), 1);
	assert_int_equal(known(&t, KNOWN_NOT_OFFERED), 1);
	assert_int_equal(known(&t, KNOWN_UNKNOWN), 1);
	check_known_sum(&t);
	end(&t);
}

/* The end is that of the second one only. */
static void a_killed_recording_before_another(void **state)
{
	struct test t;

	begin(&t, MEMORY);
	put_mark_of(&t, RECORD_FATES_BEGIN, 900);
	RX(&t, 1000, 1);
	RX(&t, 1001, 2);
	put_mark_of(&t, RECORD_FATES_BEGIN, 900); /* its next file */
	put_fate(&t, 1002, 2, RT_FATES_NOT_OFFERED);
	put_mark_of(&t, RECORD_FATES_BEGIN, 1500);
	RX(&t, 1600, 3);
	put_mark(&t, RECORD_FATES_END);
	join_end(t.j);
	expect_told(&t, 0, FATE_NOT_OFFERED, 2);
	expect_told(&t, 1, FATE_OPEN, 1);
	expect_told(&t, 2, FATE_OFFERED, 3);
	assert_int_equal(known(&t, KNOWN_OPEN), 1);
	assert_int_equal(known(&t, KNOWN_OFFERED), 1);
	check_known_sum(&t);
	end(&t);
}

static void a_file_without_fates_behind_one_that_has_them(void **state)
{
	struct test t;

	begin(&t, MEMORY);
	put_mark(&t, RECORD_FATES_BEGIN);
	RX(&t, 1000, 1);
	put_mark(&t, RECORD_FATES_END);
	t.j->fates.here = false; /* as explain does for each file */
	RX(&t, 1001, 2);
	RX(&t, 1002, 3);
	TX(&t, 1003, 3);
	RX(&t, 9000, 4);
	join_end(t.j);
	assert_int_equal(t.j->fates.total.received, 1);
	assert_int_equal(known(&t, KNOWN_OFFERED), 1);
	expect_told(&t, 2, FATE_NOT_SENT, 2);
	check_known_sum(&t);
	end(&t);
}

static void memory_for_fates_is_bounded(void **state)
{
	struct test t;

	begin(&t, MEMORY);
	t.j->tell = NULL;
	put_mark(&t, RECORD_FATES_BEGIN);
	for (uint64_t i = 1; i <= 200000; i++)
		RX(&t, 1000 + i, i);
	assert_true(waitlist_bytes(&t.j->waitlist) + waitlist_bytes(&t.j->late) <= MEMORY);
	put_mark(&t, RECORD_FATES_END);
	join_end(t.j);
	assert_true(known(&t, KNOWN_LET_GO) > 100000);
	assert_int_equal(known(&t, KNOWN_LET_GO) + known(&t, KNOWN_OFFERED), 200000);
	assert_int_equal(t.j->received, t.j->sent + t.j->not_sent + t.j->open + t.j->let_go);
	end(&t);
}

/* UDP of many flows over IPv4, also with a tag, and over IPv6; ARP and LLDP. */
static struct frame frame_of(uint64_t id)
{
	static const uint8_t types[5][2] = {{8, 0}, {8, 0}, {0x86, 0xdd}, {8, 6}, {0x88, 0xcc}};
	struct frame f = frame((uint8_t)(id % 200), 64);

	memcpy(f.at + 12, types[id % 5], 2);
	memcpy(f.at + 28, &id, 4);
	f.at[11] = (uint8_t)(id % 7);
	switch (id % 5) {
	case 1:
		memmove(f.at + 16, f.at + 12, sizeof(f.at) - 16);
		memcpy(f.at + 12, "\x81\0\x20", 3);
		f.at[15] = (uint8_t)(id % 11);
		break;
	case 2: memcpy(f.at + 14, "\x60\0\0\0\0\x0a\x11", 7); break;
	case 3: memcpy(f.at + 14, "\0\1\x08\0\6\4\0\1", 8); break;
	}
	return f;
}

static void compare_headers(void *ctx, const struct outcome *o)
{
	struct test *t = ctx;
	char text[HEADERS_TEXT], expected[HEADERS_TEXT];
	struct headers h, own;
	struct frame f;

	if (!o->rx)
		return;
	f = frame_of(o->rx->id);
	join_headers(t->j, o->rx, &h);
	headers_read(&own, 1, f.at, sizeof(f.at));
	assert_int_equal(h.flags, own.flags);
	assert_int_equal(headers_compare(&own, 64, &h, 64), 0);
	assert_string_equal(headers_text(&h, text), headers_text(&own, expected));
	t->told.count++;
}

/* Packets of flows that have room and of others, and packets that wait for their fate. */
static void headers_stay_with_their_packets(void **state)
{
	const uint64_t count = 30000;
	struct test t;

	begin(&t, MEMORY);
	t.j->tell = compare_headers;
	t.j->ctx = &t;
	put_mark(&t, RECORD_FATES_BEGIN);
	for (uint64_t id = 1; id <= count; id++) {
		put(&t, DIRECTION_RX, 0, 0, 1000 + id, id, frame_of(id));
		if (id % 3 == 0 && id > 900)
			put(&t, DIRECTION_TX, 1, 0, 1000 + id, id - 900, frame_of(id - 900));
		if (id % 4 == 0)
			put_fate(&t, 1000 + id, id / 2, RT_FATES_NOT_OFFERED);
	}
	assert_true(t.j->late.end > 10000);
	put_mark(&t, RECORD_FATES_END);
	join_end(t.j);
	assert_true(t.j->flows.no_room > 1000 && t.j->unchanged == t.j->sent);
	assert_true(t.j->sent > 5000 && t.told.count > count);
	end(&t);
}

static void put_reason(struct test *t, uint8_t source, uint8_t number, const char *text)
{
	const struct record r = {.kind = RECORD_REASON,
		.fate = source,
		.why = number,
		.caplen = (uint32_t)strlen(text),
		.data = (const uint8_t *)text};

	join_records(t->j, &r, 1, t->records);
}

static void put_refused(struct test *t, uint64_t id, uint8_t number)
{
	const struct record r = {.kind = RECORD_FATE,
		.fate = RT_FATES_NOT_OFFERED,
		.why = number,
		.ns = 2000,
		.id = id};

	join_records(t->j, &r, 1, t->records);
}

static uint64_t packets_of(const struct test *t, const char *text)
{
	for (uint32_t i = 0; i < t->j->fates.reasons.count; i++) {
		const struct fate_reason *r = t->j->fates.reasons.things[i];

		if (!strcmp(r->text, text))
			return r->packets;
	}
	return 0;
}

/* Two applications have numbers of their own, and so has another recording. */
static void reasons_are_counted_by_text(void **state)
{
	const uint64_t other = UINT64_C(3) << RT_FATES_SOURCE_SHIFT;
	struct test t;

	begin(&t, MEMORY);
	put_mark_of(&t, RECORD_FATES_BEGIN, 900);
	for (uint64_t id = 1; id <= 5; id++)
		RX(&t, 1000 + id, id);
	RX(&t, 1010, other | 1);
	put_reason(&t, 0, 1, "acl");
	put_reason(&t, 3, 1, "no \x1b[route");
	put_refused(&t, 1, 1);
	put_refused(&t, 2, 1);
	put_refused(&t, 3, 0);
	put_refused(&t, 4, 200); /* without a text */
	put_refused(&t, other | 1, 1);
	put_fate(&t, 2000, 5, RT_FATES_OPEN);
	put_mark_of(&t, RECORD_FATES_BEGIN, 5000);
	RX(&t, 5001, 9);
	put_reason(&t, 0, 1, "ttl");
	put_refused(&t, 9, 1);
	put_mark(&t, RECORD_FATES_END);
	join_end(t.j);
	assert_int_equal(known(&t, KNOWN_NOT_OFFERED), 6);
	assert_int_equal(packets_of(&t, "acl"), 2);
	assert_int_equal(packets_of(&t, "no ?[route"), 1);
	assert_int_equal(packets_of(&t, "ttl"), 1);
	assert_int_equal(packets_of(&t, "?"), 1);
	end(&t);
}

/* However long the file is: a packet is looked at once when its time is over. */
static void late_packets_are_moved_once(void **state)
{
	struct test t;

	begin(&t, MEMORY);
	t.j->tell = NULL;
	put_mark(&t, RECORD_FATES_BEGIN);
	for (uint64_t i = 1; i <= 2000; i++)
		RX(&t, 1000 + 10 * i, i);
	assert_int_equal(t.j->late.first, 0);
	assert_true(t.j->late.end > 1000);
	assert_int_equal(t.j->late.end, t.j->waitlist.first);
	put_fate(&t, 30000, 1, RT_FATES_NOT_OFFERED);
	put_fate(&t, 30000, 2000, RT_FATES_NOT_OFFERED);
	put_mark(&t, RECORD_FATES_END);
	join_end(t.j);
	assert_int_equal(known(&t, KNOWN_NOT_OFFERED), 2);
	assert_int_equal(known(&t, KNOWN_OFFERED), 1998);
	end(&t);
}

/* A block of local use may be another program's, or damaged. */
static void blocks_with_nonsense_have_no_fates(void **state)
{
	static const struct {
		uint32_t body[10];
		size_t words;
		int records;
	} blocks[] = {
		{{RT_FATES_BEGIN}, 1, 0}, /* cut off */
		{{RT_FATES_BEGIN, 0, 0, 0}, 4, 1},
		{{9 | 24u << 16, 1, 0, 0, 1, 0, 0, 0, 0, 1}, 10, 0}, /* an unknown kind */
		{{RT_FATES_PACKETS | 24u << 16, 2, 0, 0, 1, 0, 0, 0, 0, 1}, 10, 0}, /* too few */
		{{RT_FATES_PACKETS | 24u << 16, UINT32_MAX, 0, 0, 1, 0, 0, 0, 0, 1}, 10, 0},
		{{RT_FATES_PACKETS | 20u << 16, 1, 0, 0, 1, 0, 0, 0, 0, 1}, 10, 0},
		{{RT_FATES_PACKETS | 24u << 16, 1, 0, 0, 1, 0, 0, 0, 3, 1}, 10,
			0}, /* interface 3 */
		{{RT_FATES_PACKETS | 24u << 16, 1, 0, 0, 1, 0, 0, 0, 2, 1}, 10, 1},
		{{RT_FATES_PACKETS | 24u << 16, 0, 0, 0}, 4, 0},
		{{RT_FATES_END | 64u << 16, 1, 0, 0, 1, 0, 0, 0, 0, 1}, 10, 0},
		{{RT_FATES_END, 0, 0, 0}, 4, 0},
		{{RT_FATES_END | 64u << 16, 0, 0, 0}, 4, 1},
	};

	for (unsigned i = 0; i < sizeof(blocks) / sizeof(blocks[0]); i++) {
		uint8_t file[256], *p = file + make_ports(file, 3);
		uint32_t len = (uint32_t)(12 + 4 * blocks[i].words);
		struct records *records;
		struct window bytes;
		struct record r[4];

		put32(&p, RT_PCAPNG_FATES);
		put32(&p, len);
		memcpy(p, blocks[i].body, 4 * blocks[i].words);
		p += 4 * blocks[i].words;
		put32(&p, len);
		assert_int_equal(records_new(&records), 0);
		window_memory(&bytes, file, (size_t)(p - file));
		records_start(records, &bytes);
		assert_int_equal(records_next(records, r, 4), blocks[i].records);
		assert_int_equal(records_next(records, r, 4), 0);
		records_free(records);
	}
}

/* The head counts by time, the table has the fates that the probe recorded. */
static void a_word_has_one_meaning(void **state)
{
	static struct join j = {.received = 9, .open = 1, .unknown = 1, .let_go = 1};
	const struct report r = {.j = &j};
	struct sheet sheets[FATE_SHEETS];
	struct fact facts[FACTS_MAX];
	unsigned n = facts_make(facts, &r);

	assert_int_equal(fate_sheets_make(sheets, &r), 0);
	for (unsigned i = 1; i < n; i++)
		for (unsigned c = 2; c < SHEET_COLUMNS && sheets[0].heads[c]; c++)
			if (strcmp(facts[i].name, "let go"))
				assert_string_not_equal(facts[i].name, sheets[0].heads[c]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fates_are_awaited_beyond_the_timeout),
		cmocka_unit_test(nothing_is_pending_after_the_end_of_the_recording),
		cmocka_unit_test(a_packet_after_a_pause_is_pending_at_the_end),
		cmocka_unit_test(packets_with_a_fate_are_not_pending),
		cmocka_unit_test(unknown_fates_have_reasons),
		cmocka_unit_test(without_an_end_packets_are_open),
		cmocka_unit_test(two_recordings_with_fates),
		cmocka_unit_test(a_killed_recording_before_another),
		cmocka_unit_test(a_file_without_fates_behind_one_that_has_them),
		cmocka_unit_test(memory_for_fates_is_bounded),
		cmocka_unit_test(headers_stay_with_their_packets),
		cmocka_unit_test(reasons_are_counted_by_text),
		cmocka_unit_test(late_packets_are_moved_once),
		cmocka_unit_test(blocks_with_nonsense_have_no_fates),
		cmocka_unit_test(a_word_has_one_meaning),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
