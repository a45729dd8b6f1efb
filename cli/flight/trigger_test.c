/* SPDX-License-Identifier: BSD-3-Clause */
/* Conditions on threads that do not poll any more. */
#include <string.h>

#include "base/test_util.h"
#include "base/util.h"
#include "trigger.h"

#define LAST_POLL (1000 * NS_PER_S - 150000000)

/* Two snapshots, a tenth of a second apart, of one thread that forwards and hangs. */
static struct ringtap_thread_stats threads[2];
static struct ringtap_gap gaps[2];
static struct ringtap_pair_stats pairs[2];
static uint64_t *buckets;
static struct ringtap_port_stats ports[2];
static struct ringtap_snapshot snapshots[2];
static struct span span = {
	.from = &snapshots[0], .to = &snapshots[1], .seconds = 0.1, .tsc_hz = 1e9};

static void quiet(unsigned k, uint64_t ns)
{
	threads[k].quiet_ns = ns;
	gaps[k] = (struct ringtap_gap){
		.start_ns = threads[k].last_poll_ns, .ns = ns, .packets = 32, .open = true};
}

static int setup(void **state)
{
	for (unsigned k = 0; k < 2; k++) {
		snapshots[k] =
			(struct ringtap_snapshot){.taken_ns = 1000 * NS_PER_S + k * NS_PER_S / 10,
				.port_count = 1,
				.thread_count = 1,
				.pair_count = 1,
				.ports = {&ports[k], sizeof(ports[k])},
				.threads = {&threads[k], sizeof(threads[k])},
				.pairs = {&pairs[k], sizeof(pairs[k])}};
		threads[k] = (struct ringtap_thread_stats){.lcore = 3,
			.last_poll_ns = LAST_POLL,
			.last_poll_packets = 32,
			.last_poll_holds = true,
			.gap_count = 1,
			.gaps = {&gaps[k], sizeof(gaps[k])}};
		pairs[k] = (struct ringtap_pair_stats){.count = 5, .bucket = buckets};
		quiet(k, 150000000 + k * 100000000);
	}
	return 0;
}

static bool met(const char *text, struct event *e)
{
	struct trigger t = {0};

	assert_int_equal(trigger_parse(&t, text), 0);
	return trigger_check(&t, &span, e);
}

static void a_gap_that_lasts_is_met_once(void **state)
{
	struct event e;

	assert_true(met("gap > 200ms", &e));
	assert_string_equal(e.where, "lcore 3");
	assert_float_equal(e.value, 250e6, 1);
	assert_int_equal(e.from_ns, LAST_POLL);
	assert_false(met("gap > 100ms", &e)); /* it was then, too */
	assert_false(met("gap > 300ms", &e));
	assert_false(met("idle-gap > 200ms", &e));
	/* It ends. */
	gaps[1].open = false;
	gaps[1].ns = 260000000;
	assert_true(met("gap > 200ms", &e));
	assert_false(met("gap > 100ms", &e));
}

/* The rate of the clock is corrected all the time, and an old poll moves with it. */
static void a_gap_whose_start_moves_is_the_same(void **state)
{
	struct event e;

	for (int k = 0; k < 2; k++)
		quiet(k, 600 * NS_PER_S + k * NS_PER_S / 10);
	gaps[1].start_ns += 600000; /* 1 ppm */
	assert_false(met("gap > 1s", &e));
	gaps[1].start_ns = threads[0].last_poll_ns + gaps[0].ns; /* a second one */
	gaps[1].ns = 2 * NS_PER_S;
	assert_true(met("gap > 1s", &e));
}

static void packets_that_are_held_are_late(void **state)
{
	struct event e;

	assert_true(met("latency > 200ms", &e));
	assert_float_equal(e.value, 250e6, 1);
	assert_string_equal(e.where, "lcore 3");
	assert_false(met("latency > 100ms", &e));
	threads[1].last_poll_holds = false;
	assert_false(met("latency > 200ms", &e));
	threads[1].last_poll_holds = true;
	pairs[1].count = 0; /* it sends nothing that it receives */
	assert_false(met("latency > 200ms", &e));
}

/* The one snapshot in which they become late is not left out. */
static void held_packets_are_late_while_collectors_are_switched(void **state)
{
	struct event e;

	snapshots[1].switched = snapshots[0].switched + 1;
	assert_true(met("latency > 200ms", &e));
	assert_false(met("latency > 100ms", &e));
}

static void a_second_hang_holds_other_packets(void **state)
{
	struct event e;

	quiet(0, 400000000);
	threads[1].last_poll_ns += 410000000;
	assert_true(met("latency > 200ms", &e));
	threads[1].last_poll_ns = LAST_POLL + 1000000; /* the same one, by a corrected clock */
	assert_false(met("latency > 200ms", &e));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_gap_that_lasts_is_met_once, setup),
		cmocka_unit_test_setup(a_gap_whose_start_moves_is_the_same, setup),
		cmocka_unit_test_setup(packets_that_are_held_are_late, setup),
		cmocka_unit_test_setup(held_packets_are_late_while_collectors_are_switched, setup),
		cmocka_unit_test_setup(a_second_hang_holds_other_packets, setup),
	};
	int ret;

	buckets = calloc(ringtap_latency_buckets(), sizeof(*buckets));
	ret = cmocka_run_group_tests(tests, NULL, NULL);
	free(buckets);
	return ret;
}
