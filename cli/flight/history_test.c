/* SPDX-License-Identifier: BSD-3-Clause */
/* When conditions make incidents: levels, cooldowns and intervals; with a clock that is set. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/test_util.h"
#include "measure/fake_monitor.h"
#include "common/test_now.h"
#include "flight.h"
#include "conditions.h"
#include "history.h"

#define STEP_NS (NS_PER_S / 10) /* as the recorder checks */
#define MADE    64

static struct flight f;
static struct flight_config cfg;
static struct fake_app *app;

/* Incidents, instead of incident.c. */
static struct {
	uint64_t ns; /* since the beginning */
	const struct trigger *trigger;
	struct event event;
} made[MADE];
static unsigned made_count;

int incident_begin(struct flight *unused, const struct trigger *t, const struct event *e)
{
	assert_true(made_count < MADE);
	made[made_count].ns = rt_now_ns(CLOCK_MONOTONIC) - TEST_NOW_MONO_NS;
	made[made_count].trigger = t;
	made[made_count++].event = *e;
	return 0;
}

static int begin(void **state)
{
	const struct ringtap_monitor_options o = {.size = sizeof(o)};
	char why[64];

	test_now_set(TEST_NOW_MONO_NS, TEST_NOW_REAL_NS);
	fake_apps_begin();
	app = &fake_apps[0];
	memset(&cfg, 0, sizeof(cfg));
	memset(&f, 0, sizeof(f));
	made_count = 0;
	f.cfg = &cfg;
	f.app.name = (char *)app->name;
	return ringtap_monitor_open(&f.mon, "app", &o, why, sizeof(why));
}

static int end(void **state)
{
	history_free(&f);
	ringtap_monitor_close(f.mon);
	fake_apps_end();
	return 0;
}

static struct trigger *on(const char *text, uint64_t cooldown_ns)
{
	struct trigger *t = &cfg.triggers[cfg.trigger_count++];

	assert_int_equal(trigger_parse(t, text), 0);
	t->cooldown_ns = cooldown_ns;
	return t;
}

static void step_for(uint64_t ns)
{
	for (uint64_t end_ns = rt_now_ns(CLOCK_MONOTONIC) + ns;
		rt_now_ns(CLOCK_MONOTONIC) < end_ns;) {
		rt_sleep_ns(STEP_NS);
		assert_int_equal(conditions_step(&f), 0);
	}
}

/* Incidents at these tenths of seconds, and no others. */
static void assert_made(unsigned count, const unsigned *tenths)
{
	assert_int_equal(made_count, count);
	for (unsigned i = 0; i < count; i++)
		assert_int_equal(made[i].ns / STEP_NS, tenths[i]);
}
#define MADE_AT(...)                                                            \
	assert_made(sizeof((const unsigned[]){__VA_ARGS__}) / sizeof(unsigned), \
		(const unsigned[]){__VA_ARGS__})

/* ---- the history */

static void one_snapshot_a_second_is_kept(void **state)
{
	step_for(5 * NS_PER_S);
	assert_int_equal(f.history_count, 5);
	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(
			f.history[i]->taken_mono_ns, TEST_NOW_MONO_NS + STEP_NS + i * NS_PER_S);
	assert_int_equal(f.last->taken_mono_ns, TEST_NOW_MONO_NS + 5 * NS_PER_S);
}

static void the_oldest_give_way(void **state)
{
	step_for((FLIGHT_HISTORY + 10) * NS_PER_S);
	assert_int_equal(f.history_count, FLIGHT_HISTORY);
	assert_int_equal(f.history[0]->taken_mono_ns, TEST_NOW_MONO_NS + STEP_NS + 10 * NS_PER_S);
}

static void the_end_of_the_application_is_reported(void **state)
{
	step_for(NS_PER_S);
	fake_app_end(app);
	rt_sleep_ns(STEP_NS);
	assert_int_equal(conditions_step(&f), -EPIPE);
	assert_int_equal(f.last->taken_mono_ns, rt_now_ns(CLOCK_MONOTONIC));
}

