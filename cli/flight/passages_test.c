/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets by their ids: which were slow, and which were not sent. */
#include "passages.h"
#include "test_incident.h"

#define MS UINT64_C(1000000)

static json_t *document;
static uint64_t frame;

static int begin_passages(void **state)
{
	begin(state);
	document = NULL;
	frame = 0;
	incident.passages = passages_new(incident.from_ns, incident.to_ns);
	return incident.passages ? 0 : -1;
}

static int end_passages(void **state)
{
	json_decref(document);
	passages_free(incident.passages);
	trigger = (struct trigger){.text = "gap > 50us"};
	return end(state);
}

static void add(enum direction direction, uint64_t id, uint64_t at_ns)
{
	const struct block b = {.ns = (int64_t)(TEST_NOW_REAL_NS + at_ns),
		.id = id,
		.has_id = id != 0,
		.direction = direction,
		.queue = 3};
	const struct headers h = {0};

	passages_add(incident.passages, &b, &h, ++frame);
}

static json_t *panel(const char *id)
{
	struct lane_bars bars = {0};
	struct view v;
	json_t *e;
	size_t i;

	if (!document) {
		view_begin(&v, "flight", "x", incident.from_ns, incident.to_ns);
		document = v.document;
		passages_view(&incident, NULL, &v, &bars);
	}
	json_array_foreach(json_object_get(document, "panels"), i,
		e) if (!strcmp(json_string_value(json_object_get(e, "id")), id)) return e;
	return NULL;
}

static json_int_t cell(const char *id, size_t row, size_t column)
{
	return json_integer_value(
		json_array_get(json_array_get(json_object_get(panel(id), "rows"), row), column));
}

static size_t rows(const char *id)
{
	return json_array_size(json_object_get(panel(id), "rows"));
}

/* Packets of the heat map. */
static uint64_t heat(void)
{
	uint64_t sum = 0;
	json_t *column, *n;
	size_t i, k;

	json_array_foreach(json_object_get(panel("passages"), "counts"), i, column)
	{
		json_array_foreach(column, k, n)
		{
			if (json_integer_value(n) > 0)
				sum += (uint64_t)json_integer_value(n);
		}
	}
	return sum;
}

static void a_slow_packet_has_its_frames(void **state)
{
	add(DIRECTION_RX, 1, 100 * MS);
	add(DIRECTION_RX, 2, 101 * MS);
	add(DIRECTION_TX, 2, 102 * MS);
	add(DIRECTION_TX, 1, 136 * MS);
	assert_int_equal(rows("slow"), 2);
	assert_int_equal(cell("slow", 0, 0), 1);
	assert_int_equal(cell("slow", 0, 1), 4);
	assert_int_equal(cell("slow", 0, 2), 36 * MS);
	assert_int_equal(cell("slow", 0, 3), 100 * MS);
	assert_int_equal(cell("slow", 0, 5), 3);
	assert_int_equal(cell("slow", 1, 0), 2);
	assert_int_equal(heat(), 2);
	assert_null(panel("unsent"));
}

/* The first sending counts; one without its reception says nothing. */
static void what_is_sent_again_counts_once(void **state)
{
	add(DIRECTION_TX, 9, 99 * MS);
	add(DIRECTION_RX, 1, 100 * MS);
	add(DIRECTION_TX, 1, 101 * MS);
	add(DIRECTION_TX, 1, 500 * MS);
	assert_int_equal(rows("slow"), 1);
	assert_int_equal(cell("slow", 0, 2), MS);
}

static void packets_without_ids_make_no_panel(void **state)
{
	add(DIRECTION_RX, 0, 100 * MS);
	add(DIRECTION_TX, 0, 101 * MS);
	assert_null(panel("passages"));
	assert_null(panel("slow"));
	assert_null(panel("unsent"));
}

static void what_was_not_sent_is_listed_in_order(void **state)
{
	for (uint64_t id = 1; id <= 1500; id++)
		add(DIRECTION_RX, id, id * 1000);
	add(DIRECTION_TX, 2, 2 * MS);
	assert_int_equal(rows("unsent"), 1000);
	assert_int_equal(cell("unsent", 0, 0), 1);
	assert_int_equal(cell("unsent", 1, 0), 3);
	assert_non_null(strstr(
		json_string_value(json_array_get(json_object_get(panel("unsent"), "notes"), 1)),
		"of 1,499"));
}

