/* SPDX-License-Identifier: BSD-3-Clause */
/* Latencies out of snapshots. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/stats.h"
#include "latency.h"

/* Fontconfig keeps what it has read until the end. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
	return "leak:libfontconfig";
}

static struct ringtap_port_stats ports[3] = {
	{.name = "a", .port_id = 0}, {.name = "b", .port_id = 1}, {.name = "c", .port_id = 7}};
static struct ringtap_pair_stats pairs[4], no_pairs[4];
static uint64_t buckets[4][RT_STAT_BUCKETS];
static struct one_app app;
static struct ringtap_snapshot f, first;
static struct latency l;
static struct latency_moments moments;

static int set_up(void **state)
{
	memset(buckets, 0, sizeof(buckets));
	memset(pairs, 0, sizeof(pairs));
	memset(no_pairs, 0, sizeof(no_pairs));
	app = (struct one_app){0};
	first = (struct ringtap_snapshot){.pairs = {no_pairs, sizeof(no_pairs[0])}};
	f = (struct ringtap_snapshot){.tsc_hz = 2000000000,
		.port_count = 3,
		.ports = {ports, sizeof(ports[0])},
		.pairs = {pairs, sizeof(pairs[0])}};
	return 0;
}

static int tear_down(void **state)
{
	latency_free(&l);
	l = (struct latency){0};
	return 0;
}

/* count packets of as many cycles each, as a thread's pair. */
static struct ringtap_pair_stats *add(uint32_t rx, uint32_t tx, uint64_t count, uint64_t cycles)
{
	uint32_t i = f.pair_count++;

	buckets[i][rt_stat_bucket(cycles)] = count;
	pairs[i] = (struct ringtap_pair_stats){.rx_port = rx,
		.tx_port = tx,
		.count = count,
		.sum = count * cycles,
		.min = cycles,
		.max = cycles,
		.bucket = buckets[i],
		.tx_queue = RINGTAP_NO_INDEX,
		.bytes_to = UINT32_MAX};
	return &pairs[i];
}

static void threads_of_a_pair_are_one(void **state)
{
	add(0, 1, 60, 100);
	add(1, 0, 5, 7);
	add(0, 1, 40, 1000);
	assert_int_equal(latency_sum(&l, BY_PORT, &app, &first, &f), 0);
	assert_int_equal(l.pair_count, 2);
	assert_string_equal(l.pairs[0].from, "a");
	assert_string_equal(l.pairs[0].to, "b");
	assert_int_equal(l.pairs[0].count, 100);
	assert_int_equal(l.pairs[0].sum, 46000);
	assert_int_equal(l.pairs[0].min, 100);
	assert_int_equal(l.pairs[0].max, 1000);
	assert_true(l.pairs[0].exact);
	/* Percentiles do not leave minimum and maximum, though buckets do. */
	assert_true(l.pairs[0].quantile[P50] >= 100 && l.pairs[0].quantile[P50] <= 101);
	assert_true(l.pairs[0].quantile[P999] >= 992 && l.pairs[0].quantile[P999] <= 1000);
	assert_int_equal(l.timed, 105);
	assert_int_equal(latency_timed(&app, &first, &f), 105);
	assert_true(l.ns_per_cycle == 0.5);
}

static void only_ports_that_were_asked_for(void **state)
{
	add(0, 1, 1, 100);
	add(1, 2, 2, 100);
	add(0, 0, 4, 100);
	app = (struct one_app){.ports = {"7", "b"}, .port_count = 2};
	assert_int_equal(latency_sum(&l, BY_PORT, &app, &first, &f), 0);
	assert_int_equal(l.pair_count, 2);
	assert_int_equal(l.timed, 3);
	assert_null(one_app_missing(&app, &f));
	app.ports[1] = "1x";
	assert_string_equal(one_app_missing(&app, &f), "1x");
}