static void damaged_statistics_are_no_end(void **state)
{
	step_for(NS_PER_S);
	app->read_error = -EBADMSG;
	assert_int_equal(conditions_step(&f), 0);
}

static void the_last_interval_of_a_length(void **state)
{
	struct span s;

	assert_false(history_last(&f, NS_PER_S, &s));
	step_for(4 * NS_PER_S);
	assert_true(history_last(&f, 2 * NS_PER_S, &s));
	assert_float_equal(s.seconds, 2, 1e-9);
	assert_ptr_equal(s.to, f.history[3]);
	assert_true(history_last(&f, 3 * NS_PER_S, &s));
	assert_false(history_last(&f, 4 * NS_PER_S, &s));
	/* Snapshots are some milliseconds off the second: 2 % are allowed. */
	assert_true(history_last(&f, 3060 * NS_PER_S / 1000, &s));
	assert_false(history_last(&f, 3070 * NS_PER_S / 1000, &s));
}

static void snapshots_around_an_incident(void **state)
{
	const uint64_t begin_ns = TEST_NOW_REAL_NS + STEP_NS;
	unsigned first, last;

	step_for(NS_PER_S);
	assert_false(history_around(&f, begin_ns, begin_ns, &first, &last));
	step_for(9 * NS_PER_S); /* readings 0 … 9 */
	assert_true(history_around(
		&f, begin_ns + 5 * NS_PER_S / 2, begin_ns + 9 * NS_PER_S / 2, &first, &last));
	assert_int_equal(first, 2);
	assert_int_equal(last, 5);
	assert_true(history_around(&f, 0, begin_ns, &first, &last));
	assert_int_equal(first, 0);
	assert_int_equal(last, 1);
	assert_true(history_around(
		&f, begin_ns + 100 * NS_PER_S, begin_ns + 200 * NS_PER_S, &first, &last));
	assert_int_equal(first, 8);
	assert_int_equal(last, 9);
}

static void the_history_reaches_to_an_end_within_a_second(void **state)
{
	step_for(NS_PER_S + 3 * STEP_NS); /* kept at 0.1 and 1.1 s */
	assert_int_equal(f.history_count, 2);
	conditions_reach(&f, TEST_NOW_REAL_NS + NS_PER_S);
	assert_int_equal(f.history_count, 2);
	rt_sleep_ns(STEP_NS);
	conditions_reach(&f, TEST_NOW_REAL_NS + 14 * STEP_NS);
	assert_int_equal(f.history_count, 3);
	assert_int_equal(f.history[2]->taken_ns, TEST_NOW_REAL_NS + 14 * STEP_NS);
}

/* ---- events and cooldowns */

/* 100 packets that a driver missed, at 0.5, 1.0, … s: each reading is an event. */
static void miss(struct fake_app *a, uint64_t ns)
{
	fake_forward(a, ns);
	a->s.ports[0].imissed = 100 * (ns / FAKE_READING_NS);
}

static void an_event_is_an_incident_after_each_cooldown(void **state)
{
	struct trigger *t = on("missed", 2 * NS_PER_S);
	char summary[FLIGHT_SUMMARY];

	app->work = miss;
	step_for(6 * NS_PER_S);
	MADE_AT(5, 25, 45);
	assert_int_equal(flight_state(&f, t)->suppressed, 9);
	f.made = 3;
	assert_string_equal(conditions_summary(&f, summary), "3, 9 more within --cooldown");
	assert_string_equal(made[0].event.where, "p0");
	assert_float_equal(made[0].event.value, 100, 1e-9);
	/* Between the readings of the driver. */
	assert_int_equal(made[1].event.from_ns, TEST_NOW_REAL_NS + 4 * FAKE_READING_NS);
	assert_int_equal(made[1].event.to_ns, TEST_NOW_REAL_NS + 5 * FAKE_READING_NS);
}

