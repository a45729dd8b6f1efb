/* SPDX-License-Identifier: BSD-3-Clause */
/* The join, on records that the tests make. */
#include <math.h>

#include "base/test_util.h"
#include "show/sheet.h"
#include "test_join.h"

/* ---- ports ---- */

/* Each section has as many as there may be, of the same names. */
static void many_ports_in_many_sections(void **state)
{
	enum { SECTIONS = 200 };
	size_t each = 28 + 20 * PORTS_MAX;
	uint8_t *file = malloc(SECTIONS * each);
	struct records *records;
	struct window bytes;
	struct record r;

	assert_non_null(file);
	for (unsigned i = 0; i < SECTIONS; i++)
		assert_int_equal(make_ports(file + i * each, PORTS_MAX), each);
	assert_int_equal(records_new(&records), 0);
	window_memory(&bytes, file, SECTIONS * each);
	records_start(records, &bytes);
	assert_int_equal(records_next(records, &r, 1), 0);
	assert_int_equal(records_port_count(records), PORTS_MAX);
	for (unsigned i = 0; i < PORTS_MAX; i++) {
		char name[PORT_NAME];

		snprintf(name, sizeof(name), "interface %u", i);
		assert_string_equal(records_port(records, i)->name, name);
	}
	records_free(records);
	free(file);
}

/* ---- fates ---- */

static void fates_and_their_sum(void **state)
{
	const enum fate want[] = {FATE_SENT, FATE_MADE, FATE_UNKNOWN, FATE_SENT, FATE_NOT_SENT,
		FATE_UNKNOWN, FATE_OPEN};
	const uint64_t ids[] = {7, NO_ID, 99, 7, 8, 8, 9};
	struct test t;

	begin(&t, MEMORY);
	RX(&t, 1000, 7);
	RX(&t, 1001, 8); /* is sent too late */
	TX(&t, 1010, 7);
	TX(&t, 1011, NO_ID);
	TX(&t, 1012, 99);
	TX(&t, 1999, 7); /* a copy, just in time */
	RX(&t, 1500, 9); /* a time stamp that is late is not a reason to forget */
	TX(&t, 2001, 8);
	join_end(t.j);
	assert_int_equal(t.told.count, 7);
	for (unsigned i = 0; i < 7; i++) {
		assert_int_equal(t.told.fate[i], want[i]);
		assert_int_equal(t.told.id[i], ids[i]);
	}
	assert_int_equal(t.told.latency[0], 10);
	assert_int_equal(t.told.latency[3], 999);
	assert_int_equal(t.j->received, 3);
	assert_int_equal(t.j->received, t.j->sent + t.j->not_sent + t.j->open + t.j->let_go);
	assert_int_equal(t.j->copies, 1);
	assert_int_equal(t.j->again, 1);
	assert_int_equal(t.j->times[2], 1);
	assert_int_equal(t.j->unknown, 2);
	end(&t);
}

/* The later packet has the id; the fate of the earlier one is told all the same. */
/* ---- time ---- */

#define S UINT64_C(1000000000)

static void one_record_of_another_time(void **state)
{
	const uint64_t others[] = {4000 * S, 1 * S, UINT64_MAX, 0};

	for (unsigned i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		struct test t;

		begin(&t, MEMORY);
		RX(&t, 100 * S, 1);
		RX(&t, others[i], 2);
		TX(&t, 100 * S + 10, 1);
		RX(&t, 100 * S + 20, 3);
		TX(&t, 100 * S + 30, 3);
		TX(&t, others[i], 99);
		RX(&t, 100 * S + 40, 4);
		TX(&t, 100 * S + 50, 4);
		RX(&t, 100 * S + 5000, 5);
		TX(&t, 100 * S + 5010, 5);
		join_end(t.j);
		assert_int_equal(t.j->sent, 4);
		assert_int_equal(t.j->not_sent, 1); /* 2 */
		assert_int_equal(t.j->outliers, 2);
		assert_int_equal(t.j->first_ns, 100 * S);
		assert_int_equal(t.j->last_ns, 100 * S + 5010);
		end(&t);
	}
}