static void assert_became(size_t row, const char *start)
{
	const char *text = json_string_value(
		json_array_get(json_array_get(json_object_get(panel("unsent"), "rows"), row), 6));

	assert_memory_equal(text, start, strlen(start));
}

/* An unknown fate has a number, too, which means something else. */
static void reasons_are_those_of_the_application(void **state)
{
	static const struct {
		uint8_t fate, why;
		const char *reason, *shown;
	} cases[] = {{RT_FATES_NOT_OFFERED, 1, "acl", "not sent: acl, freed, noticed after "},
		{RT_FATES_NOT_OFFERED, 0, "", "not sent: freed, noticed after "},
		{RT_FATES_UNKNOWN, 1, "", "unknown"},
		{RT_FATES_NOT_OFFERED, 1, "acl", "not sent: acl, freed, noticed after "},
		{RT_FATES_NOT_OFFERED, 255, "other reasons",
			"not sent: other reasons, freed, noticed after "}};
	const size_t count = sizeof(cases) / sizeof(cases[0]);

	incident.followed = true;
	for (size_t k = 0; k < count; k++)
		add(DIRECTION_RX, k + 1, (k + 1) * MS);
	for (size_t k = 0; k < count; k++)
		passages_fate(incident.passages,
			&(struct rt_fates_packet){
				.id = k + 1, .fate = cases[k].fate, .why = cases[k].why},
			cases[k].reason);
	for (size_t k = 0; k < count; k++)
		assert_became(k, cases[k].shown);
	incident.followed = false;
}

static void those_above_the_threshold(void **state)
{
	trigger = (struct trigger){
		.text = "latency > 10ms", .kind = TRIGGER_LATENCY, .threshold = 10e6};
	for (uint64_t id = 1; id <= 200; id++) {
		add(DIRECTION_RX, id, id * MS);
		add(DIRECTION_TX, id, id * MS + id * 100000);
	}
	assert_int_equal(rows("slow"), 100);
	assert_int_equal(cell("slow", 0, 2), 20 * MS);
	assert_int_equal(cell("slow", 99, 2), 10 * MS + 100000);
	assert_int_equal(json_array_size(json_object_get(panel("passages"), "points")), 100);
	assert_float_equal(json_number_value(json_object_get(
				   json_object_get(panel("passages"), "limit"), "value")),
		10e6, 1);
}

static void of_very_many_the_slowest_stay(void **state)
{
	trigger = (struct trigger){
		.text = "latency > 1us", .kind = TRIGGER_LATENCY, .threshold = 1000};
	for (uint64_t id = 1; id <= 5000; id++) {
		uint64_t took = (id * 7919 % 5000 + 2) * 1000;

		add(DIRECTION_RX, id, id * 100000);
		add(DIRECTION_TX, id, id * 100000 + took);
	}
	assert_int_equal(rows("slow"), 1000);
	assert_int_equal(cell("slow", 0, 2), 5001000);
	assert_int_equal(cell("slow", 999, 2), 4002000);
	assert_int_equal(heat(), 5000);
}

/* Half of a column takes 1 ms, the rest 4 ms. */
static void percentiles_are_those_of_a_column(void **state)
{
	json_t *series;

	for (uint64_t id = 1; id <= 1000; id++) {
		add(DIRECTION_RX, id, 1000 * MS + id);
		add(DIRECTION_TX, id, 1000 * MS + id + (id % 2 ? 1 : 4) * MS);
	}
	series = json_object_get(panel("passages"), "series");
	for (size_t k = 0; k < 2; k++) {
		double v = json_number_value(
			json_array_get(json_object_get(json_array_get(series, k), "values"), 50));

		assert_true(v > (k ? 4e6 : 1e6) * 0.91 && v < (k ? 4e6 : 1e6) * 1.09);
		assert_true(json_is_null(
			json_array_get(json_object_get(json_array_get(series, k), "values"), 51)));
	}
}

/* In another order than they came, again and again: each finds its own reception. */
static void ids_come_and_go(void **state)
{
	enum { AT_ONCE = 60000 };

	for (uint64_t round = 0; round < 3; round++) {
		for (uint64_t k = 0; k < AT_ONCE; k++)
			add(DIRECTION_RX, round * AT_ONCE + k + 1, 1000 * MS + k);
		for (uint64_t k = 0; k < AT_ONCE; k++) {
			uint64_t n = k * 7919 % AT_ONCE;

			add(DIRECTION_TX, round * AT_ONCE + n + 1, 1000 * MS + n + 5000);
		}
	}
	assert_null(panel("unsent"));
	assert_int_equal(heat(), 3 * AT_ONCE);
	assert_int_equal(cell("slow", 0, 2), 5000);
	assert_int_equal(cell("slow", 99, 2), 5000);
}