static void without_a_cooldown_each_event_is_one(void **state)
{
	struct trigger *t = on("missed > 99", 0);

	app->work = miss;
	step_for(2 * NS_PER_S);
	MADE_AT(5, 10, 15, 20);
	assert_int_equal(flight_state(&f, t)->suppressed, 0);
	assert_int_equal(conditions_step(&f), 0);
}

static void a_threshold_is_to_be_exceeded(void **state)
{
	on("missed > 100", 0);
	app->work = miss;
	step_for(2 * NS_PER_S);
	assert_made(0, NULL);
}

static void conditions_have_cooldowns_of_their_own(void **state)
{
	on("missed", 3600 * NS_PER_S);
	on("missed > 50", NS_PER_S);
	app->work = miss;
	step_for(5 * NS_PER_S / 2);
	MADE_AT(5, 5, 15, 25);
	assert_ptr_equal(made[0].trigger, &cfg.triggers[0]);
	assert_ptr_equal(made[3].trigger, &cfg.triggers[1]);
}

static void a_clock_that_is_set_does_not_end_a_cooldown(void **state)
{
	on("missed", 2 * NS_PER_S);
	app->work = miss;
	step_for(NS_PER_S);
	test_now_step_real(3600 * (int64_t)NS_PER_S);
	step_for(2 * NS_PER_S);
	MADE_AT(5, 25);
}

static void a_recorder_that_stops_makes_no_incidents(void **state)
{
	struct trigger *t = on("missed", 0);

	app->work = miss;
	f.stopping = true;
	step_for(2 * NS_PER_S);
	assert_made(0, NULL);
	assert_int_equal(flight_state(&f, t)->suppressed, 0);
}

static void what_was_before_the_first_snapshot_is_no_event(void **state)
{
	on("missed", 0);
	app->work = miss;
	test_now_pass(60 * NS_PER_S);
	assert_int_equal(conditions_step(&f), 0);
	assert_made(0, NULL);
}

/* ---- levels */

/* Free objects of the pool at a time, a row each from its second on. */
static const struct level {
	double second;
	uint32_t available;
} * levels;

static void follow_levels(struct fake_app *a, uint64_t ns)
{
	fake_forward(a, ns);
	for (const struct level *l = levels; l->second >= 0; l++)
		if ((double)ns / NS_PER_S >= l->second)
			a->s.pools[0].available = l->available;
}

static void a_level_makes_one_incident(void **state)
{
	static const struct level falls[] = {{0, 3000}, {1, 409}, {-1, 0}};

	on("pool < 10%", 0);
	levels = falls;
	app->work = follow_levels;
	step_for(20 * NS_PER_S);
	MADE_AT(10);
	assert_string_equal(made[0].event.where, "mb_pool_0");
	assert_float_equal(made[0].event.value, 100 * 409.0 / 4095, 1e-9);
}

static void a_level_that_is_not_reached(void **state)
{
	static const struct level falls[] = {{0, 3000}, {1, 410}, {-1, 0}};

	on("pool < 10%", 0);
	levels = falls;
	app->work = follow_levels;
	step_for(3 * NS_PER_S);
	assert_made(0, NULL);
}

static void a_level_that_is_met_again_is_another_incident(void **state)
{
	static const struct level moves[] = {{0, 3000}, {1, 100}, {2, 3000}, {4, 100}, {-1, 0}};

	on("pool < 512", 2 * NS_PER_S);
	levels = moves;
	app->work = follow_levels;
	step_for(6 * NS_PER_S);
	MADE_AT(10, 40);
}

static void a_level_that_comes_back_within_the_cooldown_waits(void **state)
{
	static const struct level moves[] = {{0, 3000}, {1, 100}, {2, 3000}, {3, 100}, {-1, 0}};
	struct trigger *t = on("pool < 512", 8 * NS_PER_S);

	levels = moves;
	app->work = follow_levels;
	step_for(20 * NS_PER_S);
	MADE_AT(10, 90);
	assert_int_equal(flight_state(&f, t)->suppressed, 0);
}