static void inferred_times_stay_apart(void **state)
{
	add(0, 1, 4, 900)->inferred = 1;
	add(0, 1, 3, 50);
	add(0, 1, 2, 70);
	add(0, 1, 1, 800)->inferred = 1;
	assert_int_equal(latency_sum(&l, BY_PORT, &app, &first, &f), 0);
	assert_int_equal(l.pair_count, 2);
	assert_false(l.pairs[0].inferred);
	assert_int_equal(l.pairs[0].count, 5);
	assert_int_equal(l.pairs[0].max, 70);
	assert_true(l.pairs[1].inferred);
	assert_int_equal(l.pairs[1].count, 5);
	assert_int_equal(l.pairs[1].min, 800);
}

static void what_was_not_timed_is_the_sending_ports(void **state)
{
	struct ringtap_pair_stats *p = add(RINGTAP_NO_INDEX, 1, 0, 0);

	p->unstamped = 5;
	p->shared = 1;
	add(0, 1, 3, 50)->unstamped = 2;
	add(RINGTAP_NO_INDEX, 2, 0, 0)->shared = 9;
	assert_int_equal(latency_sum(&l, BY_PORT, &app, &first, &f), 0);
	assert_int_equal(l.pair_count, 1);
	assert_int_equal(l.untimed_count, 2);
	assert_string_equal(l.untimed[0].port, "b");
	assert_int_equal(l.untimed[0].unstamped, 7);
	assert_int_equal(l.untimed[0].shared, 1);
	assert_int_equal(l.untimed[1].shared, 9);
}

static void extremes_from_before_are_not_ours(void **state)
{
	struct ringtap_pair_stats *p = add(0, 1, 10, 5000);

	p->min = 3;
	p->max = 900000;
	first.pair_count = 1;
	no_pairs[0].count = 77;
	assert_int_equal(latency_sum(&l, BY_PORT, &app, &first, &f), 0);
	assert_false(l.pairs[0].exact);
	assert_in_range(l.pairs[0].min, 4950, 5050);
	assert_in_range(l.pairs[0].max, 4950, 5050);
}

static json_t *view(void)
{
	const struct measure_options o = {.command = "latency"};
	const struct measure m = {.options = &o, .app = {.name = "app\xff"}, .last = &f};

	latency_free(&l);
	assert_int_equal(latency_sum(&l, BY_PORT, &app, &first, &f), 0);
	return latency_view(&l, &m, &moments);
}

static json_t *panel(json_t *document, const char *id)
{
	json_t *p;
	size_t i;

	json_array_foreach(json_object_get(document, "panels"), i,
		p) if (!strcmp(json_string_value(json_object_get(p, "id")), id)) return p;
	return NULL;
}

static void the_document_has_all_packets(void **state)
{
	json_t *document, *values, *v, *edges;
	json_int_t sum = 0;
	size_t i;

	add(0, 1, 10, 1000);
	add(0, 1, 30, 5000);
	document = view();
	values = json_object_get(
		json_array_get(json_object_get(panel(document, "spread"), "series"), 0), "values");
	json_array_foreach(values, i, v) sum += json_integer_value(v);
	assert_int_equal(sum, 40);
	edges = json_object_get(panel(document, "spread"), "edges");
	assert_int_equal(json_array_size(edges), json_array_size(values) + 1);
	assert_true(json_integer_value(json_array_get(values, 0)) > 0);
	assert_int_equal(json_array_size(json_object_get(panel(document, "spread"), "marks")),
		LATENCY_QUANTILES);
	v = json_array_get(json_object_get(panel(document, "pairs"), "rows"), 0);
	assert_string_equal(json_string_value(json_array_get(v, 0)), "a > b");
	assert_int_equal(json_integer_value(json_array_get(v, 1)), 40);
	json_decref(document);
}

