/* SPDX-License-Identifier: BSD-3-Clause */
/* When the first rows of flows are there; with a clock that is set, and a capture that is made up.
 */
#include <stdio.h>
#include <string.h>

#include "base/signals.h"
#include "base/test_util.h"
#include "base/util.h"
#include "cli/top/flow_view.h"
#include "common/test_now.h"
#include "measure/fake_monitor.h"

static struct watch w;
static struct flow_rows rows;
static bool there; /* rows are */

/* ---- instead of flows/live.c */

int flows_live_start(struct flows_live **out, const struct flows_live_options *o)
{
	return -1;
}

void flows_live_stop(struct flows_live *f)
{
}

void flows_live_want(struct flows_live *f, bool wanted)
{
}

const struct flow_rows *flows_live_rows(struct flows_live *f, const char *dir)
{
	return there ? &rows : NULL;
}

void flows_live_release(struct flows_live *f)
{
}

bool flows_live_open(struct flows_live *f, const char *dir, const char *name)
{
	return false;
}

/* ---- */

static int begin(void **state)
{
	test_now_set(TEST_NOW_MONO_NS, TEST_NOW_REAL_NS);
	fake_apps_begin();
	w = (struct watch){.command = "top", .collectors = RINGTAP_POLLS, .latency_every = 1};
	watch_init(&w);
	there = false;
	rows = (struct flow_rows){.count = 0};
	return watch_refresh(&w);
}

static int end(void **state)
{
	watch_free(&w);
	fake_apps_end();
	return fake_monitors ? -1 : 0;
}

static void attached(void *arg)
{
	there = true;
}

static void interval_complete(void *arg)
{
	rows.sample = 8;
}

static void refused(void *arg)
{
	snprintf(rows.why, sizeof(rows.why), "not enough memory");
}

static double settling_s(void)
{
	uint64_t before = now_ns(CLOCK_MONOTONIC);

	watch_step(&w);
	flow_view_settle(&w, NULL);
	return (double)(now_ns(CLOCK_MONOTONIC) - before) / NS_PER_S;
}

/* Line 1 is about what is missing. */
static void assert_note(const char *text)
{
	char line[WATCH_REASON_LEN];

	assert_true(flow_view_note(&w, NULL, 0, line));
	assert_int_equal(flow_view_note(&w, NULL, 1, line), text != NULL);
	if (text)
		assert_string_equal(line, text);
}

/* Attaching alone took 12 s on a machine that was busy. */
static void the_first_complete_interval_is_waited_for(void **state)
{
	test_now_after(12 * NS_PER_S, attached, NULL);
	test_now_after(14 * NS_PER_S, interval_complete, NULL);
	assert_true(settling_s() >= 14);
	assert_int_equal(rows.sample, 8);
	assert_note(NULL);
}

static void a_reason_ends_the_wait(void **state)
{
	double s;

	test_now_after(NS_PER_S, attached, NULL);
	test_now_after(2 * NS_PER_S, refused, NULL);
	s = settling_s();
	assert_true(s >= 2 && s < 2.1);
	assert_note("no flows of 'app': not enough memory");
}

static void the_end_of_the_application_ends_the_wait(void **state)
{
	double s;

	test_now_after(3 * NS_PER_S, fake_app_end, &fake_apps[0]);
	s = settling_s();
	assert_true(s >= 3 && s < 3.1);
	assert_note(NULL);
}

static void the_wait_is_bounded_and_its_end_is_explained(void **state)
{
	double s = settling_s();

	assert_true(s >= 60 && s < 60.1);
	assert_note("no flows of 'app' yet: its first interval is not complete");
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(the_first_complete_interval_is_waited_for),
		CASE(a_reason_ends_the_wait),
		CASE(the_end_of_the_application_ends_the_wait),
		CASE(the_wait_is_bounded_and_its_end_is_explained),
	};

	if (stop_catch())
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
