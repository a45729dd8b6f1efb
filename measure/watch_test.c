/* SPDX-License-Identifier: BSD-3-Clause */
/* When applications are attached to and forgotten, and what is printed of those that are not; with
 * a clock that is set. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/signals.h"
#include "base/test_util.h"
#include "common/test_now.h"
#include "fake_monitor.h"
#include "watch.h"

static struct watch w;

static int begin(void **state)
{
	test_now_set(TEST_NOW_MONO_NS, TEST_NOW_REAL_NS);
	fake_apps_begin();
	w = (struct watch){.command = "top", .collectors = RINGTAP_POLLS, .latency_every = 1};
	watch_init(&w);
	return 0;
}

static int end(void **state)
{
	watch_free(&w);
	fake_apps_end();
	return fake_monitors ? -1 : 0;
}

/* As the thread of watch_start() does, once a second. */
static void refresh_for(unsigned seconds)
{
	for (unsigned i = 0; i < seconds; i++) {
		assert_int_equal(watch_refresh(&w), 0);
		rt_sleep_ns(NS_PER_S);
	}
}

static void assert_reason(size_t n, const char *text)
{
	char line[WATCH_REASON_LEN];

	if (!text) {
		assert_false(watch_reason(&w, n, line));
		return;
	}
	assert_true(watch_reason(&w, n, line));
	assert_string_equal(line, text);
}

/* ---- back-off */

/* The seconds at which attaching was tried. */
static void assert_attempts(const unsigned *seconds, size_t count, unsigned within)
{
	refresh_for(within);
	assert_int_equal(fake_apps[0].attempts, count);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(fake_apps[0].attempt_ns[i], seconds[i] * NS_PER_S);
}

static void failed_attempts_become_rare(void **state)
{
	const unsigned at[] = {0, 1, 3, 7, 15, 31, 63, 123, 183};

	fake_apps[0].error = -ECONNREFUSED;
	assert_attempts(at, sizeof(at) / sizeof(at[0]), 200);
}

static void those_that_do_not_answer_are_tried_after_ten_seconds(void **state)
{
	const unsigned at[] = {0, 10, 30, 70, 130, 190};

	fake_apps[0].error = -ETIMEDOUT;
	assert_attempts(at, sizeof(at) / sizeof(at[0]), 200);
}

static void stopped_ones_are_tried_after_ten_seconds(void **state)
{
	const unsigned at[] = {0, 10, 30};

	fake_apps[0].error = -EHOSTDOWN;
	assert_attempts(at, sizeof(at) / sizeof(at[0]), 60);
}

/* Its socket comes within the second. */
static void one_that_starts_is_tried_each_second(void **state)
{
	const unsigned at[] = {0, 1, 2, 3, 4};

	fake_apps[0].error = -ENOENT;
	assert_attempts(at, sizeof(at) / sizeof(at[0]), 5);
}

static void errors_without_the_probe(void **state, int error)
{
	fake_apps[0].error = error;
	refresh_for(1);
	assert_false(fake_apps[0].options.awake_only);
	for (unsigned i = 0; i < 9; i++) {
		refresh_for(1);
		/* 'ringtap attach' may have loaded it: this does not ask its telemetry. */
		assert_true(fake_apps[0].options.awake_only);
	}
	refresh_for(1);
	assert_false(fake_apps[0].options.awake_only);
	assert_int_equal(fake_apps[0].attempts, 11);
}

static void a_probe_that_is_loaded_later_is_found_at_once(void **state)
{
	errors_without_the_probe(state, -EPROTONOSUPPORT);
	fake_apps[0].error = 0;
	refresh_for(1);
	assert_true(fake_apps[0].attached);
	assert_true(fake_apps[0].options.awake_only);
}

static void a_detached_probe_is_looked_for_each_second(void **state)
{
	errors_without_the_probe(state, -EUNATCH);
}

static void success_ends_the_delay(void **state)
{
	fake_apps[0].error = -ECONNREFUSED;
	refresh_for(6); /* the next attempt is at 7 s */
	fake_apps[0].error = 0;
	refresh_for(1);
	assert_false(fake_apps[0].attached);
	refresh_for(1);
	assert_true(fake_apps[0].attached);
	assert_reason(0, NULL);
	refresh_for(10);
	assert_int_equal(fake_apps[0].attempts, 4);
}

/* ---- applications of other users */

