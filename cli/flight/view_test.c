/* SPDX-License-Identifier: BSD-3-Clause */
/* The document of an incident's page: bars and steps are where they were, and what is unknown is
 * not 0. */
#include <errno.h>

#include "judge/verdict.h"
#include "packet_rows.h"
#include "web/page.h"
#include "test_view.h"
#include "view.h"

static json_t *intervals(void)
{
	json_t *lanes = json_object_get(panel("threads"), "lanes");

	assert_int_equal(json_array_size(lanes), 1);
	return json_object_get(json_array_get(lanes, 0), "intervals");
}

/* The name of the state of the only interval. */
static const char *state_of_gap(void)
{
	json_t *all = intervals();

	assert_int_equal(json_array_size(all), 1);
	return text(json_array_get(json_object_get(panel("threads"), "states"),
			    (size_t)number(json_array_get(all, 0), 2)),
		"name");
}

/* ---- threads */

static void a_gap_is_where_it_was(void **state)
{
	json_t *gap;

	gap_in(2, 1700 * MS + 123, 36 * MS, false);
	make();
	gap = json_array_get(intervals(), 0);
	assert_int_equal(number(gap, 0), 1700 * MS + 123);
	assert_int_equal(number(gap, 1), 36 * MS);
	assert_non_null(strstr(json_string_value(json_array_get(gap, 3)), "32 packets"));
}

static void a_lane_has_the_thread(void **state)
{
	make();
	assert_string_equal(
		text(json_array_get(json_object_get(panel("threads"), "lanes"), 0), "name"),
		"lcore 1 (dpdk-worker1, 4712)");
}

static void a_busy_period_is_low(void **state)
{
	json_t *states, *burst;

	burst_in(1, 500 * MS);
	make();
	burst = json_array_get(intervals(), 0);
	assert_int_equal(number(burst, 0), 500 * MS);
	assert_int_equal(number(burst, 1), 700000);
	states = json_object_get(panel("threads"), "states");
	assert_true(json_is_true(
		json_object_get(json_array_get(states, (size_t)number(burst, 2)), "low")));
}

static void what_several_snapshots_have_is_one_bar(void **state)
{
	for (unsigned i = 1; i <= SECONDS; i++)
		gap_in(i, 500 * MS, 5 * MS, false);
	make();
	assert_int_equal(json_array_size(intervals()), 1);
}

/* From this second on, the kernel's counters have that much more waiting or less running. */
static void kernel_from(unsigned second, uint64_t waited_ns, uint64_t not_ran_ns)
{
	for (unsigned i = second; i <= SECONDS; i++) {
		thread(i)->wait_ns += waited_ns;
		thread(i)->cpu_ns -= not_ran_ns;
	}
}

static void a_thread_that_waited(void **state)
{
	gap_in(2, 1700 * MS, 36 * MS, false);
	kernel_from(2, 35 * MS, 35 * MS);
	make();
	assert_string_equal(state_of_gap(), "gap: waited for its CPU");
	assert_non_null(strstr(json_string_value(json_array_get(json_array_get(intervals(), 0), 3)),
		"waited 35 ms"));
}

static void a_thread_that_slept(void **state)
{
	gap_in(2, 1700 * MS, 36 * MS, false);
	kernel_from(2, 0, 35 * MS);
	make();
	assert_string_equal(state_of_gap(), "gap: slept");
}

static void a_thread_that_ran(void **state)
{
	gap_in(2, 1700 * MS, 36 * MS, false);
	make();
	assert_string_equal(state_of_gap(), "gap: ran or interrupt");
}

static void a_gap_that_no_reading_ends(void **state)
{
	gap_in(4, 3990 * MS, 36 * MS, true);
	make();
	assert_string_equal(state_of_gap(), "gap");
}

/* The time of another task is not the cause of a short gap. */
static void a_short_gap_beside_a_long_one(void **state)
{
	json_t *all;

	gap_in(2, 1700 * MS, 36 * MS, false);
	gap_in(2, 1800 * MS, 1 * MS, false);
	kernel_from(2, 36 * MS, 36 * MS);
	make();
	all = intervals();
	assert_int_equal(json_array_size(all), 2);
	assert_int_equal(number(json_array_get(all, 0), 2), 0);
	assert_int_not_equal(number(json_array_get(all, 1), 2), 0);
}

