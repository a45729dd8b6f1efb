/* SPDX-License-Identifier: BSD-3-Clause */
/* Output of ringtap top, for applications that are made up and with a clock that is set. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/signals.h"
#include "base/test_command.h"
#include "base/test_util.h"
#include "base/util.h"
#include "cli/commands.h"
#include "cli/top/output.h"
#include "cli/top/tabs.h"
#include "measure/fake_monitor.h"
#include "common/test_now.h"

static struct fake_app *app;

static int begin(void **state)
{
	test_now_set(TEST_NOW_MONO_NS, TEST_NOW_REAL_NS);
	fake_apps_begin();
	app = &fake_apps[0];
	setenv("TZ", "UTC", 1);
	setenv("LC_ALL", "C", 1);
	setenv("COLUMNS", "80", 1);
	return 0;
}

static int end(void **state)
{
	fake_apps_end();
	return fake_monitors ? -1 : 0;
}

/* A thread that is not an EAL thread, losses, a stalled port, a second pool; and what was worst. */
static void trouble(struct fake_app *a, uint64_t ns)
{
	struct fake_stats *s = &a->s;
	uint64_t readings = ns / FAKE_READING_NS;

	fake_forward(a, ns);
	s->ports[0].imissed = 50 * readings;
	s->ports[0].rx_nombuf = 25 * readings;
	s->ports[0].ierrors = 10 * readings;
	s->ports[1].opackets -= 1000 * readings;
	s->threads[0].wait_ns = 100000000 * readings;
	s->threads[0].preempted = 7 * readings;
	s->threads[1].cpu_ns = 400000000 * readings;
	s->threads[1].read_ns = s->threads[0].read_ns;
	s->threads[1].idle_cycles = ns;
	s->queues[2].polls = s->queues[2].empty_polls = s->queues[2].burst[0] = ns / 1000;
	s->gaps[0][0] = (struct ringtap_gap){.start_ns = TEST_NOW_REAL_NS + NS_PER_S / 4 + 123456,
		.ns = 5250000,
		.cycles = 5250000,
		.packets = 32,
		.port = 0,
		.queue = 0};
	s->gaps[0][1] = (struct ringtap_gap){.start_ns = TEST_NOW_REAL_NS + 3 * NS_PER_S / 5,
		.ns = 900000,
		.cycles = 900000,
		.port = RINGTAP_NO_INDEX};
	s->microbursts[0][0] = (struct ringtap_microburst){
		.start_ns = TEST_NOW_REAL_NS + NS_PER_S / 2, .ns = 700000, .packets = 12345};
}

static void in_trouble(void)
{
	struct fake_stats *s = &app->s;

	s->snapshot.thread_count = 2;
	s->snapshot.queue_count = 3;
	s->snapshot.pool_count = 2;
	s->threads[0].gap_count = 2;
	s->threads[0].microburst_count = 1;
	s->threads[1] = (struct ringtap_thread_stats){
		.slot = 1, .alive = true, .lcore = UINT32_MAX, .tid = 4713, .cpu = 3, .name = "w"};
	s->queues[2] = (struct ringtap_queue_stats){
		.thread = 1, .port = 1, .direction = RINGTAP_RX, .max_burst = 64};
	s->pools[1] = s->pools[0];
	strcpy(s->pools[1].name, "small");
	s->pools[1].available = 3;
	s->pools[1].lowest = 0;
	app->work = trouble;
}

static void two_applications(void)
{
	fake_app_add("another-application");
	fake_apps[1].s.snapshot.pool_count = 0;
}

static void utf8(void)
{
	in_trouble();
	setenv("LC_ALL", "C.UTF-8", 1);
}

/* Standard output is none. */
static void no_terminal(void)
{
	in_trouble();
	unsetenv("COLUMNS");
}

static void hundred_columns(void)
{
	in_trouble();
	setenv("COLUMNS", "100", 1);
}

static void forty_columns(void)
{
	in_trouble();
	setenv("COLUMNS", "40", 1);
}

static void nothing_there(void)
{
	app->s.snapshot.port_count = app->s.snapshot.thread_count = app->s.snapshot.queue_count =
		app->s.snapshot.pair_count = app->s.snapshot.pool_count =
			app->s.snapshot.ring_count = 0;
}

