/* SPDX-License-Identifier: BSD-3-Clause */
/* Output of ringtap flight top for the answers of recorders, with a clock that is set. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "recorder/ask.h"
#include "base/test_command.h"
#include "base/test_util.h"
#include "base/signals.h"
#include "base/util.h"
#include "measure/fake_monitor.h"
#include "common/test_now.h"
#include "live.h"

#define RECORDER(folder, lost, failed, recent)                                                                                                              \
	"{\"application\": {\"name\": \"app\", \"program\": \"testpmd\"}, \"pid\": 99, \"time\": \"2026-11-27T14:30:00.123456789Z\", \"folder\": \"" folder \
	"\", "                                                                                                                                              \
	"\"kept_ns\": 12345678901, \"kept_packets\": 1234567, \"kept_bytes\": 98765432, "                                                                   \
	"\"buffer_bytes\": 268435456, \"lost\": " #lost                                                                                                     \
	", \"not_sampled\": 0, \"writing\": 1, \"failed\": " #failed                                                                                        \
	", \"incomplete\": 0, \"missing_ns\": 0, \"incident_lost\": 0"                                                                                      \
	", \"ports\": [{\"index\": 0, \"name\": \"p0\", \"packets\": 1000000, \"bytes\": 64000000}, {\"index\": 1, \"name\": "                              \
	"\"p1\\u001b[2J\", \"packets\": 234567, \"bytes\": 34765432}], \"conditions\": ["                                                                   \
	"{\"name\": \"gap\", \"condition\": \"gap > 50us\", \"value\": \"61.2 us\", \"threshold\": "                                                        \
	"\"50 us\", \"threshold_share\": 1.224, \"where\": \"lcore 1\", \"incidents\": 3, "                                                                 \
	"\"suppressed\": 17, \"before_ns\": 1, \"after_ns\": 2}, {\"name\": \"command\", \"condition\": \"command\", \"value\": "                           \
	"null, \"threshold\": null, \"threshold_share\": null, \"where\": null, \"incidents\": 0, "                                                         \
	"\"suppressed\": 0, \"before_ns\": 1, \"after_ns\": 2}], \"recent\": [" recent "]}"
#define INCIDENT(name, missing, lost, failed)                                                    \
	"{\"name\": \"20260102T030405.000001-" name "\", \"packets\": 4711, \"bytes\": 471100, " \
	"\"missing_ns\": " #missing ", \"lost\": " #lost ", \"failed\": " #failed "}"

static const char *answer;
static uint64_t asked_ns[8];
static unsigned asked;
static int asked_for_ms;
static bool late;

/* Instead of sockets. */
bool ask_recorders(json_t *list, const char *dir, const char *name, int timeout_ms)
{
	json_t *j = answer && !strcmp(name, "app") ? json_loads(answer, 0, NULL) : NULL;

	if (asked < sizeof(asked_ns) / sizeof(asked_ns[0]))
		asked_ns[asked++] = rt_now_ns(CLOCK_MONOTONIC) - TEST_NOW_MONO_NS;
	json_array_extend(list, j);
	json_decref(j);
	asked_for_ms = timeout_ms;
	return !late;
}

/* "top" alone: the whole command has the sockets. */
static int run(const struct command *self, int argc, char **argv)
{
	struct live v = {.interval_ns = NS_PER_S};

	for (int i = 1; i < argc; i++) {
		v.once |= !strcmp(argv[i], "--once");
		v.json |= !strcmp(argv[i], "--json");
		v.updates = v.updates || !strcmp(argv[i], "--updates") ? 2 : 0;
		if (!strcmp(argv[i], "--duration=7s"))
			v.duration_ns = 7 * NS_PER_S;
		else if (!strcmp(argv[i], "3s"))
			v.interval_ns = 3 * NS_PER_S;
		else if (*argv[i] != '-')
			v.app = argv[i];
	}
	return live_run(&v);
}

static const struct command top = {.name = "top", .run = run};

static int begin(void **state)
{
	test_now_set(TEST_NOW_MONO_NS, TEST_NOW_REAL_NS);
	fake_apps_begin();
	asked = 0;
	late = false;
	answer = "[" RECORDER("/var/lib/x", 0, 0, INCIDENT("gap", 0, 0, false)) "]";
	setenv("LC_ALL", "C", 1);
	setenv("COLUMNS", "80", 1);
	return 0;
}

static int end(void **state)
{
	fake_apps_end();
	return 0;
}

