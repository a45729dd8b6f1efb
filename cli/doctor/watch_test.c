/* SPDX-License-Identifier: BSD-3-Clause */
/* How long ringtap doctor watches, how it ends, and what it prints; of applications that are made
 * up and with a clock that is set. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/test_command.h"
#include "base/test_util.h"
#include "base/util.h"
#include "cli/commands.h"
#include "measure/fake_monitor.h"
#include "common/test_now.h"
#include "packets.h"
#include "watch.h"

#define NO_PROCESS (INT32_MAX - 10) /* the doctor reads threads of processes that there are */
#define SETTLED_NS (NS_PER_S / 2)

static struct fake_app *app;
static unsigned followed, steps;

/* Following packets, instead of packets.c. */
struct doctor_packets {
	char pool[64];
	bool ended;
};

struct doctor_packets *doctor_packets_begin(const char *name, const char *pool)
{
	struct doctor_packets *p = calloc(1, sizeof(*p));

	snprintf(p->pool, sizeof(p->pool), "%s", pool);
	followed++;
	return p;
}

void doctor_packets_free(struct doctor_packets *p)
{
	free(p);
}

void doctor_packets_step(struct doctor_packets *p)
{
	steps++;
}

void doctor_packets_end(struct doctor_packets *p)
{
	p->ended = true;
}

void doctor_packets_evidence(
	const void *packets, struct verdict *v, const char *pool, double growth)
{
	const struct doctor_packets *p = packets;

	if (p->ended && !strcmp(p->pool, pool))
		verdict_add_evidence(v, "packets were followed; %.0f mbufs a second", growth);
}

static int begin(void **state)
{
	test_now_set(TEST_NOW_MONO_NS, TEST_NOW_REAL_NS);
	fake_apps_begin();
	app = &fake_apps[0];
	app->pid = NO_PROCESS;
	followed = steps = 0;
	setenv("TZ", "UTC", 1);
	machine_root = "/nonexistent";
	return 0;
}

static int end(void **state)
{
	fake_apps_end();
	return fake_monitors ? -1 : 0;
}

/* ---- what is printed */

static void exhausted(void)
{
	app->s.pools[0].available = 5;
	app->s.pools[0].in_caches = 0;
}

/* 20 packets in each burst of 32 are lost, and the thread has no time. */
static void lose(struct fake_app *a, uint64_t ns)
{
	fake_forward(a, ns);
	a->s.ports[0].imissed = a->s.ports[0].ipackets / 32 * 20;
	a->s.threads[0].busy_cycles = ns;
	a->s.threads[0].idle_cycles = 0;
	a->s.queues[0].polls -= a->s.queues[0].empty_polls;
	a->s.queues[0].empty_polls = a->s.queues[0].burst[0] = 0;
}

static void too_slow(void)
{
	app->work = lose;
}

static void refuse(struct fake_app *a, uint64_t ns)
{
	fake_forward(a, ns);
	a->s.ports[1].opackets /= 2;
}

static void tx_refuses(void)
{
	app->work = refuse;
}

static void not_polling(void)
{
	app->s.snapshot.queue_count = app->s.snapshot.thread_count = 0;
}

static void polls_only(struct fake_app *a, uint64_t ns)
{
	fake_forward(a, ns);
	a->s.queues[0].burst[32] = a->s.queues[0].packets = a->s.queues[0].bytes = 0;
	a->s.queues[0].polls = a->s.queues[0].empty_polls;
	a->s.queues[1] = (struct ringtap_queue_stats){.port = 1, .direction = RINGTAP_TX};
	a->s.ports[0].ipackets = a->s.ports[1].opackets = 0;
	a->s.ports[1].tx_before = a->s.ports[1].tx_after = 0;
	a->s.threads[0].idle_cycles = ns;
	a->s.threads[0].busy_cycles = 0;
}

static void idle(void)
{
	app->work = polls_only;
}

static void two(void)
{
	fake_app_add("other");
	fake_apps[1].pid = NO_PROCESS + 1;
	fake_apps[1].s.pools[0].available = 5;
}

static void without_the_probe(void)
{
	two();
	fake_apps[1].error = -EPROTONOSUPPORT;
}

