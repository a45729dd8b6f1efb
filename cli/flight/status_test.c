/* SPDX-License-Identifier: BSD-3-Clause */
/* Answers of a recorder: packets that it keeps, its conditions, and clients that it has no
 * descriptor for; with a clock that is set. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/test_command.h"
#include "base/test_util.h"
#include "base/util.h"
#include "measure/fake_monitor.h"
#include "common/test_now.h"
#include "flight.h"
#include "conditions.h"
#include "history.h"
#include "status.h"

static struct flight f;
static struct flight_config cfg;
static char home[64];

/* ---- instead of the reader's: a capture of p0 and p1 */

static struct ringtap_kept kept;
static uint64_t captured[2], lost;
static unsigned ports = 2;
static int window_error;

int ringtap_capture_window(
	struct ringtap_capture *cap, uint64_t from_ns, uint64_t to_ns, struct ringtap_capture **out)
{
	*out = cap;
	return window_error;
}

void ringtap_capture_close(struct ringtap_capture *cap)
{
}

int ringtap_capture_kept(struct ringtap_capture *cap, struct ringtap_kept *out)
{
	*out = kept;
	return 0;
}

unsigned ringtap_capture_interface_count(const struct ringtap_capture *cap)
{
	return ports;
}

int ringtap_capture_interface(
	const struct ringtap_capture *cap, unsigned i, struct ringtap_interface *out)
{
	snprintf(out->name, sizeof(out->name), "p%u", i);
	return 0;
}

/* One for each direction of each port. */
unsigned ringtap_capture_tap_count(const struct ringtap_capture *cap)
{
	return 2 * ports;
}

int ringtap_capture_tap(const struct ringtap_capture *cap, unsigned i, struct ringtap_tap *out)
{
	out->interface = i / 2;
	out->counts.captured = captured[i / 2] / 2;
	out->counts.bytes = 50 * captured[i / 2];
	out->counts.lost[RINGTAP_LOST_WAIT] = lost;
	out->counts.not_sampled = 2 * lost;
	return 0;
}

/* ---- the recorder */

static int begin(void **state)
{
	test_now_set(TEST_NOW_MONO_NS, TEST_NOW_REAL_NS);
	fake_apps_begin();
	strcpy(home, "/tmp/ringtap-status-XXXXXX");
	if (!mkdtemp(home))
		return -1;
	memset(&f, 0, sizeof(f));
	memset(&cfg, 0, sizeof(cfg));
	memset(captured, 0, sizeof(captured));
	lost = 0;
	ports = 2;
	window_error = 0;
	kept = (struct ringtap_kept){.bytes = 1000, .buffer_size = 16 << 20};
	cfg.folder = "/var/lib/x";
	f.cfg = &cfg;
	f.start_ns = TEST_NOW_REAL_NS;
	f.app.name = (char *)"app";
	f.app.dir = home;
	return status_open(&f);
}

static int end(void **state)
{
	status_close(&f);
	history_free(&f);
	fake_apps_end();
	return rmdir(home);
}

static int connect_there(void)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	snprintf(a.sun_path, sizeof(a.sun_path), "%s/ringtap-flight-%d", home, (int)getpid());
	assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	return fd;
}

static char *received(int fd)
{
	static char text[65536];
	size_t len = 0;
	ssize_t n;

	while ((n = recv(fd, text + len, sizeof(text) - 1 - len, 0)) > 0)
		len += (size_t)n;
	text[len] = '\0';
	close(fd);
	return text;
}

/* Its answer. The caller decrefs. */
static json_t *ask(void)
{
	int fd = connect_there();
	json_t *j;

	assert_true(status_fd(&f) >= 0);
	status_answer(&f);
	j = json_loads(received(fd), 0, NULL);
	assert_non_null(j);
	return j;
}

static void assert_number(json_t *j, const char *key, double value)
{
	assert_float_equal(json_number_value(json_object_get(j, key)), value, 1e-9);
}

static double of_port(json_t *j, size_t i, const char *key)
{
	return json_number_value(
		json_object_get(json_array_get(json_object_get(j, "ports"), i), key));
}