static void no_collector_no_lanes(void **state)
{
	f.history[SECONDS]->collectors = RINGTAP_POLLS;
	make();
	assert_null(panel("threads"));
	assert_null(panel("latency"));
}

static void a_name_is_text(void **state)
{
	snprintf(thread(SECONDS)->name, sizeof(thread(SECONDS)->name), "<b>\x1b\xff");
	make();
	assert_string_equal(
		text(json_array_get(json_object_get(panel("threads"), "lanes"), 0), "name"),
		"lcore 1 (<b>??, 4712)");
}

/* ---- packets */

static void packets_in_steps(void **state)
{
	json_t *p, *grid, *values;

	incident.steps[0][700] = 5;
	incident.steps[0][701] = 6;
	incident.steps[1][3999] = 7;
	make();
	p = panel("rates");
	grid = json_object_get(p, "grid");
	assert_int_equal(json_integer_value(json_object_get(grid, "from_ns")), 0);
	assert_int_equal(json_integer_value(json_object_get(grid, "step_ns")), STEP_NS);
	assert_int_equal(json_integer_value(json_object_get(grid, "to_ns")), SECONDS * NS_PER_S);
	assert_int_equal(json_array_size(json_object_get(p, "series")), 2);
	values = json_object_get(json_array_get(json_object_get(p, "series"), 0), "values");
	assert_int_equal(json_array_size(values), 4);
	assert_int_equal(number(values, 0), -700);
	assert_int_equal(number(values, 1), 5);
	assert_int_equal(number(values, 2), 6);
	assert_int_equal(number(values, 3), -3298);
	values = json_object_get(json_array_get(json_object_get(p, "series"), 1), "values");
	assert_int_equal(number(values, 0), -3999);
	assert_int_equal(number(values, 1), 7);
}

static void lost_packets_have_a_curve(void **state)
{
	incident.lost = incident.steps[2][5] = 9;
	make();
	assert_int_equal(json_array_size(json_object_get(panel("rates"), "series")), 3);
}

static void add_packet(uint64_t at_ns, uint32_t length)
{
	const struct block b = {.ns = (int64_t)(TEST_NOW_REAL_NS + at_ns),
		.length = length,
		.queue = NO_QUEUE,
		.direction = DIRECTION_RX};
	const struct headers h = {0};

	packet_rows_add(incident.rows, &b, &h);
}

static void rows_are_those_nearest_to_the_event(void **state)
{
	json_t *rows;

	incident.rows = packet_rows_new(TEST_NOW_REAL_NS + 2 * NS_PER_S);
	for (uint32_t i = 0; i < PACKET_ROWS_MAX + 5; i++)
		add_packet(i, i);
	for (uint32_t i = 0; i < PACKET_ROWS_MAX + 5; i++)
		add_packet(2 * NS_PER_S + i, i);
	make();
	rows = json_object_get(panel("packets"), "rows");
	assert_int_equal(json_array_size(rows), 2 * PACKET_ROWS_MAX);
	assert_int_equal(number(json_array_get(rows, 0), 0), 6); /* the number of the frame */
	assert_int_equal(number(json_array_get(rows, 0), 1), 5);
	assert_int_equal(number(json_array_get(rows, PACKET_ROWS_MAX - 1), 0), PACKET_ROWS_MAX + 5);
	assert_int_equal(number(json_array_get(rows, PACKET_ROWS_MAX), 1), 2 * NS_PER_S);
	assert_int_equal(
		number(json_array_get(rows, 2 * PACKET_ROWS_MAX - 1), 0), 2 * PACKET_ROWS_MAX + 5);
	assert_true(json_is_null(json_array_get(json_array_get(rows, 0), 4)));
	assert_string_equal(
		json_string_value(json_array_get(json_object_get(panel("packets"), "notes"), 0)),
		"100,000 of 100,010 packets, those nearest to the event; all are in packets.pcapng.");
}