/* 100 objects a second; the threads receive meanwhile. */
static void leak(struct fake_app *a, uint64_t ns)
{
	fake_forward(a, ns);
	a->s.pools[0].available = 2000 - (uint32_t)(ns / FAKE_READING_NS) * 50;
}

static void leaks(void)
{
	app->work = leak;
}

static const struct test_golden rows[] = {
	{"healthy.txt", "", STATUS_OK, NULL},
	{"healthy.json", "--json|app", STATUS_OK, NULL},
	{"idle.txt", "--duration|2s", STATUS_OK, idle},
	{"not-polling.txt", "--duration|2s", STATUS_OK, not_polling},
	{"pool-exhausted.txt", "--duration|2s", STATUS_FAULT, exhausted},
	{"pool-exhausted.json", "--duration|2s|--json", STATUS_FAULT, exhausted},
	{"too-slow.txt", "--duration|2s", STATUS_FAULT, too_slow},
	{"tx-refused.txt", "--duration|2s", STATUS_FAULT, tx_refuses},
	{"pool-grows.txt", "--duration|10s", STATUS_FAULT, leaks},
	{"pool-grows-no-packets.txt", "--duration|10s|--no-packets", STATUS_FAULT, leaks},
	{"two.txt", "--duration|2s", STATUS_FAULT, two},
	{"two.json", "--duration|2s|--json", STATUS_FAULT, two},
	{"one-of-two.txt", "--duration|2s|app", STATUS_OK, two},
	{"same-twice.txt", "--duration|2s|app|app", STATUS_OK, two},
	{"without-probe.txt", "--duration|2s|app|other", STATUS_FAILED, without_the_probe},
};

static const struct test_refusal refused[] = {
	{"--duration|0s", STATUS_USAGE, "--duration 0s: out of range; give 1s to 1h"},
	{"--duration|0.9s", STATUS_USAGE, "--duration 0.9s: out of range"},
	{"--duration|3601s", STATUS_USAGE, "--duration 3601s: out of range"},
	{"--duration|x", STATUS_USAGE, "--duration x: not a time"},
	{"--duration|1s|nowhere", STATUS_FAILED, "no application is called 'nowhere'"},
};

/* ---- how long it watches */

static struct test_output o;

static uint64_t run(const char *args)
{
	uint64_t begin_ns = rt_now_ns(CLOCK_MONOTONIC);

	o = test_command(&cmd_doctor, args);
	return rt_now_ns(CLOCK_MONOTONIC) - begin_ns;
}

static void assert_printed(int status, const char *out, const char *err)
{
	if (o.status != status || !strstr(o.out, out) || !strstr(o.err, err))
		fail_msg("status %d: %s%s", o.status, o.out, o.err);
	test_output_free(&o);
}

/* Until drivers were read once more, then the time, then a second for addresses. */
static void it_watches_for_five_seconds(void **state)
{
	assert_in_range(run("app"), SETTLED_NS + 6 * NS_PER_S, SETTLED_NS + 13 * NS_PER_S / 2);
	assert_printed(STATUS_OK, "app, watched for 5.0 s:", "");
}

static void it_watches_as_long_as_given(void **state)
{
	assert_in_range(run("--duration|100s"), SETTLED_NS + 101 * NS_PER_S,
		SETTLED_NS + 203 * NS_PER_S / 2);
	assert_printed(STATUS_OK, "app, watched for 100.0 s:", "");
}

static void collectors_are_as_cheap_as_possible_at_first(void **state)
{
	run("--duration|1s");
	assert_int_equal(app->switches, 1);
	assert_int_equal(app->options.collectors, JUDGE_COLLECTORS | RINGTAP_ADDRESSES);
	test_output_free(&o);
}

/* On a busy machine the probe reads drivers late. */
static uint64_t late_ns;

static void read_late(struct fake_app *a, uint64_t ns)
{
	fake_forward(a, ns);
	for (unsigned i = 0; i < 2 && ns >= SETTLED_NS && ns < late_ns; i++)
		a->s.ports[i].read_ns = TEST_NOW_REAL_NS + SETTLED_NS;
}