static void rings_that_are_refused(void)
{
	nothing_there();
	app->s.snapshot.rings_beyond = 4;
}

static void with_xstats(struct fake_app *a, uint64_t ns)
{
	struct ringtap_xstat_stats *x = a->s.xstats;

	fake_forward(a, ns);
	x[0].value = 5000000000 + ns / 1000;
	x[0].read_ns = x[1].read_ns = x[2].read_ns = TEST_NOW_REAL_NS + ns;
}

/* One that grows, one with the longest name, one that is 0, and one that was read once. */
static void xstats_of_drivers(void)
{
	struct ringtap_xstat_stats *x = app->s.xstats;

	strcpy(x[0].name, "rx_good_packets");
	strcpy(x[1].name, "rx_priority7_xon_to_xoff_packets_of_the_first_physical_function");
	strcpy(x[2].name, "tx_errors");
	strcpy(x[3].name, "rx_missed_errors");
	x[1].port = x[2].port = 1;
	x[1].value = 7;
	x[3].value = UINT64_MAX;
	x[3].read_ns = 1;
	app->s.snapshot.collectors |= RINGTAP_XSTATS;
	app->s.snapshot.xstat_count = 4;
	app->work = with_xstats;
}

static void with_devices(struct fake_app *a, uint64_t ns)
{
	struct ringtap_device_stat *d = a->s.devices;

	fake_forward(a, ns);
	d[0].value = 5000000000 + ns / 1000;
	for (unsigned i = 0; i < 3; i++)
		d[i].read_ns = TEST_NOW_REAL_NS + ns;
	for (unsigned i = 0; i < 2; i++)
		a->s.lcores[i + 1] = (struct ringtap_lcore_stats){.lcore = i + 1,
			.total_cycles = ns,
			.busy_cycles = ns / 4,
			.read_ns = TEST_NOW_REAL_NS + ns};
}

/* Statistics of each library, one that is 0, and one that was read once. */
static void devices_and_lcores(void)
{
	struct ringtap_device_stat *d = app->s.devices;

	d[0] = (struct ringtap_device_stat){
		.device = "crypto_null0", .name = "enqueued_count", .kind = RINGTAP_CRYPTODEV};
	d[1] = (struct ringtap_device_stat){.device = "event_sw",
		.name = "port_11_dequeues_returning_57-60",
		.part = RINGTAP_PART_PORT,
		.number = 11,
		.value = 7};
	d[2] = (struct ringtap_device_stat){.device = "event_sw", .name = "dev_drop"};
	d[3] = (struct ringtap_device_stat){.device = "dma_skeleton0",
		.name = "submitted",
		.kind = RINGTAP_DMADEV,
		.id = 1,
		.part = RINGTAP_PART_CHANNEL,
		.value = UINT64_MAX,
		.read_ns = 1};
	app->s.snapshot.collectors |= RINGTAP_DEVICES;
	app->s.snapshot.device_stat_count = 4;
	app->s.snapshot.lcore_count = 3;
	app->work = with_devices;
}

static void one_without_the_probe(void)
{
	two_applications();
	fake_apps[1].error = -EPROTONOSUPPORT;
}

static void one_that_ends(void)
{
	test_now_after(3 * NS_PER_S, fake_app_end, app);
}

static void strange_names(void)
{
	strcpy(app->s.ports[0].name, "net_null\x1b[31m5");
	strcpy(app->s.pools[0].name, "p\np");
	app->s.xstats[0] =
		(struct ringtap_xstat_stats){.name = "x\nx", .port = 1, .read_ns = 1, .value = 7};
	app->s.snapshot.xstat_count = 1;
	app->s.snapshot.collectors |= RINGTAP_XSTATS;
}