/* The first packet after it is not late, and those before it are. */
static void a_quiet_time(void **state)
{
	struct test t;

	begin(&t, MEMORY);
	RX(&t, 100 * S, 1);
	for (unsigned i = 0; i < 4; i++) {
		RX(&t, (110 + 10 * i) * S, 2 + i);
		TX(&t, (110 + 10 * i) * S + 10, 2 + i);
	}
	/* Each is far from the one before it. */
	for (unsigned i = 0; i < 4; i++)
		RX(&t, (200 + 10 * i) * S, 10 + i);
	join_end(t.j);
	assert_int_equal(t.j->sent, 4);
	assert_int_equal(t.j->not_sent, 1 + 3);
	assert_int_equal(t.j->open, 1);
	assert_int_equal(t.j->outliers, 0);
	end(&t);
}

/* Two agree, and are believed; it lasts no longer than they. */
static void two_records_of_another_time(void **state)
{
	struct test t;

	begin(&t, MEMORY);
	RX(&t, 100 * S, 1);
	RX(&t, 4000 * S, 2);
	RX(&t, 4000 * S, 3);
	for (unsigned i = 0; i < 5; i++) {
		RX(&t, 100 * S + 100 + i, 10 + i);
		TX(&t, 100 * S + 110 + i, 10 + i);
	}
	join_end(t.j);
	assert_int_equal(t.j->sent, 5);
	assert_int_equal(t.j->not_sent + t.j->open, 3);
	end(&t);
}

static void ids_that_come_again(void **state)
{
	struct test t;

	begin(&t, MEMORY);
	RX(&t, 1000, 7);
	RX(&t, 1100, 7);
	TX(&t, 1150, 7);
	RX(&t, 5000, 8);
	join_end(t.j);
	assert_int_equal(t.j->waitlist.repeated, 1);
	assert_int_equal(t.told.latency[0], 50);
	assert_int_equal(t.j->not_sent, 1);
	assert_int_equal(t.j->sent, 1);
	assert_int_equal(t.j->open, 1);
	end(&t);
}

/* Grows, wraps around and forgets; every packet is found as long as it waits, and none after. */
static void many_packets_wait(void **state)
{
	const uint64_t count = 300000, wait = 70000;
	struct test t;

	begin(&t, 64u << 20);
	t.j->tell = NULL;
	t.j->timeout_ns = wait;
	for (uint64_t i = 0; i < count; i++) {
		RX(&t, 1000000 + i, 1 + i * 77);
		if (i >= wait - 1)
			TX(&t, 1000000 + i, 1 + (i - wait + 1) * 77);
		if (i >= wait)
			TX(&t, 1000000 + i, 1 + (i - wait) * 77); /* a nanosecond too late */
	}
	join_end(t.j);
	assert_int_equal(t.j->sent, count - wait + 1);
	assert_int_equal(t.j->unknown, count - wait);
	assert_int_equal(t.j->open, wait - 1);
	assert_int_equal(t.j->let_go, 0);
	end(&t);
}

static void memory_is_bounded(void **state)
{
	struct test t;

	begin(&t, MEMORY);
	t.j->tell = NULL;
	t.j->timeout_ns = UINT64_MAX;
	for (uint64_t i = 1; i <= 200000; i++)
		RX(&t, 1000 + i, i);
	for (uint64_t i = 1; i <= 200000; i++)
		TX(&t, 1000000 + i, i);
	join_end(t.j);
	assert_in_range(t.j->let_go, 1, 100000);
	assert_int_equal(t.j->sent + t.j->let_go, 200000);
	assert_int_equal(t.j->unknown, t.j->let_go);
	assert_true(waitlist_bytes(&t.j->waitlist) <= MEMORY);
	end(&t);
}