static void a_level_that_ends_within_the_cooldown_is_counted(void **state)
{
	static const struct level moves[] = {
		{0, 3000}, {1, 100}, {2, 3000}, {3, 100}, {4, 3000}, {-1, 0}};
	struct trigger *t = on("pool < 512", 8 * NS_PER_S);

	levels = moves;
	app->work = follow_levels;
	step_for(20 * NS_PER_S);
	MADE_AT(10);
	assert_int_equal(flight_state(&f, t)->suppressed, 1);
}

/* ---- intervals */

/* 1,500 packets a second that a port refuses, from the second 3 to the second 10. */
static void refuse(struct fake_app *a, uint64_t ns)
{
	uint64_t readings = ns / FAKE_READING_NS;

	fake_forward(a, ns);
	readings = readings < 6 ? 0 : readings > 20 ? 14 : readings - 6;
	a->s.ports[1].oerrors = readings * 1500 / 2;
}

static void a_rate_over_an_interval_is_one_event(void **state)
{
	on("errors > 1000/s over 2s", 0);
	app->work = refuse;
	step_for(20 * NS_PER_S);
	/* 2/3 of the interval suffice; it is compared once a second, at 0.1, 1.1, … s. */
	MADE_AT(51);
	assert_float_equal(made[0].event.value, 1500, 1e-6);
	assert_string_equal(made[0].event.where, "p1");
	assert_int_equal(made[0].event.to_ns - made[0].event.from_ns, 2 * NS_PER_S);
}

static void a_rate_that_is_not_exceeded_over_the_interval(void **state)
{
	on("errors > 1500/s over 2s", 0);
	app->work = refuse;
	step_for(20 * NS_PER_S);
	assert_made(0, NULL);
}

static void a_number_over_an_interval(void **state)
{
	on("errors > 4000 over 5s", 0);
	app->work = refuse;
	step_for(20 * NS_PER_S);
	MADE_AT(61);
	assert_float_equal(made[0].event.value, 4500, 1e-6);
}

/* One slow packet of 50: the bucket of 100 ms. */
static void one_is_slow(struct fake_app *a, uint64_t ns)
{
	uint64_t width, slow = 0;

	fake_forward(a, ns);
	while (ringtap_latency_low((uint32_t)slow, &width) < 100000000)
		slow++;
	memset(a->s.buckets[0], 0, ringtap_latency_buckets() * sizeof(uint64_t));
	a->s.buckets[0][500] = ns >= 3 * NS_PER_S / 2 ? 49 * 32 : 0;
	a->s.buckets[0][slow] = ns >= 3 * NS_PER_S / 2 ? 32 : 0;
	a->s.pairs[0].count = a->s.buckets[0][500] + a->s.buckets[0][slow];
}

/* Another condition's incident ends within the second, and the history reaches to its end: the
 * intervals stay those of whole seconds. */
static void an_incident_within_the_interval_hides_nothing(void **state)
{
	on("p99 > 10ms over 1s", 0);
	app->work = one_is_slow; /* at 1.5 s */
	step_for(16 * STEP_NS);
	conditions_reach(&f, TEST_NOW_REAL_NS + 16 * STEP_NS);
	assert_int_equal(f.history_count, 3);
	step_for(5 * NS_PER_S);
	MADE_AT(21);
}

static void no_interval_is_over_yet(void **state)
{
	on("errors > 1 over 10s", 0);
	app->work = refuse;
	step_for(8 * NS_PER_S);
	assert_made(0, NULL);
	step_for(3 * NS_PER_S);
	MADE_AT(101);
}

/* The application is stopped: the driver is not read, and nothing is known of the interval. */
static uint64_t stopped_ns, resumed_ns;