/* Whatever the statistics are, there is a document, and its edges are above 0. */
static void documents_of_hardly_anything(void **state)
{
	for (int i = 0; i < 4; i++) {
		json_t *document = view();

		assert_int_equal(!!panel(document, "spread"), i > 0);
		if (i)
			assert_true(json_number_value(json_array_get(
					    json_object_get(panel(document, "spread"), "edges"),
					    0)) > 0);
		json_decref(document);
		/* A single packet; of no time; of the longest time. */
		add(0, 1, 1, i == 0 ? 1000 : i == 1 ? 0 : UINT64_MAX);
		strcpy(ports[1].name, "b\xc3\x28");
	}
	strcpy(ports[1].name, "b");
}

static void assert_parts(enum latency_by by, const char *const parts[2], uint64_t of_first)
{
	char text[LATENCY_PART_LEN];

	latency_free(&l);
	assert_int_equal(latency_sum(&l, by, &app, &first, &f), 0);
	assert_int_equal(l.pair_count, 2);
	for (uint32_t i = 0; i < 2; i++)
		assert_string_equal(latency_part(text, &l, &l.pairs[i]), parts[i]);
	assert_int_equal(l.pairs[0].count, of_first);
}

static void parts_of_a_pair(void **state)
{
	struct ringtap_thread_stats threads[2] = {
		{.name = "w1", .tid = 11, .lcore = 1}, {.name = "w2", .tid = 12, .lcore = 2}};
	struct ringtap_pair_stats *p;

	f.thread_count = 2;
	f.threads = (struct ringtap_array){threads, sizeof(threads[0])};
	for (unsigned i = 0; i < 4; i++) {
		p = add(0, 1, 1 + i, 100);
		p->thread = i / 2;
		p->tx_queue = i % 2;
		p->bytes_from = i % 2 ? 65 : 0;
		p->bytes_to = i % 2 ? 127 : 64;
	}
	assert_parts(BY_THREAD, (const char *[]){", lcore 1 (w1, 11)", ", lcore 2 (w2, 12)"}, 3);
	assert_parts(BY_QUEUE, (const char *[]){", queue 0", ", queue 1"}, 4);
	assert_parts(BY_SIZE, (const char *[]){", up to 64 bytes", ", 65 to 127 bytes"}, 4);
	pairs[1].bytes_from = pairs[3].bytes_from = 1519;
	pairs[1].bytes_to = pairs[3].bytes_to = UINT32_MAX;
	assert_parts(BY_SIZE, (const char *[]){", up to 64 bytes", ", 1519 bytes or more"}, 4);
	latency_free(&l);
	assert_int_equal(latency_sum(&l, BY_PORT, &app, &first, &f), 0);
	assert_int_equal(l.pair_count, 1);
	assert_int_equal(l.pairs[0].count, 10);
}