static const struct test_golden rows[] = {
	{"ports.txt", "--once", STATUS_OK, in_trouble},
	{"ports-wide.txt", "--once|--wide|--view|ports", STATUS_OK, in_trouble},
	{"ports-wide.txt", "--once|--view|ports", STATUS_OK, no_terminal},
	{"ports-lines.txt", "--updates|2", STATUS_OK, no_terminal},
	{"ports-100.txt", "--once", STATUS_OK, hundred_columns},
	{"ports-40.txt", "--once", STATUS_OK, forty_columns},
	{"ports-5s.txt", "--once|--interval|5s|--wide", STATUS_OK, in_trouble},
	{"apps.txt", "--once|--view|apps", STATUS_OK, in_trouble},
	{"apps-wide.txt", "--once|--wide|--view|apps|--collectors|all", STATUS_OK, in_trouble},
	{"apps-two.txt", "--once|--view|apps", STATUS_OK, two_applications},
	{"queues.txt", "--once|--view|queues", STATUS_OK, in_trouble},
	{"queues-wide.txt", "--once|--wide|--view|queues", STATUS_OK, in_trouble},
	{"queues-utf8.txt", "--once|--wide|--view|queues", STATUS_OK, utf8},
	{"threads.txt", "--once|--view|threads", STATUS_OK, in_trouble},
	{"threads-wide.txt", "--once|--wide|--view|threads", STATUS_OK, in_trouble},
	{"pools.txt", "--once|--view|pools", STATUS_OK, in_trouble},
	{"pools-wide.txt", "--once|--wide|--view|pools", STATUS_OK, in_trouble},
	{"rings.txt", "--once|--view|rings", STATUS_OK, NULL},
	{"xstats.txt", "--once|--view|xstats", STATUS_OK, xstats_of_drivers},
	{"xstats-wide.txt", "--once|--wide|--view|xstats", STATUS_OK, xstats_of_drivers},
	{"xstats-by-rate.txt", "--once|--view|xstats|--by|RATE/s", STATUS_OK, xstats_of_drivers},
	{"devices.txt", "--once|--view|devices", STATUS_OK, devices_and_lcores},
	{"devices-wide.txt", "--once|--wide|--view|devices", STATUS_OK, devices_and_lcores},
	{"devices.json", "--once|--json|--view|devices", STATUS_OK, devices_and_lcores},
	{"threads-usage.txt", "--once|--wide|--view|threads", STATUS_OK, devices_and_lcores},
	{"latency.txt", "--once|--view|latency", STATUS_OK, in_trouble},
	{"latency-wide.txt", "--once|--wide|--view|latency", STATUS_OK, in_trouble},
	{"gaps.txt", "--once|--view|gaps", STATUS_OK, in_trouble},
	{"gaps-wide.txt", "--once|--wide|--view|gaps", STATUS_OK, in_trouble},
	{"applications.txt", "--once", STATUS_OK, two_applications},
	{"by-name.txt", "--once|another-application", STATUS_OK, two_applications},
	{"by-port.txt", "--once|--wide|app:p1", STATUS_OK, in_trouble},
	{"by-port-queues.txt", "--once|--wide|--view|queues|app:1", STATUS_OK, in_trouble},
	{"ports-wide.txt", "--once|--wide|app:p0|:p1", STATUS_OK, in_trouble},
	{"pools.txt", "--once|--view|pools|app:p1", STATUS_OK, in_trouble},
	{"sorted.txt", "--once|--by|port|--reverse", STATUS_OK, in_trouble},
	{"sorted-rate.txt", "--once|--view|queues|--by|PPS|--reverse", STATUS_OK, in_trouble},
	{"none-ports.txt", "--once|--view|ports", STATUS_OK, nothing_there},
	{"none-queues.txt", "--once|--view|queues", STATUS_OK, nothing_there},
	{"none-pools.txt", "--once|--view|pools", STATUS_OK, nothing_there},
	{"none-rings.txt", "--once|--view|rings", STATUS_OK, nothing_there},
	{"none-xstats.txt", "--once|--view|xstats", STATUS_OK, nothing_there},
	{"none-devices.txt", "--once|--view|devices", STATUS_OK, nothing_there},
	{"rings-refused.txt", "--once|--view|rings", STATUS_OK, rings_that_are_refused},
	{"none-latency.txt", "--once|--view|latency", STATUS_OK, nothing_there},
	{"none-gaps.txt", "--once|--view|gaps", STATUS_OK, nothing_there},
	{"without-probe.txt", "--once", STATUS_OK, one_without_the_probe},
	{"names.txt", "--once|--wide", STATUS_OK, strange_names},
	{"names.json", "--once|--json", STATUS_OK, strange_names},
	{"once.json", "--once|--json|--collectors|all", STATUS_OK, in_trouble},
	{"lines.json", "--json|--updates|3|--interval|2s", STATUS_OK, two_applications},
	{"ended.json", "--json|--updates|4", STATUS_OK, one_that_ends},
};

