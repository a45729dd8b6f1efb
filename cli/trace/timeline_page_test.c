/* SPDX-License-Identifier: BSD-3-Clause */
/* Tracks of a timeline as lanes, rates and curves of a page. */
#include <string.h>

#include "base/test_util.h"
#include "timeline_page.h"

#define START UINT64_C(1700000000123456789)
#define END   (START + 10000)

static struct perfetto out;
static struct perfetto_track *process, *thread, *gaps, *ring, *pool;
static struct view view;

static struct perfetto_track *track(enum perfetto_kind kind, const char *name,
	const struct perfetto_track *parent, const char *group)
{
	return perfetto_track_new(&out, &(struct perfetto_place){.kind = kind,
						.name = name,
						.pid = 1,
						.tid = 2,
						.parent = parent,
						.group = group});
}

static int begin(void **state)
{
	static const char rings[] = "rings", pools[] = "pools";

	out = (struct perfetto){.start_ns = START, .page = timeline_page_new()};
	process = track(PERFETTO_PROCESS, "app", NULL, NULL);
	thread = track(PERFETTO_THREAD, "lcore 1", process, NULL);
	gaps = track(PERFETTO_SLICES, "polling gaps", thread, NULL);
	ring = track(PERFETTO_COUNTER, "ring a: used", process, rings);
	pool = track(PERFETTO_COUNTER, "mempool b: available", process, pools);
	view = (struct view){0};
	return out.page && process && thread && gaps && ring && pool ? 0 : -1;
}

static int end(void **state)
{
	json_decref(view.document);
	perfetto_track_free(process);
	perfetto_track_free(thread);
	perfetto_track_free(gaps);
	perfetto_track_free(ring);
	perfetto_track_free(pool);
	timeline_page_free(out.page);
	return 0;
}

static json_t *panel(size_t i)
{
	if (!view.document) {
		view_begin(&view, "trace", "test", START, END);
		timeline_page_view(out.page, &view, START, END);
	}
	return json_array_get(json_object_get(view.document, "panels"), i);
}

static void assert_json(const json_t *json, const char *expected)
{
	char *text = json_dumps(json, JSON_COMPACT);

	assert_string_equal(text, expected);
	free(text);
}

static void put(struct perfetto_track *t, enum perfetto_type type, uint64_t at,
	enum perfetto_look look, const char *name)
{
	struct perfetto_event e = {
		.type = type, .ns = START + at, .key = look + 1u, .look = look, .name = name};

	perfetto_argument(&e, PERFETTO_PACKETS, 32);
	perfetto_put(&out, t, &e);
}

static void set(struct perfetto_track *t, uint64_t at, int64_t value)
{
	perfetto_put(&out, t,
		&(struct perfetto_event){.type = PERFETTO_VALUE, .ns = START + at, .value = value});
}

static void bars_have_their_tracks_times_and_names(void **state)
{
	json_t *lanes;

	put(thread, PERFETTO_BEGIN, 100, PERFETTO_RECEIVED, "rx p0:0");
	put(thread, PERFETTO_INSTANT, 150, PERFETTO_SENT, "tx p1:0");
	put(thread, PERFETTO_END, 160, 0, NULL);
	put(thread, PERFETTO_BEGIN, 200, PERFETTO_RECEIVED, NULL); /* the name is known */
	put(gaps, PERFETTO_BEGIN, 50, PERFETTO_IDLE, "idle gap");
	put(gaps, PERFETTO_END, 90, 0, NULL);
	lanes = json_object_get(panel(1), "lanes");
	assert_int_equal(json_array_size(lanes), 2);
	assert_json(json_array_get(lanes, 0),
		"{\"name\":\"lcore 1\",\"intervals\":[[100,60,0,\"rx p0:0, 32 packets\"],"
		"[150,0,1,\"tx p1:0, 32 packets\"],[200,9800,0,\"rx p0:0, 32 packets\"]]}");
	assert_json(json_array_get(lanes, 1),
		"{\"name\":\"lcore 1, polling gaps\",\"intervals\":[[50,40,3,\"32 packets\"]]}");
	assert_int_equal(json_array_size(json_object_get(panel(1), "states")), PERFETTO_LOOKS);
}

static void arguments_are_words(void **state)
{
	struct perfetto_event e = {.type = PERFETTO_INSTANT,
		.ns = START + 5000,
		.key = 1,
		.look = PERFETTO_SENT,
		.name = "tx"};

	perfetto_argument(&e, PERFETTO_BYTES, 64);
	perfetto_argument(&e, PERFETTO_LOST_BEFORE, 7);
	perfetto_argument(&e, PERFETTO_TIMED, 1);
	perfetto_argument(&e, PERFETTO_MEAN_NS, 1500);
	perfetto_argument(&e, PERFETTO_MAX_NS, 2500);
	perfetto_argument(&e, PERFETTO_RECEIVED_NS, START + 1000);
	perfetto_argument(&e, PERFETTO_TID, 11);
	perfetto_argument(&e, PERFETTO_LASTS, 1);
	perfetto_put(&out, thread, &e);
	assert_json(json_array_get(
			    json_object_get(json_array_get(json_object_get(panel(1), "lanes"), 0),
				    "intervals"),
			    0),
		"[5000,0,1,\"tx, 64 bytes, 7 lost before by the trace, latency 1.5 us, at most 2.5 us, "
		"after 4 us, thread 11, it lasts\"]");
}