/* ---- order ---- */

static void order_is_that_of_a_flow(void **state)
{
	struct test t;

	begin(&t, MEMORY);
	for (uint64_t id = 1; id <= 4; id++)
		put(&t, DIRECTION_RX, 0, 0, 1000 + id, id, frame(id == 4 ? 2 : 1, 64));
	TX(&t, 1010, 4); /* another flow */
	TX(&t, 1020, 3);
	TX(&t, 1030, 1);
	TX(&t, 1040, 1); /* copies do not count */
	TX(&t, 1060, 2);
	join_end(t.j);
	assert_int_equal(t.j->reordered, 2);
	assert_int_equal(t.j->reordered_flows, 1);
	assert_int_equal(joined_flow_at(&t.j->flows, 0)->most_behind, 2);
	assert_int_equal(joined_flow_at(&t.j->flows, 0)->most_late_ns, 40);
	assert_int_equal(joined_flow_at(&t.j->flows, 0)->reordered_number, 1);
	assert_true(t.told.reordered[2] && !t.told.reordered[3] && t.told.reordered[4]);
	end(&t);
}

/* The packets of a burst have one time stamp: the order of those of two queues is unknown. */
static void equal_times_of_two_queues_have_no_order(void **state)
{
	static const struct {
		uint32_t rx, tx;
		unsigned reordered;
	} queues[] = {{0, 0, 1}, {1, 0, 0}, {0, 1, 0}};

	for (size_t i = 0; i < sizeof(queues) / sizeof(queues[0]); i++) {
		struct test t;

		begin(&t, MEMORY);
		put(&t, DIRECTION_RX, 0, 0, 1000, 1, frame(1, 64));
		put(&t, DIRECTION_RX, 0, queues[i].rx, 1000 + !queues[i].rx, 2, frame(1, 64));
		put(&t, DIRECTION_TX, 1, 0, 1009, 2, frame(1, 64));
		put(&t, DIRECTION_TX, 1, queues[i].tx, 1009 + !queues[i].tx, 1, frame(1, 64));
		join_end(t.j);
		assert_int_equal(t.j->sent, 2);
		assert_int_equal(t.j->reordered, queues[i].reordered);
		end(&t);
	}
}

static uint32_t find(struct flow_table *t, uint16_t port, const struct headers *h)
{
	struct flow_key k;

	flow_key_of(&k, port, h);
	return flow_table_get(t, &k);
}

/* Each word of a key counts; the first one once did not. */
static void flows_differ_in_each_part(void **state)
{
	const struct headers first = {.flags = HAS_IP | HAS_PORTS, .version = 4};
	struct flow_table f;

	assert_int_equal(joined_flows_init(&f, MEMORY), 0);
	assert_int_equal(find(&f, 0, &first), 0);
	for (unsigned i = 0; i < 16; i++) {
		struct headers h = first;
		uint64_t words[6] = {0}, other[6] = {0};

		h.src[i] = 1;
		assert_int_equal(find(&f, 0, &h), 1 + 2 * i);
		h.src[i] = 0;
		h.dst[i] = 1;
		assert_int_equal(find(&f, 0, &h), 2 + 2 * i);
		other[i % 6] = 1;
		assert_true(hash_words(&f.secret, words, 6) != hash_words(&f.secret, other, 6));
	}
	assert_int_equal(find(&f, 1, &first), 33);
	assert_int_equal(find(&f, 0, &first), 0);
	joined_flows_free(&f);
}

static void flows_without_room_are_counted(void **state)
{
	struct flow_table f;
	uint32_t n = 0;

	assert_int_equal(joined_flows_init(&f, 0), 0); /* the least that it takes */
	for (; !f.no_room; n++) {
		struct headers h = {.flags = HAS_IP, .version = 4};

		memcpy(h.src, &n, sizeof(n));
		find(&f, 0, &h);
	}
	assert_int_equal(f.count, f.max);
	assert_int_equal(n, f.max + 1);
	joined_flows_free(&f);
}