/* ---- arguments */

static const struct test_refusal refused[] = {
	{"--interval|0s", STATUS_USAGE, "--interval 0s: out of range; give 100ms to 1h"},
	{"--interval|0.09s", STATUS_USAGE, "--interval 0.09s: out of range"},
	{"--interval|3601s", STATUS_USAGE, "--interval 3601s: out of range"},
	{"--interval|x", STATUS_USAGE, "--interval x: not a time"},
	{"--view|moon", STATUS_USAGE, "moon"},
	{"--once|--by|moon", STATUS_USAGE,
		"--by moon: the view ports has no such column; choose from APP, PORT, ID, RXPPS"},
	{"--once|--view|gaps|--by|moon", STATUS_USAGE,
		"choose from APP, THREAD, WHAT, BEGAN, LENGTH, PACKETS, PORT, Q"},
	{"--json|--updates|0", STATUS_USAGE, "--updates 0"},
	{"--once|nowhere", STATUS_FAILED,
		"no application is called 'nowhere'; 'ringtap list' shows what there is"},
};

/* ---- times */

static uint64_t lasts(const char *args)
{
	struct test_output o = test_command(&cmd_top, args);

	assert_int_equal(o.status, STATUS_OK);
	test_output_free(&o);
	return rt_now_ns(CLOCK_MONOTONIC) - TEST_NOW_MONO_NS;
}

/* At most 0.52 s more, until drivers were read. */
static void an_interval_is_a_second(void **state)
{
	assert_in_range(lasts("--once"), NS_PER_S, NS_PER_S + 13 * NS_PER_S / 25);
}

/* The same again until they were read a second time. */
static void an_interval_is_as_long_as_given(void **state)
{
	assert_in_range(
		lasts("--once|--interval|0.1s"), NS_PER_S / 10, NS_PER_S / 10 + 26 * NS_PER_S / 25);
}

/* The kernel's times are read twice a second. */
static void a_short_interval_has_times_of_threads(void **state)
{
	struct test_output o =
		test_command(&cmd_top, "--once|--interval|0.1s|--view|threads|--wide");

	assert_int_equal(o.status, STATUS_OK);
	assert_non_null(strstr(o.out, " RUN% "));
	assert_non_null(strstr(o.out, " 100 ")); /* all of the time */
	test_output_free(&o);
}

static void intervals_follow_one_another(void **state)
{
	assert_in_range(lasts("--json|--updates|100|--interval|2.5s"), 250 * NS_PER_S,
		250 * NS_PER_S + 13 * NS_PER_S / 25);
}

/* The last interval is a short one. */
static void the_duration_ends_the_last_interval(void **state)
{
	static const struct {
		const char *args;
		uint64_t ns;
	} cases[] = {{"--json|--duration|5s|--interval|2s", 5 * NS_PER_S},
		{"--json|--duration|6s|--interval|2s", 6 * NS_PER_S},
		{"--json|--duration|6s|--interval|2s|--updates|2", 4 * NS_PER_S},
		{"--once|--duration|300ms", 3 * NS_PER_S / 10}};
	uint64_t before = 0;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t least = before + cases[i].ns;

		before = lasts(cases[i].args);
		assert_in_range(before, least, least + 13 * NS_PER_S / 25);
	}
}