/* p0 captures 100 packets a second, p1 10. */
static void go_on(unsigned seconds)
{
	for (unsigned i = 0; i < 10 * seconds; i++) {
		test_now_pass(NS_PER_S / 10);
		captured[0] += 10;
		captured[1] += 1;
		status_step(&f);
	}
}

/* ---- what is kept */

static void all_that_was_captured_is_kept_at_first(void **state)
{
	json_t *j;

	status_step(&f);
	go_on(10);
	j = ask();
	assert_number(j, "kept_packets", 1100);
	assert_number(j, "kept_ns", 10e9);
	assert_number(j, "kept_bytes", 1000);
	assert_number(j, "buffer_bytes", 16 << 20);
	assert_float_equal(of_port(j, 0, "packets"), 1000, 0);
	assert_float_equal(of_port(j, 0, "bytes"), 100000, 0);
	assert_float_equal(of_port(j, 1, "packets"), 100, 0);
	json_decref(j);
}

static void packets_that_rolled_over_are_not_counted(void **state)
{
	json_t *j;

	status_step(&f);
	go_on(10);
	kept.since_ns = TEST_NOW_REAL_NS + 15 * NS_PER_S / 2;
	j = ask();
	/* Between two readings of the counters in proportion. */
	assert_number(j, "kept_packets", 275);
	assert_number(j, "kept_ns", 2.5e9);
	assert_float_equal(of_port(j, 0, "packets"), 250, 0);
	assert_float_equal(of_port(j, 1, "packets"), 25, 0);
	json_decref(j);
}

static void a_port_that_appeared_later(void **state)
{
	json_t *j;

	ports = 1;
	status_step(&f);
	go_on(5);
	ports = 2;
	captured[1] = 0;
	go_on(5);
	kept.since_ns = TEST_NOW_REAL_NS + 2 * NS_PER_S;
	j = ask();
	assert_float_equal(of_port(j, 0, "packets"), 800, 0);
	assert_float_equal(of_port(j, 1, "packets"), 50, 0);
	json_decref(j);
}

/* An hour has more seconds than readings that are kept. */
static void an_hour_of_readings_is_thinned_out(void **state)
{
	json_t *j;

	status_step(&f);
	go_on(3600);
	kept.since_ns = TEST_NOW_REAL_NS + 1800 * NS_PER_S;
	j = ask();
	assert_float_equal(of_port(j, 0, "packets"), 180000, 100);
	kept.since_ns = TEST_NOW_REAL_NS + 3599 * NS_PER_S;
	json_decref(j);
	j = ask();
	assert_float_equal(of_port(j, 0, "packets"), 100, 10);
	json_decref(j);
}

static void losses_and_incidents(void **state)
{
	json_t *j, *recent;

	lost = 3;
	f.failed = 1;
	f.incomplete = 2;
	f.missing_ns = 5;
	f.incident_lost = 6;
	f.incident_count = 7;
	for (f.finished = 0; f.finished < FLIGHT_RECENT + 4; f.finished++) {
		struct finished *d = &f.recent[f.finished % FLIGHT_RECENT];

		d->packets = f.finished;
		snprintf(d->name, sizeof(d->name), "incident %u", (unsigned)f.finished);
	}
	j = ask();
	assert_number(j, "lost", 4 * 3);
	assert_number(j, "not_sampled", 2 * 4 * 3);
	assert_number(j, "failed", 1);
	assert_number(j, "incomplete", 2);
	assert_number(j, "missing_ns", 5);
	assert_number(j, "incident_lost", 6);
	assert_number(j, "writing", 7);
	assert_string_equal(
		json_string_value(json_object_get(json_object_get(j, "application"), "name")),
		"app");
	assert_string_equal(json_string_value(json_object_get(j, "folder")), "/var/lib/x");
	assert_number(j, "pid", getpid());
	recent = json_object_get(j, "recent");
	assert_int_equal(json_array_size(recent), FLIGHT_RECENT);
	assert_string_equal(json_string_value(json_object_get(json_array_get(recent, 0), "name")),
		"incident 4");
	json_decref(j);
}

/* ---- conditions */

static void on(const char *text)
{
	struct trigger *t = &cfg.triggers[cfg.trigger_count++];

	assert_int_equal(trigger_parse(t, text), 0);
	t->name = "n";
	t->before_ns = 2 * NS_PER_S;
	t->after_ns = NS_PER_S / 2;
}