static void other_users_have_a_second_in_each_round(void **state)
{
	for (unsigned i = 1; i < 3; i++)
		fake_app_add(i == 1 ? "slow@1" : "other@1");
	for (unsigned i = 1; i < 3; i++) {
		fake_apps[i].foreign = true;
		fake_apps[i].error = -ETIMEDOUT;
		fake_apps[i].attach_ns = NS_PER_S;
	}
	assert_int_equal(watch_refresh(&w), 0);
	assert_int_equal(fake_apps[0].options.timeout_ms, 0);
	assert_int_equal(fake_apps[1].options.timeout_ms, 1000);
	assert_int_equal(fake_apps[1].attempts, 1);
	assert_int_equal(fake_apps[2].attempts, 0);
	assert_int_equal(watch_refresh(&w), 0);
	assert_int_equal(fake_apps[2].attempts, 1);
}

static void those_of_root_are_first(void **state)
{
	struct fake_app *mine = fake_app_add("mine");

	fake_apps[0].foreign = true;
	fake_apps[0].attach_ns = mine->attach_ns = NS_PER_S;
	assert_int_equal(watch_refresh(&w), 0);
	assert_int_equal(mine->attempt_ns[0], 0);
	assert_int_equal(fake_apps[0].attempt_ns[0], NS_PER_S);
}

static void only_named_users_are_searched_without_names(void **state)
{
	w.by_user = true;
	assert_int_equal(watch_refresh(&w), 0);
	assert_true(fake_by_user);
	assert_int_equal(watch_name(&w, "app"), 0);
	assert_int_equal(watch_refresh(&w), 0);
	assert_false(fake_by_user);
}

/* ---- names */

static void a_name_selects_an_application_and_its_secondaries(void **state)
{
	struct fake_app *secondary = fake_app_add("app/4712"), *other = fake_app_add("other");

	secondary->secondary = true;
	secondary->primary = 0;
	assert_int_equal(watch_name(&w, "app"), 0);
	assert_int_equal(watch_name(&w, "app"), 0);
	assert_int_equal(w.name_count, 1);
	assert_int_equal(watch_refresh(&w), 0);
	assert_int_equal(w.count, 2);
	assert_true(secondary->attached);
	assert_false(other->attached);
	assert_true(w.list[0]->shared && w.list[1]->shared && w.list[1]->secondary);
}

static void a_process_id_is_a_name(void **state)
{
	fake_app_add("other");
	assert_int_equal(watch_name(&w, "4712"), 0);
	assert_int_equal(watch_refresh(&w), 0);
	assert_int_equal(w.count, 1);
	assert_string_equal(w.list[0]->name, "other");
}

static void more_names_than_there_is_room_for(void **state)
{
	static char names[WATCH_NAMES + 1][8];

	for (unsigned i = 0; i < WATCH_NAMES; i++) {
		snprintf(names[i], sizeof(names[i]), "a%u", i);
		assert_int_equal(watch_name(&w, names[i]), 0);
	}
	assert_int_equal(watch_name(&w, "one-more"), -EINVAL);
	assert_non_null(strstr(message_last(), "one-more: more than 64 applications"));
}

/* ---- what is missing, and why */

static void reasons(void **state)
{
	fake_apps[0].error = -EPROTONOSUPPORT;
	fake_app_add("busy")->error = -ETIMEDOUT;
	fake_apps[1].why = "it does not answer; it may be stopped";
	assert_int_equal(watch_name(&w, "app"), 0);
	assert_int_equal(watch_name(&w, "busy"), 0);
	assert_int_equal(watch_name(&w, "nowhere"), 0);
	assert_int_equal(watch_refresh(&w), 0);
	assert_reason(0, "app: without the probe; 'ringtap attach app' loads it");
	assert_reason(1, "busy: it does not answer; it may be stopped");
	assert_reason(2, "no application is called 'nowhere'; 'ringtap list' shows what there is");
	assert_reason(3, NULL);
	/* A word near to a name. */
	w.name_count--;
	free(w.advice[2]);
	w.advice[2] = NULL;
	assert_int_equal(watch_name(&w, "bsuy"), 0);
	assert_int_equal(watch_refresh(&w), 0);
	assert_reason(2, "no application is called 'bsuy'; did you mean 'busy'?");
}

static void ports_without_an_entry_are_a_reason(void **state)
{
	fake_apps[0].s.snapshot.ports_beyond = 3;
	assert_int_equal(watch_refresh(&w), 0);
	assert_reason(0, NULL);
	watch_step(&w);
	assert_reason(0,
		"app: ports without an entry: 3; entries of ports that went become free when the "
		"last monitor detaches");
}

