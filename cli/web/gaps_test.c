/* SPDX-License-Identifier: BSD-3-Clause */
/* Polling gaps of snapshots, each of which has those of some seconds. */
#include <stdio.h>
#include <string.h>

#include "base/test_util.h"
#include "base/util.h"
#include "common/test_now.h"
#include "gaps.h"

#define START (TEST_NOW_REAL_NS + NS_PER_S)

static struct history h;
static struct gaps g;
static struct ringtap_gap gaps[16];
static struct ringtap_thread_stats thread;
static struct ringtap_port_stats ports[1];
static struct ringtap_snapshot f;

static int begin(void **state)
{
	test_now_set(TEST_NOW_MONO_NS, TEST_NOW_REAL_NS);
	history_begin(&h, 0);
	memset(gaps, 0, sizeof(gaps));
	thread = (struct ringtap_thread_stats){
		.alive = true, .lcore = 3, .gaps = {gaps, sizeof(gaps[0])}};
	strcpy(ports[0].name, "p0");
	f = (struct ringtap_snapshot){.thread_count = 1,
		.port_count = 1,
		.threads = {&thread, sizeof(thread)},
		.ports = {ports, sizeof(ports[0])}};
	return 0;
}

static int end(void **state)
{
	gaps_free(&g);
	return 0;
}

static void snapshot(void)
{
	test_now_pass(NS_PER_S);
	history_step(&h);
	gaps_add(&g, &h, &f);
}

static void add_gap(uint64_t start_ns, uint64_t ns, uint32_t packets)
{
	gaps[thread.gap_count++] = (struct ringtap_gap){
		.start_ns = start_ns, .ns = ns, .packets = packets, .queue = 2};
}

static void a_gap_is_there_once(void **state)
{
	add_gap(START, 36000000, 0);
	snapshot();
	snapshot();
	snapshot();
	assert_int_equal(g.count, 1);
	assert_int_equal(gaps_at(&g, 0)->step, 0);
	assert_int_equal(gaps_at(&g, 0)->ns, 36000000);
	assert_true(gaps_at(&g, 0)->idle);
	assert_string_equal(gaps_at(&g, 0)->thread, "lcore 3");
	assert_string_equal(gaps_at(&g, 0)->text, "after a poll of p0, queue 2: 0 packets");
}

static void new_ones_are_of_their_step(void **state)
{
	add_gap(START, 1000, 32);
	snapshot();
	add_gap(START + NS_PER_S, 2000, 32);
	snapshot();
	assert_int_equal(g.count, 2);
	assert_int_equal(gaps_at(&g, 1)->step, 1);
	assert_false(gaps_at(&g, 1)->idle);
}

static void one_that_lasts_grows(void **state)
{
	add_gap(START, 100000000, 0);
	snapshot();
	gaps[0].ns = 1100000000;
	snapshot();
	snapshot();
	assert_int_equal(g.count, 2);
	assert_int_equal(gaps_at(&g, 1)->ns, 1100000000);
}

static void those_before_the_history_are_left_out(void **state)
{
	add_gap(TEST_NOW_REAL_NS - 1, 1000, 0);
	snapshot();
	assert_int_equal(g.count, 0);
}

static void an_unknown_port_has_no_text(void **state)
{
	add_gap(START, 1000, 0);
	gaps[0].port = RINGTAP_NO_INDEX;
	snapshot();
	assert_string_equal(gaps_at(&g, 0)->text, "");
}

static void the_oldest_are_forgotten(void **state)
{
	for (unsigned i = 0; i < GAPS_KEPT + 10; i++) {
		thread.gap_count = 0;
		add_gap(START + i, 1000, 0);
		gaps_add(&g, &h, &f);
	}
	assert_int_equal(gaps_first(&g), 10);
	assert_int_equal(gaps_at(&g, 10)->start_ns, START + 10);
	assert_int_equal(gaps_at(&g, g.count - 1)->start_ns, START + GAPS_KEPT + 9);
}

static void threads_of_one_name_have_their_own(void **state)
{
	thread.lcore = UINT32_MAX;
	thread.tid = 4712;
	strcpy(thread.name, "worker");
	add_gap(START, 1000, 0);
	snapshot();
	thread.tid = 4713;
	snapshot();
	assert_int_equal(g.count, 2);
	assert_string_equal(gaps_at(&g, 0)->thread, "thread worker (4712)");
	assert_string_equal(gaps_at(&g, 1)->thread, "thread worker (4713)");
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_gap_is_there_once),
		CASE(new_ones_are_of_their_step),
		CASE(one_that_lasts_grows),
		CASE(those_before_the_history_are_left_out),
		CASE(an_unknown_port_has_no_text),
		CASE(threads_of_one_name_have_their_own),
		CASE(the_oldest_are_forgotten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