static void drivers_that_are_read_late_are_waited_for(void **state)
{
	late_ns = 3 * NS_PER_S;
	app->work = read_late;
	run("--duration|1s");
	assert_printed(STATUS_OK, "app, watched for 2.5 s:", "");
}

static void drivers_are_waited_for_three_seconds_at_most(void **state)
{
	late_ns = 100 * NS_PER_S;
	app->work = read_late;
	run("--duration|1s");
	assert_printed(STATUS_OK, "app, watched for 4.0 s:", "");
}

static void drivers_that_are_never_read_are_not_waited_for(void **state)
{
	app->secondary = true;
	app->s.snapshot.port_count = 0;
	run("--duration|1s");
	assert_printed(STATUS_OK, "app, watched for 1.0 s:", "");
}

/* ---- how it ends */

static void interrupt(void *arg)
{
	raise(SIGINT);
}

static void interrupted_within_a_second(void **state)
{
	test_now_after(SETTLED_NS + 3 * NS_PER_S / 5, interrupt, NULL);
	assert_in_range(run("--duration|600s"), SETTLED_NS, SETTLED_NS + NS_PER_S);
	assert_printed(STATUS_FAILED, "",
		"doctor: interrupted before it had watched for a second: no verdict\n");
}

static void interrupted_while_it_settles(void **state)
{
	test_now_after(SETTLED_NS / 2, interrupt, NULL);
	assert_in_range(run("--duration|600s"), SETTLED_NS / 2, SETTLED_NS);
	assert_printed(STATUS_FAILED, "", "no verdict");
}

static void interrupted_later(void **state)
{
	test_now_after(SETTLED_NS + 7 * NS_PER_S / 2, interrupt, NULL);
	assert_in_range(
		run("--duration|600s"), SETTLED_NS + 3 * NS_PER_S, SETTLED_NS + 4 * NS_PER_S);
	assert_printed(STATUS_OK, "app, watched for 3.5 s:\n  ok: ",
		"doctor: interrupted: the verdicts are those until then, without a look at buffer "
		"addresses\n");
	assert_int_equal(app->switches, 0);
}

static void interrupted_while_addresses_are_sampled(void **state)
{
	test_now_after(SETTLED_NS + 11 * NS_PER_S / 2, interrupt, NULL);
	run("app");
	assert_printed(STATUS_OK, "app, watched for 5.0 s:", "interrupted: the verdicts");
	assert_int_equal(app->switches, 1);
}

static void the_application_ends(void **state)
{
	test_now_after(SETTLED_NS + 3 * NS_PER_S, fake_app_end, app);
	assert_in_range(
		run("--duration|600s"), SETTLED_NS + 3 * NS_PER_S, SETTLED_NS + 4 * NS_PER_S);
	assert_printed(STATUS_OK, "app, watched for 3.", "app: the application has ended\n");
}

static void one_of_two_ends(void **state)
{
	two();
	fake_apps[1].s.pools[0].available = 3000;
	test_now_after(SETTLED_NS + 3 * NS_PER_S, fake_app_end, app);
	run("--duration|10s");
	assert_printed(STATUS_OK, "other, watched for 10.0 s:", "app: the application has ended\n");
}

/* This process is the application: see list_test.c. */
static void devices_of_a_static_vhost_library_are_hidden(void **state)
{
	static const char title[] = "note: interfaces without a port of DPDK";

	app->host_pid = (uint32_t)getpid();
	run("app");
	assert_null(strstr(o.out, title));
	test_output_free(&o);
	assert_int_equal(prctl(PR_SET_NAME, "vhost-events"), 0);
	run("app");
	assert_non_null(strstr(o.out, title));
	assert_printed(STATUS_OK, "its vhost ports are not visible", "");
	snprintf(app->s.ports[1].driver, RINGTAP_NAME_LEN, "vhost-user");
	run("app");
	assert_null(strstr(o.out, title));
	test_output_free(&o);
	assert_int_equal(prctl(PR_SET_NAME, "watch_test"), 0);
}

static void damaged_statistics(void **state)
{
	app->read_error = -EBADMSG;
	run("--duration|1s");
	assert_printed(STATUS_FAILED, "", "app: its statistics are broken\n");
}