static void refuse_with_a_stop(struct fake_app *a, uint64_t ns)
{
	if (ns > stopped_ns && ns < resumed_ns)
		return;
	fake_forward(a, ns);
	a->s.ports[1].oerrors = ns / FAKE_READING_NS * 1500 / 2;
}

static void a_driver_that_is_not_read_changes_nothing(void **state)
{
	struct trigger *t = on("errors > 1000/s over 2s", 0);

	stopped_ns = 5 * NS_PER_S;
	resumed_ns = 10 * NS_PER_S;
	app->work = refuse_with_a_stop;
	step_for(20 * NS_PER_S);
	MADE_AT(21);
	assert_true(flight_state(&f, t)->holds);
}

static void percentiles_over_an_interval(void **state)
{
	on("p50 > 10ms over 1s", 0);
	on("p90 > 10ms over 1s", 0);
	on("p99 > 10ms over 1s", 0);
	on("p999 > 10ms over 1s", 0);
	app->work = one_is_slow;
	step_for(10 * NS_PER_S);
	MADE_AT(21, 21);
	assert_ptr_equal(made[0].trigger, &cfg.triggers[2]);
	assert_ptr_equal(made[1].trigger, &cfg.triggers[3]);
	assert_true(made[0].event.value > 98e6 && made[0].event.value < 104e6);
	assert_string_equal(made[0].event.where, "p1");
	assert_int_equal(made[0].event.to_ns - made[0].event.from_ns, NS_PER_S);
}

/* ---- the doctor */

static void a_verdict_is_a_level(void **state)
{
	static const struct level falls[] = {{0, 3000}, {3, 5}, {-1, 0}};

	on("doctor: pool_exhausted", 0);
	on("doctor: too_slow", 0);
	on("doctor", 0);
	levels = falls;
	app->work = follow_levels;
	step_for(20 * NS_PER_S);
	assert_int_equal(made_count, 2);
	assert_string_equal(made[0].event.where, "pool_exhausted: mb_pool_0");
	assert_string_equal(made[1].event.where, "pool_exhausted: mb_pool_0");
	assert_ptr_equal(made[0].trigger, &cfg.triggers[0]);
	assert_ptr_equal(made[1].trigger, &cfg.triggers[2]);
	/* The interval between two kept snapshots. */
	assert_int_equal(made[0].event.to_ns - made[0].event.from_ns, NS_PER_S);
	assert_in_range(made[0].ns, 3 * NS_PER_S, 5 * NS_PER_S);
}

/* 100 objects a second, more than descriptors and bursts explain. */
static void leak(struct fake_app *a, uint64_t ns)
{
	fake_forward(a, ns);
	a->s.pools[0].available = 2000 - (uint32_t)(ns / FAKE_READING_NS) * 50;
}

static void a_leak_is_found_over_the_minute(void **state)
{
	on("doctor: pool_grows", 3600 * NS_PER_S);
	app->work = leak;
	step_for(15 * NS_PER_S);
	assert_int_equal(made_count, 1);
	assert_string_equal(made[0].event.where, "pool_grows: mb_pool_0");
}

static void an_application_that_forwards_has_no_fault(void **state)
{
	on("doctor", 0);
	step_for(70 * NS_PER_S);
	assert_made(0, NULL);
}