static void watch_for(unsigned seconds)
{
	const struct ringtap_monitor_options o = {.size = sizeof(o)};
	char why[64];

	if (!f.mon)
		assert_int_equal(ringtap_monitor_open(&f.mon, "app", &o, why, sizeof(why)), 0);
	for (unsigned i = 0; i < 10 * seconds; i++) {
		test_now_pass(NS_PER_S / 10);
		assert_int_equal(conditions_step(&f), 0);
	}
}

/* Incidents are not of interest here. */
int incident_begin(struct flight *unused, const struct trigger *t, const struct event *e)
{
	flight_state(&f, t)->made++;
	return 0;
}

static void assert_condition(
	unsigned i, const char *value, const char *limit, double share, const char *where)
{
	json_t *j = ask(), *c = json_array_get(json_object_get(j, "conditions"), i);
	json_t *s = json_object_get(c, "threshold_share");
	const char *got = json_string_value(json_object_get(c, "value"));

	if (!value)
		assert_null(got);
	else
		assert_string_equal(got, value);
	if (limit)
		assert_string_equal(json_string_value(json_object_get(c, "threshold")), limit);
	if (where)
		assert_string_equal(json_string_value(json_object_get(c, "where")), where);
	if (share < 0)
		assert_true(json_is_null(s));
	else
		assert_float_equal(json_real_value(s), share, 1e-6);
	assert_number(c, "before_ns", 2e9);
	assert_number(c, "after_ns", 5e8);
	json_decref(j);
}

static void values_and_distances(void **state)
{
	on("pool < 1%");
	on("missed");
	on("missed > 10");
	on("exit");
	on("missed > 10/s over 2s");
	watch_for(1);
	assert_condition(4, NULL, "10 packets/s", -1, NULL); /* no interval is over */
	watch_for(3);
	fake_apps[0].s.pools[0].available = 82; /* 2 % */
	watch_for(1);
	assert_condition(0, "2 %", "1 %", 4095 / 8200.0, "mb_pool_0");
	assert_condition(1, "0 packets", "0 packets", -1, "p0");
	assert_condition(2, "0 packets", "10 packets", 0, "p0");
	assert_condition(3, NULL, NULL, -1, NULL);
	assert_condition(4, "0 packets/s", "10 packets/s", 0, "p0");
	ringtap_monitor_close(f.mon);
}

static void times_are_written_as_in_conditions(void **state)
{
	struct fake_stats *s = &fake_apps[0].s;

	on("gap > 50us");
	watch_for(2);
	s->threads[0].gap_count = 1;
	s->gaps[0][0] = (struct ringtap_gap){
		.start_ns = rt_now_ns(CLOCK_REALTIME), .ns = 61234, .packets = 1};
	watch_for(1);
	assert_condition(0, "61.2 us", "50 us", 61234 / 50000.0, "lcore 1 (dpdk-worker1, 4712)");
	ringtap_monitor_close(f.mon);
}

/* Full for one sample, and empty again before the snapshot. */
static void a_ring_has_the_level_of_its_fullest_sample(void **state)
{
	struct ringtap_ring_stats *r = &fake_apps[0].s.rings[0];

	on("ring rx_to_worker > 80%");
	on("ring other > 80%");
	watch_for(2);
	r->samples += 2;
	r->used = r->recent[0] = 3;
	r->recent[1] = 1000;
	watch_for(1);
	assert_condition(0, "98 %", "80 %", 100000 / 1023.0 / 80, "rx_to_worker");
	assert_condition(1, NULL, "80 %", -1, NULL);
	assert_int_equal(f.states[0].made, 1);
	assert_int_equal(f.states[1].made, 0);
	r->samples++;
	r->recent[0] = 1000; /* full again */
	watch_for(1);
	assert_int_equal(f.states[0].made, 2);
	ringtap_monitor_close(f.mon);
}