static void no_application(void **state)
{
	app->absent = true;
	run("--duration|1s");
	assert_printed(STATUS_FAILED, "", "doctor: no running DPDK application found");
}

/* ---- a pool that grows */

static void packets_are_followed_for_five_seconds(void **state)
{
	app->work = leak;
	assert_in_range(
		run("--duration|10s"), SETTLED_NS + 16 * NS_PER_S, SETTLED_NS + 17 * NS_PER_S);
	assert_int_equal(followed, 1);
	assert_int_equal(steps, 20);
	assert_printed(STATUS_FAULT, "packets were followed", "");
}

static void packets_are_not_followed_without_growth(void **state)
{
	run("--duration|10s");
	assert_int_equal(followed, 0);
	test_output_free(&o);
}

static void packets_are_not_followed_if_not_wanted(void **state)
{
	app->work = leak;
	assert_in_range(run("--duration|10s|--no-packets"), SETTLED_NS + 11 * NS_PER_S,
		SETTLED_NS + 12 * NS_PER_S);
	assert_int_equal(followed, 0);
	assert_printed(STATUS_FAULT, "the use of a mempool grows: mb_pool_0", "");
}

static void leak_until_ten_seconds(struct fake_app *a, uint64_t ns)
{
	leak(a, ns < 10 * NS_PER_S ? ns : 10 * NS_PER_S);
	fake_forward(a, ns);
}

static void growth_that_ends_meanwhile_is_not_a_leak(void **state)
{
	app->work = leak_until_ten_seconds;
	run("--duration|10s");
	assert_int_equal(followed, 1);
	assert_printed(STATUS_OK, "ok: ", "");
}

/* As a queue does that fills when the application starts. */
static void leak_until_three_seconds(struct fake_app *a, uint64_t ns)
{
	fake_forward(a, ns);
	a->s.pools[0].available =
		2000 - 200 * (uint32_t)((ns < 3 * NS_PER_S ? ns : 3 * NS_PER_S) / FAKE_READING_NS);
}

static void a_queue_that_fills_at_the_start_is_not_a_leak(void **state)
{
	app->work = leak_until_three_seconds;
	run("app");
	assert_int_equal(followed, 0);
	assert_printed(STATUS_OK, "ok: ", "");
}

static void interrupted_while_packets_are_followed(void **state)
{
	app->work = leak;
	test_now_after(SETTLED_NS + 12 * NS_PER_S, interrupt, NULL);
	assert_in_range(
		run("--duration|10s"), SETTLED_NS + 12 * NS_PER_S, SETTLED_NS + 13 * NS_PER_S);
	assert_printed(STATUS_FAULT, "the use of a mempool grows", "interrupted: the verdicts");
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(it_watches_for_five_seconds),
		CASE(it_watches_as_long_as_given),
		CASE(collectors_are_as_cheap_as_possible_at_first),
		CASE(drivers_that_are_read_late_are_waited_for),
		CASE(drivers_are_waited_for_three_seconds_at_most),
		CASE(drivers_that_are_never_read_are_not_waited_for),
		CASE(interrupted_within_a_second),
		CASE(interrupted_while_it_settles),
		CASE(interrupted_later),
		CASE(interrupted_while_addresses_are_sampled),
		CASE(the_application_ends),
		CASE(devices_of_a_static_vhost_library_are_hidden),
		CASE(one_of_two_ends),
		CASE(damaged_statistics),
		CASE(no_application),
		CASE(packets_are_followed_for_five_seconds),
		CASE(packets_are_not_followed_without_growth),
		CASE(packets_are_not_followed_if_not_wanted),
		CASE(growth_that_ends_meanwhile_is_not_a_leak),
		CASE(a_queue_that_fills_at_the_start_is_not_a_leak),
		CASE(interrupted_while_packets_are_followed),
	};
	int failed =
		test_goldens(&cmd_doctor, GOLDEN, rows, sizeof(rows) / sizeof(rows[0]), begin, end);

	fake_apps_end();
	failed += test_refusals(&cmd_doctor, refused, sizeof(refused) / sizeof(refused[0]));
	return failed + cmocka_run_group_tests(tests, NULL, NULL);
}