static void few_packets_are_marked(void **state)
{
	static const struct {
		uint64_t packets;
		bool few[LATENCY_QUANTILES];
	} cases[] = {
		{19, {true, true, true, true}},
		{20, {false, true, true, true}},
		{99, {false, true, true, true}},
		{100, {false, false, true, true}},
		{999, {false, false, true, true}},
		{1000, {false, false, false, true}},
		{9999, {false, false, false, true}},
		{10000, {false, false, false, false}},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		for (int q = 0; q < LATENCY_QUANTILES; q++)
			assert_int_equal(
				latency_few(&(struct latency_pair){.count = cases[i].packets}, q),
				cases[i].few[q]);
}

/* count packets more of a pair of the snapshot, after ns. */
static int next(struct latency_clock *c, struct latency *out, unsigned pair, uint64_t count,
	uint64_t cycles, uint64_t ns)
{
	buckets[pair][rt_stat_bucket(cycles)] += count;
	pairs[pair].count += count;
	pairs[pair].sum += count * cycles;
	f.taken_ns += ns;
	return latency_clock_next(c, out, BY_PORT, &app, &first, &f);
}

#define MS UINT64_C(1000000)

static void intervals_of_a_measurement(void **state)
{
	struct latency_clock c = {.interval_ns = 100 * MS};
	struct measure m = {.last = &f};
	struct latency out;

	/* Earlier counts are not in it. */
	add(0, 1, 1000, 77);
	add(1, 0, 0, 0);
	first = f;
	assert_int_equal(next(&c, &out, 0, 10, 500, 0), 0);
	assert_int_equal(next(&c, &out, 0, 5, 1000, 100 * MS), 1);
	assert_int_equal(out.pair_count, 1);
	assert_int_equal(out.pairs[0].count, 5);
	assert_in_range(out.pairs[0].min, 990, 1010);
	assert_int_equal(out.to_ns - out.from_ns, 100 * MS);
	latency_free(&out);
	/* An interval that was missed is part of the next one. */
	assert_int_equal(next(&c, &out, 1, 3, 200, 250 * MS), 1);
	assert_int_equal(out.pair_count, 1);
	assert_int_equal(out.pairs[0].rx_port, 1);
	assert_int_equal(out.timed, 3);
	latency_free(&out);
	assert_int_equal(next(&c, &out, 0, 1, 200, 40 * MS), 0);
	/* The end: the difference to the beginning. */
	f.interval_ns = f.taken_ns - first.taken_ns;
	pairs[0].count -= 1010;
	buckets[0][rt_stat_bucket(77)] = 0;
	buckets[0][rt_stat_bucket(500)] = 0;
	assert_int_equal(latency_clock_end(&c, &out, BY_PORT, &m), 1);
	assert_int_equal(out.timed, 1);
	assert_int_equal(out.to_ns - out.from_ns, 40 * MS);
	latency_free(&out);
	assert_int_equal(latency_clock_end(&c, &out, BY_PORT, &m), 0);
	latency_clock_free(&c);
}

static void moments_become_longer(void **state)
{
	json_t *document, *heat;
	uint64_t packets = 0;

	add(0, 1, 2, 1000);
	f.taken_ns = 1000 * MS;
	assert_int_equal(latency_sum(&l, BY_PORT, &app, &first, &f), 0);
	moments.clock.interval_ns = 100 * MS;
	for (unsigned i = 0; i < 1000; i++) {
		l.from_ns = i * MS;
		l.to_ns = (i + 1) * MS;
		assert_int_equal(latency_moments_add(&moments, &l), 0);
	}
	assert_in_range(moments.count, 120, 240);
	assert_true(moments.clock.interval_ns >= 400 * MS);
	for (uint32_t i = 0; i < moments.count; i++) {
		packets += moments.list[i].bucket[rt_stat_bucket(1000)];
		assert_int_equal(moments.list[i].from_ns, i ? moments.list[i - 1].to_ns : 0);
	}
	assert_int_equal(packets, 2000);
	document = view();
	heat = panel(document, "heat");
	assert_int_equal(json_array_size(json_object_get(heat, "counts")), moments.count);
	assert_int_equal(json_array_size(json_object_get(heat, "edges_ns")), moments.count + 1);
	assert_non_null(panel(document, "percentiles"));
	assert_non_null(
		strstr(json_string_value(json_array_get(json_object_get(document, "notes"), 0)),
			"2 packets are too few for p50, p90, p99, p99.9"));
	json_decref(document);
	latency_moments_free(&moments);
	moments = (struct latency_moments){0};
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(threads_of_a_pair_are_one),
		TEST(only_ports_that_were_asked_for),
		TEST(inferred_times_stay_apart),
		TEST(what_was_not_timed_is_the_sending_ports),
		TEST(extremes_from_before_are_not_ours),
		TEST(the_document_has_all_packets),
		TEST(documents_of_hardly_anything),
		TEST(parts_of_a_pair),
		TEST(few_packets_are_marked),
		TEST(intervals_of_a_measurement),
		TEST(moments_become_longer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