static void views_switch_their_collectors_on(void **state)
{
	static const struct {
		const char *args;
		unsigned collectors;
	} cases[] = {
		{"--once", RINGTAP_POLLS | RINGTAP_BUSY | RINGTAP_POOLS},
		{"--once|--view|latency",
			RINGTAP_POLLS | RINGTAP_BUSY | RINGTAP_POOLS | RINGTAP_LATENCY},
		{"--once|--view|gaps", RINGTAP_POLLS | RINGTAP_BUSY | RINGTAP_POOLS | RINGTAP_GAPS},
		{"--once|--view|xstats",
			RINGTAP_POLLS | RINGTAP_BUSY | RINGTAP_POOLS | RINGTAP_XSTATS},
		{"--once|--view|devices",
			RINGTAP_POLLS | RINGTAP_BUSY | RINGTAP_POOLS | RINGTAP_DEVICES},
		{"--once|--collectors|bytes", RINGTAP_BYTES | RINGTAP_POLLS},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		lasts(cases[i].args);
		assert_int_equal(app->options.collectors, cases[i].collectors);
	}
	lasts("--once|--latency-sample|8");
	assert_int_equal(app->options.latency_every, 8);
}

static void a_closed_output_is_a_failure(void **state)
{
	int full = dup(STDOUT_FILENO), status;
	char *argv[] = {"top", "--once", "--json", NULL};
	FILE *f = freopen("/dev/full", "w", stdout);

	assert_non_null(f);
	status = cmd_top.run(&cmd_top, 3, argv);
	dup2(full, STDOUT_FILENO);
	close(full);
	clearerr(stdout);
	assert_int_equal(status, STATUS_FAILED);
	assert_non_null(strstr(message_last(), "No space left on device"));
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, begin, end)

/* Words that completion offers: the titles that are one word, and nothing else. */
static void titles_are_offered(void **state)
{
	bool found[COLUMNS_MAX * VIEW_COUNT] = {false};
	size_t names = 1;

	for (const struct view *v = views; v < views + VIEW_COUNT; v++) {
		for (unsigned c = 0; c < v->column_count; c++) {
			const char *title = v->columns[c].title;
			int i = choice_index(COLUMN_NAMES, title, strlen(title));

			assert_true((i >= 0) == !strchr(title, ' '));
			if (i >= 0)
				found[i] = true;
		}
	}
	for (const char *p = COLUMN_NAMES; *p; p++)
		names += *p == '|';
	for (size_t i = 0; i < names; i++)
		assert_true(found[i]);
}

/* ---- the screen */

static const char *line_of_views(unsigned width)
{
	static char line[VIEW_COUNT * (TAB_LEN + 1)];
	size_t len = 0;

	for (const struct view *v = views; v < views + VIEW_COUNT; v++) {
		len += (size_t)tab_text(v, tabs_letters(width), line + len);
		line[len++] = ' ';
	}
	line[len - 1] = '\0';
	return line;
}

static void the_line_of_views_fits(void **state)
{
	assert_string_equal(line_of_views(80),
		"apps ports u queues threads m pools k rings xstats devices latency gaps flows");
	assert_string_equal(line_of_views(1000), line_of_views(80));
	assert_string_equal(line_of_views(40), "ap po u qu th m po k ri xs de la ga fl");
	assert_string_equal(line_of_views(1), "a p u q t m p k r x d l g f");
	for (unsigned width = strlen(line_of_views(1)); width < 100; width++)
		assert_in_range(strlen(line_of_views(width)), 1, width);
}

/* And no other key of the screen does. */
static void a_key_shows_one_view(void **state)
{
	char used[128] = "qQh? rbo+-<>/"; /* the rest is 0 */

	for (const struct view *v = views; v < views + VIEW_COUNT; v++) {
		assert_null(strchr(used, v->key));
		used[strlen(used)] = v->key;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(an_interval_is_a_second),
		CASE(an_interval_is_as_long_as_given),
		CASE(a_short_interval_has_times_of_threads),
		CASE(intervals_follow_one_another),
		CASE(the_duration_ends_the_last_interval),
		CASE(views_switch_their_collectors_on),
		CASE(a_closed_output_is_a_failure),
		CASE(titles_are_offered),
		CASE(the_line_of_views_fits),
		CASE(a_key_shows_one_view),
	};
	int failed =
		test_goldens(&cmd_top, GOLDEN, rows, sizeof(rows) / sizeof(rows[0]), begin, end);

	fake_apps_end();
	failed += test_refusals(&cmd_top, refused, sizeof(refused) / sizeof(refused[0]));
	return failed + cmocka_run_group_tests(tests, NULL, NULL);
}