/* Each packet has a flow of its own. */
static void the_page_has_less_than_5_mb(void **state)
{
	FILE *page = tmpfile();
	json_t *rows;
	size_t n;

	assert_non_null(page);
	incident.rows = packet_rows_new(TEST_NOW_REAL_NS + 2 * NS_PER_S);
	for (uint32_t i = 0; i < 2 * PACKET_ROWS_MAX; i++) {
		const struct block b = {.ns = (int64_t)(TEST_NOW_REAL_NS + 1999950000 + i),
			.length = 1500,
			.queue = 1000,
			.direction = DIRECTION_RX};
		struct headers h = {.flags = HAS_MAC | HAS_IP, .version = 6, .protocol = 253};

		memset(h.src, 0xab, sizeof(h.src));
		memset(h.dst, 0xcd, sizeof(h.dst));
		memcpy(h.src, &i, sizeof(i));
		packet_rows_add(incident.rows, &b, &h);
	}
	make();
	rows = json_object_get(panel("packets"), "rows");
	n = json_array_size(rows);
	assert_in_range(n, 30000, 2 * PACKET_ROWS_MAX - 1);
	/* As many on either side: the event is in the middle. */
	assert_int_equal(number(json_array_get(rows, 0), 0), PACKET_ROWS_MAX - n / 2 + 1);
	assert_int_equal(number(json_array_get(rows, n - 1), 0), PACKET_ROWS_MAX + n / 2);
	assert_int_equal(web_page_write(json_incref(document), page), 0);
	assert_in_range(ftell(page), 4000000, 5000000);
	fclose(page);
}

static void all_rows_of_few_packets(void **state)
{
	incident.rows = packet_rows_new(TEST_NOW_REAL_NS + 2 * NS_PER_S);
	add_packet(1, 60);
	add_packet(3 * NS_PER_S, 61);
	make();
	assert_int_equal(json_array_size(json_object_get(panel("packets"), "rows")), 2);
	assert_null(json_object_get(panel("packets"), "notes"));
}

/* ---- the event, and time that is not there */

static void the_event_with_its_value(void **state)
{
	json_t *e;

	trigger = (struct trigger){.text = "gap > 50us", .kind = TRIGGER_GAP, .threshold = 50000};
	incident.event.value = 61000;
	snprintf(incident.event.where, sizeof(incident.event.where), "lcore 1");
	make();
	e = json_array_get(json_object_get(document, "events"), 0);
	assert_int_equal(json_integer_value(json_object_get(e, "from_ns")), 2 * NS_PER_S);
	assert_int_equal(json_integer_value(json_object_get(e, "to_ns")), 2 * NS_PER_S + 61000);
	assert_string_equal(text(e, "name"), "gap > 50us: 61 us, lcore 1");
	assert_int_equal(
		json_integer_value(json_object_get(document, "zero_ns")), 2 * NS_PER_S + 61000);
	assert_string_equal(text(find("facts", "name", "value"), "value"), "61 us");
	assert_string_equal(text(find("facts", "name", "threshold"), "value"), "50 us");
	assert_string_equal(text(find("facts", "name", "window"), "value"),
		"2 s before to 2 s after the event");
}

static void a_window_that_was_kept(void **state)
{
	make();
	assert_null(json_object_get(document, "missing"));
	assert_string_equal(text(find("facts", "name", "kept"), "value"), "all of it");
	/* A page may go to others: it has no folder of this machine. */
	assert_non_null(strstr(text(find("facts", "name", "recorder"), "value"), "view_test"));
	assert_null(strchr(text(find("facts", "name", "recorder"), "value"), '/'));
}

static void assert_missing(size_t n, uint64_t from_ns, uint64_t to_ns, const char *reason)
{
	json_t *m = json_array_get(json_object_get(document, "missing"), n);

	assert_int_equal(json_integer_value(json_object_get(m, "from_ns")), from_ns);
	assert_int_equal(json_integer_value(json_object_get(m, "to_ns")), to_ns);
	assert_non_null(strstr(text(m, "reason"), reason));
}

static void the_recorder_had_just_begun(void **state)
{
	f.start_ns = incident.from_ns + 300 * MS;
	make();
	assert_int_equal(json_array_size(json_object_get(document, "missing")), 1);
	assert_missing(0, 0, 300 * MS, "the recorder had just begun");
	assert_string_equal(
		text(find("facts", "name", "kept"), "value"), "all but the first 300 ms");
}

static void the_memory_was_too_small(void **state)
{
	f.start_ns = incident.from_ns - NS_PER_S;
	incident.since_ns = incident.from_ns + 300 * MS;
	make();
	assert_int_equal(json_array_size(json_object_get(document, "missing")), 1);
	assert_missing(0, 0, 300 * MS, "memory is too small");
}