static void more_open_ones_than_have_a_place(void **state)
{
	for (uint64_t id = 1; id <= 70000; id++)
		add(DIRECTION_RX, id, id);
	assert_int_equal(rows("unsent"), 1000);
	assert_non_null(strstr(
		json_string_value(json_array_get(json_object_get(panel("unsent"), "notes"), 1)),
		"of 70,000 at most"));
}

static void latencies_after_very_many_open_ones(void **state)
{
	add(DIRECTION_RX, 1, 0);
	for (uint64_t id = 2; id <= 200000; id++) {
		add(DIRECTION_RX, id, id);
		if (id % 3 == 0) /* sent at once */
			add(DIRECTION_TX, id, id + 1000);
	}
	add(DIRECTION_RX, 300000, 10 * MS);
	add(DIRECTION_TX, 300000, 46 * MS);
	add(DIRECTION_TX, 1, 90 * MS); /* has left */
	assert_int_equal(cell("slow", 0, 2), 36 * MS);
	assert_int_equal(heat(), 66666 + 1);
	assert_non_null(strstr(
		json_string_value(json_array_get(json_object_get(panel("unsent"), "notes"), 1)),
		"1000 of 133,334 at most"));
}

/* Packets that had to make room are counted, and said where one of them may be the slow one. */
static void what_left_is_counted(void **state)
{
	enum { MOST = 65536, MORE = 10 };

	trigger = (struct trigger){
		.text = "latency > 10ms", .kind = TRIGGER_LATENCY, .threshold = 10e6};
	for (uint64_t id = 1; id <= MOST + MORE; id++)
		add(DIRECTION_RX, id, id);
	for (uint64_t id = 1; id <= MOST + MORE; id++)
		add(DIRECTION_TX, id, 2 * MS + id);
	assert_int_equal(heat(), MOST);
	assert_int_equal(rows("unsent"), 0);
	assert_non_null(strstr(
		json_string_value(json_array_get(json_object_get(panel("unsent"), "notes"), 1)),
		"0 of 10 at most"));
	assert_non_null(strstr(
		json_string_value(json_array_get(json_object_get(panel("slow"), "notes"), 0)),
		"of the earliest ones"));
}

/* Latency of a packet during which very many others come and go. */
static void a_slow_packet_beside_very_many(void **state)
{
	add(DIRECTION_RX, 1, 0);
	for (uint64_t id = 2; id <= 400000; id++) {
		add(DIRECTION_RX, id, id);
		add(DIRECTION_TX, id, id + 1000);
	}
	add(DIRECTION_TX, 1, 36 * MS);
	assert_int_equal(cell("slow", 0, 2), 36 * MS);
	assert_null(panel("unsent"));
}

/* An application that sends packets with other ids receives theirs again. */
static void ids_that_are_received_again(void **state)
{
	for (uint64_t k = 0; k < 400000; k++)
		add(DIRECTION_RX, k % 3 + 1, k);
	add(DIRECTION_TX, 1, MS);
	assert_int_equal(rows("slow"), 1);
	assert_int_equal(rows("unsent"), 2);
}

static void no_slow_packet_in_the_file(void **state)
{
	trigger = (struct trigger){
		.text = "latency > 10ms", .kind = TRIGGER_LATENCY, .threshold = 10e6};
	add(DIRECTION_RX, 1, MS);
	add(DIRECTION_TX, 1, 2 * MS);
	assert_int_equal(rows("slow"), 0);
	assert_non_null(strstr(
		json_string_value(json_array_get(json_object_get(panel("slow"), "notes"), 0)),
		"No packet of the file took as long"));
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, begin_passages, end_passages)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_slow_packet_has_its_frames),
		CASE(what_is_sent_again_counts_once),
		CASE(packets_without_ids_make_no_panel),
		CASE(what_was_not_sent_is_listed_in_order),
		CASE(reasons_are_those_of_the_application),
		CASE(those_above_the_threshold),
		CASE(of_very_many_the_slowest_stay),
		CASE(percentiles_are_those_of_a_column),
		CASE(ids_come_and_go),
		CASE(more_open_ones_than_have_a_place),
		CASE(latencies_after_very_many_open_ones),
		CASE(what_left_is_counted),
		CASE(a_slow_packet_beside_very_many),
		CASE(ids_that_are_received_again),
		CASE(no_slow_packet_in_the_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