static void an_xstat_that_grows(void **state)
{
	struct ringtap_xstat_stats *x = &fake_apps[0].s.xstats[0];

	strcpy(x->name, "rx_good_bytes");
	x->port = 1;
	x->read_ns = NS_PER_S;
	fake_apps[0].s.snapshot.xstat_count = 1;
	on("xstat rx_good_bytes > 10G/s");
	on("xstat rx_good_bytes > 5G");
	on("xstat rx_good_bytes > 4G/s over 2s");
	on("xstat other > 1");
	watch_for(4);
	assert_condition(0, NULL, "10000000000/s", -1, NULL); /* not read again */
	x->read_ns += NS_PER_S / 2;
	x->value += 6000000000;
	watch_for(1);
	assert_condition(0, "12000000000/s", "10000000000/s", 1.2, "p1");
	assert_condition(1, "6000000000", "5000000000", 1.2, "p1");
	assert_condition(2, "12000000000/s", "4000000000/s", 3, "p1");
	assert_condition(3, NULL, "1", -1, NULL);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(f.states[i].made, i < 3);
	x->read_ns += NS_PER_S;
	x->value += 6000000000; /* less than 10G/s; in 2 s still more than 4G/s: no new incident */
	watch_for(1);
	assert_int_equal(f.states[0].made, 1);
	assert_int_equal(f.states[1].made, 2);
	assert_int_equal(f.states[2].made, 1);
	ringtap_monitor_close(f.mon);
}

static void names_of_rings_that_are_not_there_yet(void **state)
{
	struct test_output o;

	on("ring rx_to_worker > 80%");
	on("ring > 80%");
	on("ring rx_to_wroker > 80%");
	on("ring zz > 80%");
	on("xstat zz > 80");
	on("device dma0 zz > 80");
	watch_for(1);
	test_output_begin();
	conditions_warn(&f);
	test_output_end(&o);
	assert_string_equal(o.err,
		"ringtap: flight: --on 'ring rx_to_wroker > 80%': 'app' has no ring of this name, "
		"so this waits for one; did you mean 'rx_to_worker'?\n"
		"ringtap: flight: --on 'ring zz > 80%': 'app' has no ring of this name, so this "
		"waits for one; 'ringtap top app --view rings' lists them\n"
		"ringtap: flight: --on 'xstat zz > 80': 'app' has no xstat of this name, so this "
		"waits for one; 'ringtap top app --view xstats' lists them\n"
		"ringtap: flight: --on 'device dma0 zz > 80': 'app' has no device with this "
		"statistic, so this waits for one; 'ringtap top app --view devices' lists them\n");
	test_output_free(&o);
	ringtap_monitor_close(f.mon);
}

static void nothing_is_known_before_the_first_second(void **state)
{
	on("pool < 1%");
	assert_condition(0, NULL, "1 %", -1, NULL);
}

/* ---- clients */

static void a_failed_reading_answers_nothing(void **state)
{
	int fd = connect_there();

	window_error = -EMFILE;
	status_answer(&f);
	assert_string_equal(received(fd), "");
}

/* The client stays in the queue, which would be readable all the time. */
static void without_a_descriptor_it_rests_for_a_second(void **state)
{
	struct rlimit old, few;
	int fd = connect_there(), next;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	few = old;
	next = open("/dev/null", O_RDONLY);
	close(next);
	few.rlim_cur = (rlim_t)next;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	status_answer(&f);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	assert_int_equal(status_fd(&f), -1);
	test_now_pass(NS_PER_S - 1);
	assert_int_equal(status_fd(&f), -1);
	status_answer(&f);
	assert_int_equal(recv(fd, &(char){0}, 1, MSG_DONTWAIT), -1);
	test_now_pass(1);
	assert_true(status_fd(&f) >= 0);
	status_answer(&f);
	assert_non_null(strstr(received(fd), "\"application\":{\"name\":\"app\""));
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(all_that_was_captured_is_kept_at_first),
		CASE(packets_that_rolled_over_are_not_counted),
		CASE(a_port_that_appeared_later),
		CASE(an_hour_of_readings_is_thinned_out),
		CASE(losses_and_incidents),
		CASE(values_and_distances),
		CASE(times_are_written_as_in_conditions),
		CASE(a_ring_has_the_level_of_its_fullest_sample),
		CASE(an_xstat_that_grows),
		CASE(names_of_rings_that_are_not_there_yet),
		CASE(nothing_is_known_before_the_first_second),
		CASE(a_failed_reading_answers_nothing),
		CASE(without_a_descriptor_it_rests_for_a_second),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
