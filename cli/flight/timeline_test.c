/* SPDX-License-Identifier: BSD-3-Clause */
/* trace.json: each gap and busy period of a window once, in whichever snapshots it is. */
#include <string.h>

#include "test_incident.h"
#include "timeline.h"

static unsigned count(const char *name)
{
	json_t *j = timeline_json(&incident, 0, f.history_count - 1), *e;
	unsigned n = 0;
	size_t i;

	json_array_foreach(json_object_get(j, "traceEvents"), i, e) n +=
		!strcmp(json_string_value(json_object_get(e, "name")), name);
	json_decref(j);
	return n;
}

static void the_event_and_the_rates(void **state)
{
	json_t *j, *e;
	size_t i;

	incident.steps[0][0] = 1000;
	j = timeline_json(&incident, 0, f.history_count - 1);
	json_array_foreach(json_object_get(j, "traceEvents"), i, e)
	{
		if (strcmp(json_string_value(json_object_get(e, "name")), "gap > 50us"))
			continue;
		assert_float_equal(json_number_value(json_object_get(e, "ts")), 2000000, 1e-3);
		assert_float_equal(json_number_value(json_object_get(e, "dur")), 61, 1e-3);
	}
	json_decref(j);
	assert_int_equal(count("gap > 50us"), 1);
	assert_int_equal(count("packets/s"), 364); /* 11 steps each */
	assert_int_equal(count("thread_name"), 1);
}

static void what_several_snapshots_have_is_one_event(void **state)
{
	for (unsigned i = 1; i <= SECONDS; i++) {
		gap_in(i, NS_PER_S / 2 + (i % 2) * 999, 5000000, false);
		burst_in(i, NS_PER_S / 2);
	}
	assert_int_equal(count("gap with work"), 1);
	assert_int_equal(count("busy period"), 1);
}

static void a_gap_that_lasts_is_shown_when_it_has_ended(void **state)
{
	gap_in(1, 9 * NS_PER_S / 10, NS_PER_S / 10, true);
	gap_in(2, 9 * NS_PER_S / 10, 11 * NS_PER_S / 10, true);
	gap_in(3, 9 * NS_PER_S / 10, 3 * NS_PER_S / 2, false);
	assert_int_equal(count("gap with work"), 1);
}

static void a_gap_that_lasts_until_the_end(void **state)
{
	gap_in(3, 29 * NS_PER_S / 10, NS_PER_S / 10, true);
	gap_in(4, 29 * NS_PER_S / 10, 11 * NS_PER_S / 10, true);
	assert_int_equal(count("gap with work"), 1);
}

/* The lists hold the worst of some 16 seconds: one that gave way to worse ones comes back when
 * those are too old. */
static void what_comes_back_is_one_event(void **state)
{
	gap_in(1, NS_PER_S / 2, 5000000, false);
	gap_in(4, NS_PER_S / 2, 5000000, false);
	burst_in(1, NS_PER_S / 2);
	burst_in(4, NS_PER_S / 2);
	assert_int_equal(count("gap with work"), 1);
	assert_int_equal(count("busy period"), 1);
}

static void what_the_first_snapshot_has_is_shown(void **state)
{
	incident.from_ns -= 10 * NS_PER_S;
	thread(0)->gap_count = 0;
	gap_in(0, 0, 5000000, false);
	burst_in(0, 0);
	assert_int_equal(count("gap with work"), 1);
	assert_int_equal(count("busy period"), 1);
}

static void what_lies_outside_of_the_window_is_left_out(void **state)
{
	incident.from_ns += NS_PER_S;
	gap_in(1, NS_PER_S / 2, 5000000, false);
	burst_in(1, NS_PER_S / 2);
	assert_int_equal(count("gap with work"), 0);
	assert_int_equal(count("busy period"), 0);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(the_event_and_the_rates),
		CASE(what_several_snapshots_have_is_one_event),
		CASE(a_gap_that_lasts_is_shown_when_it_has_ended),
		CASE(a_gap_that_lasts_until_the_end),
		CASE(what_comes_back_is_one_event),
		CASE(what_the_first_snapshot_has_is_shown),
		CASE(what_lies_outside_of_the_window_is_left_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