/* Only while the collector is on. */
static void xstats_without_an_entry_are_a_reason(void **state)
{
	fake_apps[0].s.snapshot.xstats_beyond = 3;
	assert_int_equal(watch_refresh(&w), 0);
	watch_step(&w);
	assert_reason(0, NULL);
	fake_apps[0].s.snapshot.collectors |= RINGTAP_XSTATS;
	watch_step(&w);
	assert_reason(0,
		"app: xstats without an entry: 3; there are 512 entries for a port, and 2048 in "
		"all");
	fake_apps[0].s.snapshot.collectors = RINGTAP_DEVICES;
	fake_apps[0].s.snapshot.device_stats_beyond = 4;
	watch_step(&w);
	assert_reason(0, "app: statistics of devices without an entry: 4; there are 2048 entries");
}

/* An exporter waits: attaching may take longer than its first interval. */
static void ports_that_are_missing_are_named_when_there_is_a_snapshot(void **state)
{
	assert_int_equal(watch_name(&w, "app:nosuch"), 0);
	assert_int_equal(watch_name(&w, "app:p1"), 0);
	fake_apps[0].error = -ENOENT;
	assert_int_equal(watch_refresh(&w), 0);
	watch_step(&w);
	assert_int_equal(watch_check_ports(&w), STATUS_OK);
	fake_apps[0].error = 0;
	rt_sleep_ns(NS_PER_S);
	assert_int_equal(watch_refresh(&w), 0);
	watch_step(&w);
	assert_int_equal(watch_check_ports(&w), STATUS_FAILED);
	assert_string_equal(
		message_last(), "top: application 'app' has no port 'nosuch'; there is p0, p1");
	/* Once. */
	assert_int_equal(watch_check_ports(&w), STATUS_OK);
}

static void ports_that_are_missing_end_a_command_that_does_not_wait(void **state)
{
	fake_apps[0].s.ports[1].gone = true;
	assert_int_equal(watch_name(&w, "app:p1"), 0);
	assert_int_equal(watch_find(&w), STATUS_FAILED);
	assert_string_equal(message_last(), "top: application 'app' has no port 'p1'; there is p0");
}

static void no_application_at_all(void **state)
{
	fake_apps[0].absent = true;
	assert_int_equal(watch_refresh(&w), 0);
	watch_explain(&w);
	assert_string_equal(message_last(),
		"top: no running DPDK application found; run ringtap as its user or as root");
	w.by_user = true;
	watch_explain(&w);
	assert_non_null(strstr(message_last(), "as root, with --users for other users"));
	watch_explain_wait(&w);
	assert_string_equal(message_last(), "top: nothing to show yet; waiting for an application");
}

static void folders_that_cannot_be_read(void **state)
{
	fake_search_error = -EACCES;
	assert_int_equal(watch_find(&w), STATUS_FAILED);
	assert_string_equal(message_last(), "top: cannot find applications: Permission denied");
}

/* ---- the end of an application */

static void the_last_snapshot_of_one_that_ends_is_kept_until_the_next_search(void **state)
{
	struct pollfd p = {.fd = watch_fd(&w), .events = POLLIN};

	assert_int_equal(watch_refresh(&w), 0);
	watch_step(&w);
	assert_int_equal(watch_attached(&w), 1);
	assert_int_equal(poll(&p, 1, 0), 0);
	fake_app_end(&fake_apps[0]);
	assert_int_equal(poll(&p, 1, 0), 1);
	rt_sleep_ns(NS_PER_S);
	watch_ends(&w);
	assert_int_equal(poll(&p, 1, 0), 0);
	assert_int_equal(watch_attached(&w), 0);
	assert_reason(0, "app: the application has ended");
	assert_int_equal(w.list[0]->now->taken_mono_ns, TEST_NOW_MONO_NS + NS_PER_S);
	assert_int_equal(watch_refresh(&w), 0);
	assert_int_equal(w.count, 0);
	assert_int_equal(fake_monitors, 0);
}

static void one_that_ends_is_kept_until_its_interval_is_over(void **state)
{
	w.keep_ended = true;
	assert_int_equal(watch_refresh(&w), 0);
	watch_step(&w);
	watch_mark(&w);
	fake_app_end(&fake_apps[0]);
	watch_step(&w);
	assert_int_equal(watch_refresh(&w), 0);
	assert_int_equal(w.count, 1);
	assert_true(w.list[0]->ended);
	watch_mark(&w);
	assert_int_equal(watch_refresh(&w), 0);
	assert_int_equal(w.count, 0);
	w.keep_ended = false;
}