static void two_in_trouble(void)
{
	answer = "[" RECORDER("/var/lib/x", 12, 2,
		INCIDENT("gap", 1500000000, 0, false) ", " INCIDENT(
			"exit", 0, 3, true)) ", " RECORDER("/other\\u001b[2J", 0, 0, "") "]";
}

static void damaged(void)
{
	answer = "[{\"ports\": 5, \"conditions\": [1, {}], \"recent\": {}}]";
}

static void no_terminal(void)
{
	unsetenv("COLUMNS");
}

static void narrow(void)
{
	setenv("COLUMNS", "40", 1);
}

static const struct test_golden rows[] = {
	{"top.txt", "--once", STATUS_OK, NULL},
	{"top-app.txt", "app|--once", STATUS_OK, NULL},
	{"top-40.txt", "--once", STATUS_OK, narrow},
	{"top-wide.txt", "--once", STATUS_OK, no_terminal},
	{"top-trouble.txt", "--once", STATUS_OK, two_in_trouble},
	{"top-damaged.txt", "--once", STATUS_OK, damaged},
	{"top.json", "--json|--once", STATUS_OK, NULL},
};

static void stop(void *arg)
{
	raise(SIGTERM);
}

static void assert_four(const char *words, const char *each)
{
	struct test_output o;
	unsigned count = 0;

	asked = 0;
	test_now_set(TEST_NOW_MONO_NS, TEST_NOW_REAL_NS);
	test_now_after(10 * NS_PER_S, stop, NULL);
	o = test_command(&top, words);
	assert_int_equal(o.status, STATUS_OK);
	assert_int_equal(asked, 4);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(asked_ns[i], 3 * i * NS_PER_S);
	for (const char *at = o.out; (at = strstr(at, each)); at++)
		count++;
	assert_int_equal(count, 4);
	stop_forget();
	test_output_free(&o);
}

/* Standard output is not a terminal here. */
static void intervals(void **state)
{
	assert_four("--json|3s", "{\"schema\"");
	assert_four("3s", "Z\napp: ");
}

static void stops_after_its_updates(void **state)
{
	struct test_output o = test_command(&top, "3s|--updates");

	assert_int_equal(o.status, STATUS_OK);
	assert_int_equal(asked, 2);
	test_output_free(&o);
}

static void a_duration_ends_it(void **state)
{
	struct test_output o = test_command(&top, "--json|3s|--duration=7s");

	assert_int_equal(o.status, STATUS_OK);
	assert_int_equal(asked, 3);
	assert_int_equal(rt_now_ns(CLOCK_MONOTONIC) - TEST_NOW_MONO_NS, 7 * NS_PER_S);
	test_output_free(&o);
}

static void no_recorder(void **state)
{
	struct test_output o;

	answer = NULL;
	o = test_command(&top, "app");
	assert_int_equal(o.status, STATUS_FAILED);
	assert_string_equal(o.err, "ringtap: flight top: no recorder of 'app' answers; 'ringtap "
				   "flight' starts one\n");
	test_output_free(&o);
	o = test_command(&top, "");
	assert_non_null(strstr(o.err, "no recorder of any application answers"));
	test_output_free(&o);
	answer = "[" RECORDER("/x", 0, 0, "") "]";
	o = test_command(&top, "other");
	assert_int_equal(o.status, STATUS_FAILED);
	test_output_free(&o);
}

/* To start another one would not help. */
static void a_recorder_that_does_not_answer(void **state)
{
	struct test_output o;

	answer = NULL;
	late = true;
	o = test_command(&top, "app");
	assert_int_equal(o.status, STATUS_FAILED);
	assert_string_equal(o.err, "ringtap: flight top: the recorder of 'app' does not answer: it "
				   "is stopped, or the machine is busy\n");
	assert_int_equal(asked_for_ms, 2000);
	test_output_free(&o);
	o = test_command(&top, "--once|app");
	assert_int_equal(o.status, STATUS_FAILED);
	assert_int_equal(asked_for_ms, 10000);
	test_output_free(&o);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_duration_ends_it), /* before the signal of the next one, which stays */
		CASE(intervals),
		CASE(stops_after_its_updates),
		CASE(no_recorder),
		CASE(a_recorder_that_does_not_answer),
	};
	int failed = test_goldens(&top, GOLDEN, rows, sizeof(rows) / sizeof(rows[0]), begin, end);

	return failed + cmocka_run_group_tests(tests, NULL, NULL);
}