static void a_judgement_covers_the_snapshots_given(void **state)
{
	struct examination e;
	struct diagnosis *d;

	step_for(10 * NS_PER_S);
	d = history_judge(&f, 3, 8, &e);
	assert_non_null(d);
	assert_float_equal(e.span.seconds, 5, 1e-9);
	assert_string_equal(verdict_names[d->verdict[0].id], "healthy");
	assert_non_null(strstr(d->verdict[0].evidence[0], "; nothing is known to be lost"));
	free(d);
	app->s.ports[0].ierrors = 3;
	step_for(NS_PER_S);
	d = history_judge(&f, 9, 10, &e);
	assert_non_null(strstr(d->verdict[0].evidence[0], "; 3 packets, too few for a fault, are"));
	free(d);
	/* A process that is stopped for a while does not sleep by itself, but looks like it. */
	app->s.gaps[0][0] = (struct ringtap_gap){
		.start_ns = rt_now_ns(CLOCK_REALTIME) - NS_PER_S / 3, .ns = NS_PER_S / 1000 * 393};
	app->s.threads[0].gap_count = 1;
	step_for(NS_PER_S);
	d = history_judge(&f, 10, 11, &e);
	assert_string_equal(verdict_names[d->verdict[0].id], "stalled");
	assert_non_null(strstr(d->verdict[0].evidence[2], "did not poll for 393 ms at "));
	free(d);
	f.history[10]->collectors &= ~(unsigned)RINGTAP_POLLS;
	d = history_judge(&f, 9, 10, &e);
	assert_string_equal(verdict_names[d->verdict[0].id], "not_counted");
	free(d);
}

static void lose(struct fake_app *a, uint64_t ns)
{
	fake_forward(a, ns);
	a->s.ports[0].imissed = ns / 1000;
}

/* With its end all ports are gone; what they lost until then stays known. */
static void an_end_hides_no_fault(void **state)
{
	struct examination e;
	struct diagnosis *d;

	app->work = lose;
	step_for(2 * NS_PER_S + 5 * STEP_NS);
	fake_app_end(app);
	for (unsigned k = 0; k < 2; k++)
		app->s.ports[k].gone = true;
	rt_sleep_ns(STEP_NS);
	assert_int_equal(conditions_step(&f), -EPIPE);
	history_keep_last(&f);
	assert_int_equal(f.history_count, 5);
	assert_int_equal(f.history[3]->taken_mono_ns, rt_now_ns(CLOCK_MONOTONIC) - STEP_NS);
	d = history_judge(&f, 2, 4, &e);
	assert_non_null(d);
	assert_ptr_equal(e.span.to, f.history[3]);
	assert_string_equal(grade_names[d->verdict[0].grade], "fault");
	free(d);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(one_snapshot_a_second_is_kept),
		CASE(the_oldest_give_way),
		CASE(the_end_of_the_application_is_reported),
		CASE(damaged_statistics_are_no_end),
		CASE(the_last_interval_of_a_length),
		CASE(snapshots_around_an_incident),
		CASE(the_history_reaches_to_an_end_within_a_second),
		CASE(an_event_is_an_incident_after_each_cooldown),
		CASE(without_a_cooldown_each_event_is_one),
		CASE(a_threshold_is_to_be_exceeded),
		CASE(conditions_have_cooldowns_of_their_own),
		CASE(a_clock_that_is_set_does_not_end_a_cooldown),
		CASE(a_recorder_that_stops_makes_no_incidents),
		CASE(what_was_before_the_first_snapshot_is_no_event),
		CASE(a_level_makes_one_incident),
		CASE(a_level_that_is_not_reached),
		CASE(a_level_that_is_met_again_is_another_incident),
		CASE(a_level_that_comes_back_within_the_cooldown_waits),
		CASE(a_level_that_ends_within_the_cooldown_is_counted),
		CASE(a_rate_over_an_interval_is_one_event),
		CASE(a_rate_that_is_not_exceeded_over_the_interval),
		CASE(a_number_over_an_interval),
		CASE(an_incident_within_the_interval_hides_nothing),
		CASE(no_interval_is_over_yet),
		CASE(a_driver_that_is_not_read_changes_nothing),
		CASE(percentiles_over_an_interval),
		CASE(a_verdict_is_a_level),
		CASE(a_leak_is_found_over_the_minute),
		CASE(an_application_that_forwards_has_no_fault),
		CASE(a_judgement_covers_the_snapshots_given),
		CASE(an_end_hides_no_fault),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