static void damaged_statistics_end_it(void **state)
{
	assert_int_equal(watch_refresh(&w), 0);
	fake_apps[0].read_error = -EBADMSG;
	watch_step(&w);
	assert_reason(0, "app: its statistics are broken");
	assert_int_equal(watch_attached(&w), 0);
}

/* Another one may have its name by then. */
static void the_next_one_of_the_name_is_attached_to(void **state)
{
	assert_int_equal(watch_refresh(&w), 0);
	fake_app_end(&fake_apps[0]);
	watch_step(&w);
	fake_apps[0].absent = false;
	fake_apps[0].read_error = 0;
	assert_int_equal(watch_refresh(&w), 0);
	watch_step(&w);
	assert_int_equal(watch_attached(&w), 1);
	assert_int_equal(fake_apps[0].attempts, 2);
}

static void one_that_was_never_attached_to_is_forgotten(void **state)
{
	fake_apps[0].error = -ECONNREFUSED;
	assert_int_equal(watch_refresh(&w), 0);
	assert_int_equal(w.count, 1);
	fake_apps[0].absent = true;
	assert_int_equal(watch_refresh(&w), 0);
	assert_int_equal(w.count, 0);
}

/* ---- intervals */

static void an_interval_begins_with_the_mark(void **state)
{
	const struct watched *a;

	assert_int_equal(watch_refresh(&w), 0);
	watch_step(&w);
	a = w.list[0];
	assert_ptr_equal(a->mark, a->now);
	for (unsigned i = 0; i < 3; i++) {
		rt_sleep_ns(NS_PER_S);
		watch_step(&w);
	}
	assert_int_equal(a->now->taken_mono_ns - a->mark->taken_mono_ns, 3 * NS_PER_S);
	watch_mark(&w);
	assert_ptr_equal(a->mark, a->now);
}

static uint64_t settling_ns(void)
{
	uint64_t begin_ns = rt_now_ns(CLOCK_MONOTONIC);

	assert_int_equal(watch_refresh(&w), 0);
	watch_step(&w);
	watch_settle(&w);
	return rt_now_ns(CLOCK_MONOTONIC) - begin_ns;
}

/* Drivers are read twice a second. */
static void settling_lasts_until_drivers_are_read_once_more(void **state)
{
	test_now_pass(NS_PER_S / 10);
	assert_in_range(settling_ns(), 2 * NS_PER_S / 5, 2 * NS_PER_S / 5 + NS_PER_S / 50);
	assert_true(ringtap_snapshot_port(w.list[0]->now, 0)->read_ns >
		    ringtap_snapshot_port(w.list[0]->mark, 0)->read_ns);
}

static void threads_without_a_reading_are_waited_for(void **state)
{
	fake_apps[0].s.snapshot.port_count = 0;
	fake_apps[0].s.snapshot.thread_count = 2;
	fake_apps[0].s.threads[1] = (struct ringtap_thread_stats){.tid = 1};
	assert_in_range(settling_ns(), 5 * NS_PER_S, 5 * NS_PER_S + NS_PER_S / 50);
	fake_apps[0].s.threads[1].read_ns = 1;
	assert_in_range(settling_ns(), NS_PER_S / 50, NS_PER_S / 50);
}

static void ports_that_are_gone_are_not_waited_for(void **state)
{
	fake_apps[0].s.ports[0].gone = fake_apps[0].s.ports[1].gone = true;
	test_now_pass(NS_PER_S / 10);
	assert_in_range(settling_ns(), NS_PER_S / 50, NS_PER_S / 50);
}

static void secondaries_read_no_drivers(void **state)
{
	fake_apps[0].secondary = true;
	test_now_pass(NS_PER_S / 10);
	assert_in_range(settling_ns(), NS_PER_S / 50, NS_PER_S / 50);
}

/* It never has a thread that polls. */
static void settling_ends_after_a_second(void **state)
{
	fake_apps[0].s.snapshot.thread_count = 0;
	assert_in_range(settling_ns(), NS_PER_S, NS_PER_S + NS_PER_S / 50);
}