/* ---- headers ---- */

static void headers_are_compared_where_both_have_them(void **state)
{
	struct frame f = frame(1, 64);
	struct headers whole, cut, none, other;
	char text[CHANGE_TEXT];

	headers_read(&whole, 1, f.at, sizeof(f.at));
	headers_read(&cut, 1, f.at, 36);
	headers_read(&none, 1, f.at, 11);
	assert_int_equal(whole.flags, HAS_MAC | HAS_TYPE | HAS_IP | HAS_PORTS);
	assert_int_equal(cut.flags, HAS_MAC | HAS_TYPE | HAS_IP);
	assert_int_equal(none.flags, 0);
	f.at[37] = 54;
	f.at[22] = 63;
	headers_read(&other, 1, f.at, sizeof(f.at));
	assert_int_equal(
		headers_compare(&whole, 64, &other, 64), 1 << CHANGE_TTL | 1 << CHANGE_DST_PORT);
	assert_int_equal(headers_compare(&cut, 64, &other, 64), 1 << CHANGE_TTL);
	assert_int_equal(headers_compare(&none, 64, &other, 64), 0);
	assert_int_equal(headers_compare(&none, 64, &other, 68), 1 << CHANGE_LENGTH);
	assert_string_equal(change_text(CHANGE_TTL, &whole, 64, &other, 64, text), "64 > 63");
	headers_read(&other, 113, f.at, sizeof(f.at)); /* no Ethernet */
	assert_int_equal(other.flags, 0);
}

/* Extension headers that go on for ever, and lengths beyond the packet. */
static void headers_of_any_bytes(void **state)
{
	uint8_t p[54 + 64 * 8] = {[12] = 0x86, 0xdd, 0x60};
	struct headers h;

	for (unsigned next = 0; next < 256; next++) {
		p[20] = (uint8_t)next;
		memset(p + 54, (int)next, sizeof(p) - 54);
		for (size_t len = 0; len <= sizeof(p); len += 7)
			headers_read(&h, 1, p, len);
	}
	p[20] = 0; /* hop by hop, with no length, for ever */
	memset(p + 54, 0, sizeof(p) - 54);
	headers_read(&h, 1, p, sizeof(p));
	assert_int_equal(h.flags, HAS_MAC | HAS_TYPE | HAS_IP);
	for (size_t i = 12; i + 4 <= sizeof(p); i += 4)
		memcpy(p + i, "\x81\x00\x00\x05", 4);
	headers_read(&h, 1, p, 12 + 4 * 100); /* nothing but tags */
	assert_int_equal(h.vlans, 100);
	assert_int_equal(h.flags, HAS_MAC);
}

/* ---- statistics ---- */

/* Values behind the array are not buckets. */
static void quantile_of_buckets_alone(void **state)
{
	uint32_t bucket[RT_LOG_BUCKETS(1, LATENCY_MAX_BITS) + 1] = {[3] = 10};
	double alone = buckets_quantile(bucket, 1, 0.5, 0, 1e9);

	bucket[RT_LOG_BUCKETS(1, LATENCY_MAX_BITS)] = 1000;
	assert_true(alone == buckets_quantile(bucket, 1, 0.5, 0, 1e9));
	bucket[3] = 0;
	assert_true(isnan(buckets_quantile(bucket, 1, 0.5, 0, 1e9)));
}

static void percentiles_are_within_a_percent(void **state)
{
	struct spread s = {0};

	for (uint64_t i = 1; i <= 100000; i++)
		spread_add(&s, 37 * i);
	assert_int_equal(s.min, 37);
	assert_int_equal(s.max, 3700000);
	for (int q = 0; q < QUANTILES; q++) {
		double v = spread_quantile(&s, quantile_shares[q]) / (3700000 * quantile_shares[q]);

		assert_true(v > 0.99 && v < 1.01);
	}
	spread_add(&s, UINT64_MAX);
	assert_true(spread_quantile(&s, 1) <= (double)UINT64_MAX);
}

