/* SPDX-License-Identifier: BSD-3-Clause */
/* Times of `ringtap record` by the clock, which the tests set: time passes while the fake reader
 * waits for packets. */
#include <glob.h>
#include <jansson.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/signals.h"
#include "base/test_util.h"
#include "base/util.h"
#include "cli/commands.h"
#include "common/now.h"
#include "common/test_now.h"
#include "cli/fake_reader.h"
#include "signals.h"

#define MS UINT64_C(1000000)

static const struct fake_run runs[] = {{0, 0, 100, 60}, {0, 1, 3, 1500}};
#define TOTAL 103u

static uint64_t begun;

/* 22:13:20 UTC on 2023-11-14, and after_ns. */
static void begin_at(uint64_t after_ns)
{
	test_now_set(TEST_NOW_MONO_NS, TEST_NOW_REAL_NS + after_ns);
	begun = rt_now_ns(CLOCK_MONOTONIC);
}

static uint64_t passed_ms(void)
{
	return (rt_now_ns(CLOCK_MONOTONIC) - begun) / MS;
}

static int set_up(void **state)
{
	setenv("TZ", "UTC", 1);
	fake = (struct fake){.apps = 1, .runs = runs, .run_count = 2, .wait_for_stop = true};
	test_folder_enter();
	begin_at(0);
	return 0;
}

static int tear_down(void **state)
{
	test_folder_leave();
	return 0;
}

static void record(const char *line)
{
	char copy[256];
	char *argv[32] = {"record", "-q"};
	int argc = 2;

	snprintf(copy, sizeof(copy), "%s", line);
	for (char *w = strtok(copy, " "); w; w = strtok(NULL, " "))
		argv[argc++] = w;
	argv[argc] = NULL;
	assert_int_equal(cmd_record.run(&cmd_record, argc, argv), STATUS_OK);
}

/* The files of -b, in order, and no other. */
static void assert_files(const char *const *names, size_t count)
{
	glob_t g;

	assert_int_equal(glob("c_*", 0, NULL, &g), 0);
	assert_int_equal(g.gl_pathc, count);
	for (size_t i = 0; i < count; i++)
		assert_string_equal(g.gl_pathv[i], names[i]);
	globfree(&g);
}

/* All but the first begin in the first quarter of a full second, also without packets. */
static void files_begin_with_the_interval(void **state)
{
	static const char *const names[] = {"c_00001_20231114221320.pcapng",
		"c_00002_20231114221321.pcapng", "c_00003_20231114221322.pcapng",
		"c_00004_20231114221323.pcapng"};

	fake.run_count = 0;
	begin_at(300 * MS);
	record("-w c.pcapng -b interval:1 -a files:4");
	assert_files(names, 4);
	assert_in_range(passed_ms(), 3700, 3950);
	assert_int_equal(test_blocks_read(names[3]).epb, 0);
}

/* It is a new interval, and it would be long until the old one ends. */
static void set_back(void *arg)
{
	test_now_step_real(-120 * (int64_t)NS_PER_S);
}

static void clock_that_is_set_back_begins_a_file(void **state)
{
	static const char *const names[] = {
		"c_00001_20231114221320.pcapng", "c_00002_20231114221121.pcapng"};

	test_now_after(1000 * MS, set_back, NULL);
	record("-w c.pcapng -b interval:60 -a files:2 -a duration:10");
	assert_files(names, 2);
	assert_int_equal(test_blocks_read(names[0]).epb, TOTAL);
}

static void files_of_a_duration(void **state)
{
	static const char *const names[] = {"c_00001_20231114221320.pcapng",
		"c_00002_20231114221320.pcapng", "c_00003_20231114221320.pcapng"};

	record("-w c.pcapng -b duration:0.2 -a files:3");
	assert_files(names, 3);
	assert_int_equal(passed_ms(), 600);
}

static void names_have_the_second_in_which_files_begin(void **state)
{
	static const char *const before[] = {"c_00001_20231114221320.pcapng"};
	static const char *const both[] = {before[0], "c_00001_20231114221321.pcapng"};

	begin_at(NS_PER_S - 1);
	record("-w c.pcapng -b packets:1000 -a packets:5");
	assert_files(before, 1);
	begin_at(NS_PER_S);
	record("-w c.pcapng -b packets:1000 -a packets:5");
	assert_files(both, 2);
}

static void duration_is_exact(void **state)
{
	static const struct {
		const char *line;
		uint64_t ms;
	} cases[] = {{"-w f -a duration:0.5", 500}, {"-w f -a duration:0.001", 1},
		{"-w f -a duration:61", 61000}, {"-w f -a duration:0.25 -b duration:9", 250}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		begin_at(0);
		record(cases[i].line);
		assert_int_equal(passed_ms(), cases[i].ms);
	}
	assert_int_equal(test_pcap_read("f").packets, TOTAL);
}

static void duration_is_in_the_summary(void **state)
{
	const char *text;

	test_stdout_begin();
	record("--json -w f -a duration:2.5");
	text = test_stdout_end();
	assert_non_null(strstr(text, "\"ended_by\": \"duration\""));
	assert_non_null(strstr(text, "\"duration_ns\": 2500000000"));
}