static void rates_are_the_packets_of_bursts(void **state)
{
	const json_t *series;

	put(thread, PERFETTO_INSTANT, 5, PERFETTO_RECEIVED, "rx");
	put(thread, PERFETTO_INSTANT, 6, PERFETTO_RECEIVED, "rx");
	put(thread, PERFETTO_INSTANT, 10000, PERFETTO_SENT, "tx");
	put(gaps, PERFETTO_BEGIN, 7, PERFETTO_WORK, "gap with work");
	series = json_object_get(panel(0), "series");
	assert_json(json_object_get(panel(0), "grid"),
		"{\"from_ns\":0,\"to_ns\":10001,\"step_ns\":11}");
	assert_json(json_object_get(json_array_get(series, 0), "values"), "[64,-909]");
	assert_json(json_object_get(json_array_get(series, 1), "values"), "[-909,32]");
}

static void counters_are_curves_of_their_group(void **state)
{
	const json_t *curve;

	set(ring, 100, 5);
	set(ring, 300, -8);
	set(pool, 200, 1);
	assert_string_equal(json_string_value(json_object_get(panel(2), "title")), "rings");
	assert_json(json_object_get(panel(2), "edges_ns"), "[100,300,10000]");
	curve = json_array_get(json_object_get(panel(2), "series"), 0);
	assert_json(json_object_get(curve, "values"), "[5,-8]");
	assert_string_equal(json_string_value(json_object_get(panel(3), "title")), "pools");
	assert_json(json_object_get(panel(3), "edges_ns"), "[200,10000]");
	assert_null(panel(4));
}

/* At the times of both; before its first value a curve is unknown. */
static void curves_of_a_group_share_their_times(void **state)
{
	static const char rings[] = "other rings";
	struct perfetto_track *a = track(PERFETTO_COUNTER, "a", process, rings);
	struct perfetto_track *b = track(PERFETTO_COUNTER, "b", process, rings);
	const json_t *series;

	set(a, 100, 1);
	set(b, 200, 2);
	set(a, 200, 3);
	set(a, 20000, 4); /* after the page */
	series = json_object_get(panel(2), "series");
	assert_json(json_object_get(panel(2), "edges_ns"), "[100,200,10000]");
	assert_json(json_object_get(json_array_get(series, 0), "values"), "[1,3]");
	assert_json(json_object_get(json_array_get(series, 1), "values"), "[null,2]");
	perfetto_track_free(a);
	perfetto_track_free(b);
}

/* The reading before the page began is that of its beginning; bursts then are not counted. */
static void what_was_before_its_beginning(void **state)
{
	set(ring, 100, 5);
	set(ring, 3000, 6);
	put(thread, PERFETTO_INSTANT, 100, PERFETTO_SENT, "tx");
	view_begin(&view, "trace", "test", START + 2000, END);
	timeline_page_view(out.page, &view, START + 2000, END);
	assert_json(json_object_get(panel(2), "edges_ns"), "[0,1000,8000]");
	assert_json(
		json_object_get(json_array_get(json_object_get(panel(2), "series"), 0), "values"),
		"[5,6]");
	assert_json(
		json_object_get(json_array_get(json_object_get(panel(0), "series"), 1), "values"),
		"[-889]");
}

static size_t bars_of(size_t lane)
{
	return json_array_size(json_object_get(
		json_array_get(json_object_get(panel(1), "lanes"), lane), "intervals"));
}

static void what_is_later_than_the_last_of_its_bars_is_not_on_a_full_page(void **state)
{
	for (unsigned i = 1; i < TIMELINE_BARS; i++)
		put(thread, PERFETTO_INSTANT, i % 1000 + 1, PERFETTO_SENT, "tx");
	assert_int_equal(timeline_page_full_ns(out.page), 0);
	put(thread, PERFETTO_INSTANT, 2000, PERFETTO_SENT, "tx");
	assert_int_equal(timeline_page_full_ns(out.page), START + 2000);
	put(thread, PERFETTO_INSTANT, 2001, PERFETTO_SENT, "tx");
	put(gaps, PERFETTO_BEGIN, 1900, PERFETTO_IDLE, "idle gap");
	put(gaps, PERFETTO_END, 2500, 0, NULL);
	put(gaps, PERFETTO_BEGIN, 2600, PERFETTO_IDLE, "idle gap");
	put(gaps, PERFETTO_END, 2700, 0, NULL);
	assert_int_equal(bars_of(0), TIMELINE_BARS);
	assert_int_equal(bars_of(1), 1);
}

/* Whatever comes. */
static void a_page_has_a_largest_size(void **state)
{
	for (unsigned i = 0; i < 3 * TIMELINE_BARS; i++)
		put(thread, PERFETTO_INSTANT, 1, PERFETTO_SENT, "tx");
	assert_int_equal(bars_of(0), 2 * TIMELINE_BARS);
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, begin, end)
	const struct CMUnitTest tests[] = {
		CASE(bars_have_their_tracks_times_and_names),
		CASE(arguments_are_words),
		CASE(rates_are_the_packets_of_bursts),
		CASE(counters_are_curves_of_their_group),
		CASE(curves_of_a_group_share_their_times),
		CASE(what_was_before_its_beginning),
		CASE(what_is_later_than_the_last_of_its_bars_is_not_on_a_full_page),
		CASE(a_page_has_a_largest_size),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