/* Slices double, and nothing of them gets lost. */
static void slices_grow_with_the_file(void **state)
{
	struct slices s;
	uint64_t sum = 0, latencies = 0;

	assert_int_equal(slices_init(&s), 0);
	for (uint64_t i = 0; i < 5000; i++) {
		struct slice *at = slices_get(&s, 1000 + i * i * 1000);

		at->received++;
		slice_latency(at, i);
	}
	slices_get(&s, 10)->received++; /* before the first one */
	assert_true(s.count > SLICES / 2 && s.count <= SLICES);
	for (uint32_t i = 0; i < SLICES; i++) {
		sum += s.at[i].received;
		for (uint32_t b = 0; b < SLICE_BUCKETS; b++)
			latencies += s.at[i].bucket[b];
		assert_true(i < s.count || !s.at[i].received);
	}
	assert_int_equal(sum, 5001);
	assert_int_equal(latencies, 5000);
	slices_free(&s);
}

static void keyed_things_have_a_limit(void **state)
{
	struct keyed k = {.size = sizeof(uint64_t)};

	for (uint64_t key = 0; key < 2 * KEYED_MAX; key++) {
		uint64_t *thing = keyed_get(&k, key << 32);

		assert_int_equal(thing != NULL, key < KEYED_MAX);
		if (thing)
			*thing = key;
	}
	for (uint64_t key = 0; key < KEYED_MAX; key++)
		assert_int_equal(*(uint64_t *)keyed_get(&k, key << 32), key);
	keyed_free(&k);
}

static void a_sheet_is_a_table_of_a_document(void **state)
{
	struct sheet s = {.title = "<t>", .heads = {"a", "b"}, .columns = 2, .more = 1234};
	struct view v;
	json_t *table;

	view_begin(&v, "explain", "x", 1, 2);
	sheet_view(&s, &v);
	assert_int_equal(json_array_size(json_object_get(v.document, "panels")), 0);
	assert_int_equal(sheet_row(&s), 0);
	sheet_put(&s, 0, "<script>\"&");
	sheet_view(&s, &v);
	table = json_array_get(json_object_get(v.document, "panels"), 0);
	assert_string_equal(json_string_value(json_array_get(json_object_get(table, "notes"), 0)),
		"There are 1,234 more.");
	table = json_array_get(json_object_get(table, "rows"), 0);
	assert_string_equal(json_string_value(json_array_get(table, 0)), "<script>\"&");
	assert_int_equal(json_array_size(table), 2);
	json_decref(v.document);
	sheet_free(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(many_ports_in_many_sections),
		cmocka_unit_test(fates_and_their_sum),
		cmocka_unit_test(one_record_of_another_time),
		cmocka_unit_test(a_quiet_time),
		cmocka_unit_test(two_records_of_another_time),
		cmocka_unit_test(ids_that_come_again),
		cmocka_unit_test(many_packets_wait),
		cmocka_unit_test(memory_is_bounded),
		cmocka_unit_test(order_is_that_of_a_flow),
		cmocka_unit_test(equal_times_of_two_queues_have_no_order),
		cmocka_unit_test(flows_differ_in_each_part),
		cmocka_unit_test(flows_without_room_are_counted),
		cmocka_unit_test(headers_are_compared_where_both_have_them),
		cmocka_unit_test(headers_of_any_bytes),
		cmocka_unit_test(percentiles_are_within_a_percent),
		cmocka_unit_test(quantile_of_buckets_alone),
		cmocka_unit_test(slices_grow_with_the_file),
		cmocka_unit_test(keyed_things_have_a_limit),
		cmocka_unit_test(a_sheet_is_a_table_of_a_document),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