/* ---- what is on disk while it runs ---- */

static unsigned found;

static void count_packets(void *arg)
{
	found = test_pcap_read(arg).packets;
}

/* A recorder that is killed loses what came in the last quarter of a second. */
static void packets_are_written_within_a_quarter_of_a_second(void **state)
{
	static const char *const lines[] = {
		"-w f -a duration:5", "-w f --no-direct -a duration:5", "-w f -P -a duration:5"};

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		begin_at(0);
		found = 0;
		test_now_after(260 * MS, count_packets, "f");
		record(lines[i]);
		assert_int_equal(found, TOTAL);
	}
}

static unsigned isbs;

static void count_statistics(void *arg)
{
	isbs = test_blocks_read("f").isb;
}

/* For the counts of a capture that breaks off. */
static void statistics_are_written_every_ten_seconds(void **state)
{
	test_now_after(30600 * MS, count_statistics, NULL);
	record("-w f -a duration:35");
	assert_int_equal(isbs, 2 * 3);
	assert_int_equal(test_blocks_read("f").isb, 2 * 4);
}

static void signal_later(void *arg)
{
	raise(SIGINT);
}

static void signal_ends_a_wait_within_a_tick(void **state)
{
	test_now_after(700 * MS, signal_later, NULL);
	record("-w f");
	assert_in_range(passed_ms(), 700, 750);
	assert_true(test_blocks_read("f").ended[0]);
}

/* timeout(1) signals its child and then the group: packets of the buffer were discarded. */
static void one_wish_may_come_twice(void **state)
{
	signals_catch(NULL);
	raise(SIGTERM);
	raise(SIGTERM);
	test_now_pass(STOP_AGAIN_NS - 1);
	raise(SIGINT);
	assert_int_equal(signals_count(), 1);
	assert_false(signals_patience.give_up);
	test_now_pass(1);
	raise(SIGINT);
	assert_int_equal(signals_count(), 2);
	assert_true(signals_patience.give_up);
	signals_release();
}

#define timed(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

static json_t *panel_of(const json_t *document, const char *id)
{
	json_t *panel;
	size_t i;

	json_array_foreach(json_object_get(document, "panels"), i, panel)
	{
		const char *text = json_string_value(json_object_get(panel, "id"));

		if (text && !strcmp(text, id))
			return panel;
	}
	return NULL;
}

/* Packets of all curves of a panel of rates. */
static double packets_in(const json_t *panel)
{
	const json_t *edges = json_object_get(panel, "edges_ns"), *series, *value;
	double sum = 0;
	size_t i, k;

	json_array_foreach(json_object_get(panel, "series"), i, series)
	{
		json_array_foreach(json_object_get(series, "values"), k, value)
		{
			json_int_t from = json_integer_value(json_array_get(edges, k));
			json_int_t to = json_integer_value(json_array_get(edges, k + 1));

			assert_true(from < to);
			sum += json_number_value(value) * (double)(to - from) / NS_PER_S;
		}
	}
	return sum;
}

/* Samples become fewer as time passes; no count is missing. */
static void the_page_has_all_counts(void **state)
{
	static const char begin[] = "id=\"document\">";

	for (unsigned hours = 0; hours < 3; hours++) {
		json_t *document, *edges;
		char line[80];
		uint8_t *page, *from, *to;
		size_t len;

		fake.lost_later = 70;
		begin_at(0);
		snprintf(line, sizeof(line), "-w c.pcapng --html c.html -a duration:%u",
			hours * 3600 + 1);
		record(line);
		page = test_read("c.html", &len);
		from = memmem(page, len, begin, strlen(begin));
		assert_non_null(from);
		from += strlen(begin);
		to = memmem(from, len - (size_t)(from - page), "</script>", 9);
		assert_non_null(to);
		document = json_loadb((char *)from, (size_t)(to - from), 0, NULL);
		assert_non_null(document);
		free(page);
		edges = json_object_get(panel_of(document, "seen"), "edges_ns");
		assert_in_range(json_array_size(edges), hours ? 512 : 4, 1024);
		assert_int_equal(
			json_integer_value(json_array_get(edges, json_array_size(edges) - 1)),
			(hours * 3600 + 1) * NS_PER_S);
		assert_int_equal(lround(packets_in(panel_of(document, "seen"))), TOTAL + 70);
		assert_int_equal(lround(packets_in(panel_of(document, "lost"))), 70);
		json_decref(document);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		timed(files_begin_with_the_interval),
		timed(clock_that_is_set_back_begins_a_file),
		timed(files_of_a_duration),
		timed(names_have_the_second_in_which_files_begin),
		timed(duration_is_exact),
		timed(duration_is_in_the_summary),
		timed(packets_are_written_within_a_quarter_of_a_second),
		timed(statistics_are_written_every_ten_seconds),
		timed(signal_ends_a_wait_within_a_tick),
		timed(one_wish_may_come_twice),
		timed(the_page_has_all_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
