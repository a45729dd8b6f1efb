/* SPDX-License-Identifier: BSD-3-Clause */
/* Conditions on threads that do not poll any more, and on statistics of devices. */
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
static struct ringtap_device_stat devices[2][3];
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

/* ---- devices */

/* Statistic i has grown from the first value to the second one, half a second later. */
static void put_device(unsigned i, const char *device, enum ringtap_device_part part,
	uint32_t number, uint64_t first, uint64_t second)
{
	for (unsigned k = 0; k < 2; k++) {
		devices[k][i] = (struct ringtap_device_stat){.name = "submitted > done",
			.kind = RINGTAP_DMADEV,
			.part = part,
			.number = number,
			.value = k ? second : first,
			.read_ns = 7 * NS_PER_S + k * NS_PER_S / 2};
		strcpy(devices[k][i].device, device);
		snapshots[k].device_stat_count = i + 1;
		snapshots[k].device_stats =
			(struct ringtap_array){devices[k], sizeof(devices[k][0])};
	}
}

static void assert_device(const char *text, const char *where, double value)
{
	struct event e = {0};

	assert_true(met(text, &e));
	assert_string_equal(e.where, where);
	assert_float_equal(e.value, value, 1e-6);
	assert_int_equal(e.from_ns, 7 * NS_PER_S);
	assert_int_equal(e.to_ns, 7 * NS_PER_S + NS_PER_S / 2);
}

static void statistics_of_devices_and_their_parts(void **state)
{
	struct event e;

	put_device(0, "dma0", RINGTAP_PART_DEVICE, 0, 100, 150);
	put_device(1, "dma0", RINGTAP_PART_CHANNEL, 2, 0, 60);
	put_device(2, "dma1", RINGTAP_PART_CHANNEL, 2, 0, 1000);
	assert_device("device dma0 submitted > done > 49", "dma0, channel 2", 60);
	assert_device("device dma0 submitted > done > 119/s", "dma0, channel 2", 120);
	assert_device("device dma1 submitted > done > 10 over 5s", "dma1, channel 2", 1000);
	assert_false(met("device dma0 submitted > done > 60", &e));
	assert_false(met("device dma0 submitted > done > 120/s", &e));
	assert_false(met("device dma0 submitted > 1", &e));
	assert_false(met("device dma submitted > done > 1", &e));
	devices[1][1].gone = true;
	assert_device("device dma0 submitted > done > 49", "dma0", 50);
}

static void devices_that_were_not_read_again_or_fell(void **state)
{
	struct trigger t = {0};
	struct event e;

	assert_int_equal(trigger_parse(&t, "device dma0 submitted > done > 0"), 0);
	assert_int_equal(trigger_collectors(&t), RINGTAP_DEVICES);
	snapshots[1].device_stat_count = 0;
	assert_false(trigger_known(&t, &span));
	put_device(0, "dma0", RINGTAP_PART_DEVICE, 0, 161, 160); /* reset */
	assert_false(trigger_check(&t, &span, &e) || trigger_known(&t, &span));
	put_device(0, "dma0", RINGTAP_PART_DEVICE, 0, 160, 160);
	assert_false(trigger_check(&t, &span, &e));
	assert_true(trigger_known(&t, &span));
	devices[1][0].value++;
	assert_true(trigger_check(&t, &span, &e));
	devices[1][0].read_ns = devices[0][0].read_ns;
	assert_false(trigger_check(&t, &span, &e) || trigger_known(&t, &span));
	snapshots[0].device_stat_count = 0; /* new */
	assert_false(trigger_check(&t, &span, &e) || trigger_known(&t, &span));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_gap_that_lasts_is_met_once, setup),
		cmocka_unit_test_setup(a_gap_whose_start_moves_is_the_same, setup),
		cmocka_unit_test_setup(packets_that_are_held_are_late, setup),
		cmocka_unit_test_setup(held_packets_are_late_while_collectors_are_switched, setup),
		cmocka_unit_test_setup(a_second_hang_holds_other_packets, setup),
		cmocka_unit_test_setup(statistics_of_devices_and_their_parts, setup),
		cmocka_unit_test_setup(devices_that_were_not_read_again_or_fell, setup),
	};
	int ret;

	buckets = calloc(ringtap_latency_buckets(), sizeof(*buckets));
	ret = cmocka_run_group_tests(tests, NULL, NULL);
	free(buckets);
	return ret;
}