static void both_at_once(void **state)
{
	f.start_ns = incident.from_ns + 300 * MS;
	incident.since_ns = incident.from_ns + 500 * MS;
	make();
	assert_missing(0, 0, 300 * MS, "just begun");
	assert_missing(1, 300 * MS, 500 * MS, "too small");
}

static void the_disk_was_full(void **state)
{
	incident.error = -ENOSPC;
	incident.last_ns = incident.from_ns + NS_PER_S;
	make();
	assert_missing(0, NS_PER_S, SECONDS * NS_PER_S - 1, "No space left");
}

/* ---- verdicts */

static void assert_step(size_t i, const char *part)
{
	json_t *next = find("findings", "title", "What to look at next");
	const char *step = json_string_value(json_array_get(json_object_get(next, "evidence"), i));

	assert_non_null(step);
	assert_non_null(strstr(step, part));
}

static void verdicts_and_what_to_do(void **state)
{
	static struct diagnosis d;
	struct verdict *v;
	json_t *f0;

	memset(&d, 0, sizeof(d));
	v = verdict_add(&d, VERDICT_PREEMPTED, GRADE_FAULT, 1, "isolate its CPU");
	verdict_add_evidence(v, "no CPU for %d ms", 36);
	trigger.kind = TRIGGER_GAP;
	document = incident_view(&incident, 0, f.history_count - 1, &d);
	f0 = json_array_get(json_object_get(document, "findings"), 0);
	assert_string_equal(text(f0, "grade"), "fault");
	assert_string_equal(text(f0, "advice"), "isolate its CPU");
	assert_string_equal(json_string_value(json_array_get(json_object_get(f0, "evidence"), 0)),
		"no CPU for 36 ms");
	assert_step(0, "name the thread, port or mempool to change");
	assert_step(2, "ringtap trace gaps --off-cpu");
}

/* A condition on mempools does not need counts of polls. */
static void advice_says_what_was_not_counted(void **state)
{
	static struct diagnosis d;

	memset(&d, 0, sizeof(d));
	verdict_add(&d, VERDICT_NOT_COUNTED, GRADE_NOTE, 1, "Count them");
	trigger.kind = TRIGGER_POOL;
	document = incident_view(&incident, 0, f.history_count - 1, &d);
	assert_step(0, "--collectors polls,busy,gaps,pools");
	assert_step(1, "See how the mempool fell");
	json_decref(document);
	memset(&d, 0, sizeof(d));
	document = incident_view(&incident, 0, f.history_count - 1, &d);
	assert_step(0, "See how the mempool fell");
}

static void no_snapshots(void **state)
{
	document = incident_view(&incident, 0, 0, NULL);
	assert_non_null(panel("rates"));
	assert_null(panel("threads"));
	assert_null(panel("losses"));
}

static void no_memory_for_packets(void **state)
{
	for (int k = 0; k < INCIDENT_CURVES; k++) {
		free(incident.steps[k]);
		incident.steps[k] = NULL;
	}
	make();
	assert_null(panel("rates"));
	assert_null(panel("packets"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_gap_is_where_it_was),
		CASE(a_lane_has_the_thread),
		CASE(a_busy_period_is_low),
		CASE(what_several_snapshots_have_is_one_bar),
		CASE(a_thread_that_waited),
		CASE(a_thread_that_slept),
		CASE(a_thread_that_ran),
		CASE(a_gap_that_no_reading_ends),
		CASE(a_short_gap_beside_a_long_one),
		CASE(no_collector_no_lanes),
		CASE(a_name_is_text),
		CASE(packets_in_steps),
		CASE(lost_packets_have_a_curve),
		CASE(rows_are_those_nearest_to_the_event),
		CASE(the_page_has_less_than_5_mb),
		CASE(all_rows_of_few_packets),
		CASE(the_event_with_its_value),
		CASE(a_window_that_was_kept),
		CASE(the_recorder_had_just_begun),
		CASE(the_memory_was_too_small),
		CASE(both_at_once),
		CASE(the_disk_was_full),
		CASE(verdicts_and_what_to_do),
		CASE(advice_says_what_was_not_counted),
		CASE(no_snapshots),
		CASE(no_memory_for_packets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
