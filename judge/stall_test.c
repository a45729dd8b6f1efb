/* SPDX-License-Identifier: BSD-3-Clause */
/* A long pause of a polling thread. */
#include <stdio.h>
#include <string.h>

#include "base/test_util.h"
#include "base/util.h"
#include "limits.h"
#include "rules.h"

static struct ringtap_queue_stats queues[2][1];
static struct ringtap_thread_stats threads[2][1];
static struct ringtap_port_stats ports[1];
static struct ringtap_gap gaps[1];
static struct ringtap_snapshot snapshots[2];
static struct watched app;
static struct diagnosis d;

/* A second in which a thread receives, and is on its CPU for 0.6 s. */
static int setup(void **state)
{
	memset(queues, 0, sizeof(queues));
	memset(threads, 0, sizeof(threads));
	memset(gaps, 0, sizeof(gaps));
	queues[1][0].polls = queues[1][0].burst[32] = 100000;
	queues[1][0].packets = 3200000;
	for (unsigned k = 0; k < 2; k++) {
		queues[k][0].direction = RINGTAP_RX;
		queues[k][0].max_burst = 64;
		threads[k][0].lcore = 1;
		threads[k][0].alive = true;
		threads[k][0].read_ns = (1000 + k) * NS_PER_S;
		threads[k][0].cpu_ns = k * 600000000u;
		snapshots[k] = (struct ringtap_snapshot){.taken_ns = (1000 + k) * NS_PER_S,
			.taken_mono_ns = (50 + k) * NS_PER_S,
			.tsc_hz = 1000000000,
			.collectors = RINGTAP_POLLS | RINGTAP_BUSY | RINGTAP_GAPS,
			.port_count = 1,
			.thread_count = 1,
			.queue_count = 1,
			.ports = {ports, sizeof(ports[0])},
			.threads = {threads[k], sizeof(threads[k][0])},
			.queues = {queues[k], sizeof(queues[k][0])}};
	}
	gaps[0] = (struct ringtap_gap){
		.start_ns = 1000 * NS_PER_S + 200000000, .ns = 393000000, .packets = 32};
	threads[1][0].gaps = (struct ringtap_array){gaps, sizeof(gaps[0])};
	threads[1][0].gap_count = 1;
	app = (struct watched){
		.name = (char *)"app", .now = &snapshots[1], .mark = &snapshots[0], .tsc_hz = 1e9};
	return 0;
}

static const struct verdict *find(enum verdict_id id)
{
	for (unsigned i = 0; i < d.count; i++)
		if (d.verdict[i].id == id)
			return &d.verdict[i];
	return NULL;
}

static const struct verdict *judge(void)
{
	struct examination e = {.app = &app,
		.span = {.from = &snapshots[0], .to = &snapshots[1], .seconds = 1, .tsc_hz = 1e9}};

	memset(&d, 0, sizeof(d));
	diagnose(&e, &d);
	return find(VERDICT_STALLED) ? find(VERDICT_STALLED) : find(VERDICT_HEALTHY);
}

static void a_stall_is_not_healthy(void **state)
{
	const struct verdict *v = judge();

	assert_int_equal(v->id, VERDICT_STALLED);
	assert_int_equal(v->grade, GRADE_NOTE);
	assert_non_null(strstr(v->evidence[0], "nothing is known to be lost"));
	assert_non_null(
		strstr(v->evidence[v->evidence_count - 1], "lcore 1 did not poll for 393 ms at "));
	gaps[0].ns = LIMIT_STALL_NS - 1;
	assert_int_equal(judge()->id, VERDICT_HEALTHY);
}

static void a_thread_that_sleeps_has_gaps_without_work(void **state)
{
	gaps[0].packets = 0;
	assert_int_equal(judge()->id, VERDICT_STALLED);
	threads[1][0].cpu_ns = 400000000;
	assert_int_equal(judge()->id, VERDICT_HEALTHY);
	gaps[0].packets = 1;
	assert_int_equal(judge()->id, VERDICT_STALLED);
	gaps[0].packets = 0;
	threads[0][0].read_ns = threads[1][0].read_ns = 0; /* what the kernel saw is unknown */
	assert_int_equal(judge()->id, VERDICT_STALLED);
}

/* Its time and cycles are not all its own. */
static void more_threads_do_not_help_one_without_a_cpu(void **state)
{
	queues[0][0].max_burst = queues[1][0].max_burst = 32;
	judge();
	assert_non_null(strstr(find(VERDICT_SATURATED)->advice, "more queues and threads"));
	threads[1][0].wait_ns = 400000000;
	judge();
	assert_int_equal(find(VERDICT_PREEMPTED)->grade, GRADE_FAULT);
	assert_non_null(strstr(find(VERDICT_SATURATED)->advice, "Give it a CPU first"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_stall_is_not_healthy, setup),
		cmocka_unit_test_setup(a_thread_that_sleeps_has_gaps_without_work, setup),
		cmocka_unit_test_setup(more_threads_do_not_help_one_without_a_cpu, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