/* Without it, rates of a short interval would be unknown. */
static void an_interval_has_second_readings(void **state)
{
	const struct watched *a;

	settling_ns();
	watch_mark(&w);
	rt_sleep_ns(NS_PER_S / 10);
	watch_step(&w);
	a = w.list[0];
	assert_true(ringtap_snapshot_thread(a->now, 0)->read_ns ==
		    ringtap_snapshot_thread(a->mark, 0)->read_ns);
	watch_complete(&w);
	assert_true(ringtap_snapshot_thread(a->now, 0)->read_ns >
		    ringtap_snapshot_thread(a->mark, 0)->read_ns);
	assert_true(ringtap_snapshot_port(a->now, 0)->read_ns >
		    ringtap_snapshot_port(a->mark, 0)->read_ns);
}

/* It is over by then, and nothing reads a stopped port. */
static void readings_that_do_not_come_are_not_waited_for(void **state)
{
	uint64_t before;

	settling_ns();
	fake_apps[0].s.ports[0].stopped_ns = fake_apps[0].s.ports[1].stopped_ns = 1;
	fake_apps[0].s.threads[0].alive = false;
	watch_step(&w);
	watch_mark(&w);
	before = rt_now_ns(CLOCK_MONOTONIC);
	watch_complete(&w);
	assert_int_equal(rt_now_ns(CLOCK_MONOTONIC), before);
}

static void collectors_are_switched(void **state)
{
	assert_int_equal(watch_refresh(&w), 0);
	assert_int_equal(fake_apps[0].options.collectors, RINGTAP_POLLS);
	watch_switch(&w, RINGTAP_POLLS | RINGTAP_LATENCY, 8);
	assert_int_equal(fake_apps[0].switches, 1);
	assert_int_equal(fake_apps[0].options.collectors, RINGTAP_POLLS | RINGTAP_LATENCY);
	assert_int_equal(fake_apps[0].options.latency_every, 8);
	watch_switch(&w, RINGTAP_POLLS | RINGTAP_LATENCY, 8);
	assert_int_equal(fake_apps[0].switches, 1);
	/* Later applications have them at once. */
	fake_app_add("later");
	assert_int_equal(watch_refresh(&w), 0);
	assert_int_equal(fake_apps[1].options.collectors, RINGTAP_POLLS | RINGTAP_LATENCY);
	assert_int_equal(fake_apps[1].switches, 0);
}

static void a_switch_that_fails_is_a_reason(void **state)
{
	assert_int_equal(watch_refresh(&w), 0);
	fake_apps[0].error = -ETIMEDOUT;
	fake_apps[0].why = "it does not answer";
	watch_switch(&w, RINGTAP_BUSY, 1);
	assert_reason(0, "app: it does not answer");
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(failed_attempts_become_rare),
		CASE(those_that_do_not_answer_are_tried_after_ten_seconds),
		CASE(stopped_ones_are_tried_after_ten_seconds),
		CASE(one_that_starts_is_tried_each_second),
		CASE(a_probe_that_is_loaded_later_is_found_at_once),
		CASE(a_detached_probe_is_looked_for_each_second),
		CASE(success_ends_the_delay),
		CASE(other_users_have_a_second_in_each_round),
		CASE(those_of_root_are_first),
		CASE(only_named_users_are_searched_without_names),
		CASE(a_name_selects_an_application_and_its_secondaries),
		CASE(a_process_id_is_a_name),
		CASE(more_names_than_there_is_room_for),
		CASE(reasons),
		CASE(ports_without_an_entry_are_a_reason),
		CASE(xstats_without_an_entry_are_a_reason),
		CASE(ports_that_are_missing_are_named_when_there_is_a_snapshot),
		CASE(ports_that_are_missing_end_a_command_that_does_not_wait),
		CASE(no_application_at_all),
		CASE(folders_that_cannot_be_read),
		CASE(the_last_snapshot_of_one_that_ends_is_kept_until_the_next_search),
		CASE(one_that_ends_is_kept_until_its_interval_is_over),
		CASE(damaged_statistics_end_it),
		CASE(the_next_one_of_the_name_is_attached_to),
		CASE(one_that_was_never_attached_to_is_forgotten),
		CASE(an_interval_begins_with_the_mark),
		CASE(settling_lasts_until_drivers_are_read_once_more),
		CASE(threads_without_a_reading_are_waited_for),
		CASE(ports_that_are_gone_are_not_waited_for),
		CASE(secondaries_read_no_drivers),
		CASE(settling_ends_after_a_second),
		CASE(an_interval_has_second_readings),
		CASE(readings_that_do_not_come_are_not_waited_for),
		CASE(collectors_are_switched),
		CASE(a_switch_that_fails_is_a_reason),
	};

	if (stop_catch())
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
