/* SPDX-License-Identifier: BSD-3-Clause */
/* Metrics of event, crypto and DMA devices, and of lcores. */
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "base/test_util.h"
#include "base/util.h"
#include "metrics.h"

static struct ringtap_device_stat devices[2][1];
static struct ringtap_lcore_stats lcores[2][2];
static struct ringtap_thread_stats thread[2][1];
static struct ringtap_snapshot snapshots[2];
static struct watched app;
static struct span s;

/* Two snapshots a second apart. */
static int setup(void **state)
{
	for (unsigned k = 0; k < 2; k++) {
		devices[k][0] = (struct ringtap_device_stat){.device = "dma_skeleton0",
			.name = "submitted",
			.kind = RINGTAP_DMADEV,
			.id = 3,
			.part = RINGTAP_PART_CHANNEL,
			.number = 7,
			.value = k ? 400 : 100,
			.read_ns = (5 + 2 * k) * NS_PER_S};
		lcores[k][0] = (struct ringtap_lcore_stats){0};
		lcores[k][1] = (struct ringtap_lcore_stats){.lcore = 1,
			.total_cycles = k ? 5000 : 1000,
			.busy_cycles = k ? 1500 : 500,
			.read_ns = (5 + k) * NS_PER_S};
		thread[k][0] = (struct ringtap_thread_stats){.lcore = 1, .alive = true};
		snapshots[k] = (struct ringtap_snapshot){.taken_ns = (1000 + k) * NS_PER_S,
			.taken_mono_ns = (50 + k) * NS_PER_S,
			.tsc_hz = 1000000000,
			.collectors = RINGTAP_DEVICES | RINGTAP_BUSY,
			.device_stat_count = 1,
			.lcore_count = 2,
			.thread_count = 1,
			.device_stats = {devices[k], sizeof(devices[k][0])},
			.lcores = {lcores[k], sizeof(lcores[k][0])},
			.threads = {thread[k], sizeof(thread[k][0])}};
	}
	app = (struct watched){
		.name = (char *)"app", .now = &snapshots[1], .mark = &snapshots[0], .tsc_hz = 1e9};
	return span_of(&app, &s) ? 0 : -1;
}

static double number(enum rt_metric_object object, uint32_t i, enum rt_metric_id id)
{
	struct metric_value v;
	struct subject x;

	subject_make(&x, &s, object, i, true);
	metric_get(&x, id, false, &v);
	return v.number;
}

static void assert_json(enum rt_metric_object object, uint32_t i, const char *text)
{
	json_t *j = json_object();
	struct subject x;
	char *is;

	subject_make(&x, &s, object, i, true);
	metrics_json(j, &x, object, false);
	is = json_dumps(j, JSON_COMPACT);
	assert_string_equal(is, text);
	free(is);
	json_decref(j);
}

static void a_statistic_of_a_channel(void **state)
{
	assert_json(RT_OBJECT_DEVICE, 0,
		"{\"kind\":\"dmadev\",\"device\":\"dma_skeleton0\",\"index\":3,"
		"\"part\":\"channel 7\",\"name\":\"submitted\",\"removed\":false,\"value\":400,"
		"\"per_second\":150.0}");
}

static void a_statistic_of_a_device_that_is_gone(void **state)
{
	devices[1][0] = (struct ringtap_device_stat){.device = "crypto_null0",
		.name = "enqueued_count",
		.kind = RINGTAP_CRYPTODEV,
		.gone = true,
		.value = (1ull << 53) + 1,
		.read_ns = 7 * NS_PER_S};
	snapshots[0].device_stat_count = 0;
	assert_json(RT_OBJECT_DEVICE, 0,
		"{\"kind\":\"cryptodev\",\"device\":\"crypto_null0\",\"index\":0,\"part\":null,"
		"\"name\":\"enqueued_count\",\"removed\":true,"
		"\"value\":\"9007199254740993\",\"per_second\":null}");
}

static void growth_that_is_unknown(void **state)
{
	devices[1][0].value = 99; /* reset */
	assert_true(isnan(number(RT_OBJECT_DEVICE, 0, RT_M_DEVICE_RATE)));
	devices[1][0].value = 100;
	assert_float_equal(number(RT_OBJECT_DEVICE, 0, RT_M_DEVICE_RATE), 0, 0);
	devices[1][0].read_ns = devices[0][0].read_ns;
	assert_true(isnan(number(RT_OBJECT_DEVICE, 0, RT_M_DEVICE_RATE)));
	devices[1][0].read_ns = 0;
	assert_true(isnan(number(RT_OBJECT_DEVICE, 0, RT_M_DEVICE_VALUE)));
}

/* The entries are still there, with old values. */
static void collectors_that_are_off(void **state)
{
	assert_int_equal(subject_count(&snapshots[1], RT_OBJECT_DEVICE), 1);
	assert_int_equal(subject_count(&snapshots[1], RT_OBJECT_LCORE), 2);
	snapshots[1].collectors = RINGTAP_POLLS;
	assert_int_equal(subject_count(&snapshots[1], RT_OBJECT_DEVICE), 0);
	assert_int_equal(subject_count(&snapshots[1], RT_OBJECT_LCORE), 0);
}

static void usage_of_an_lcore(void **state)
{
	assert_json(RT_OBJECT_LCORE, 1,
		"{\"lcore\":1,\"total_cycles\":4000,\"busy_cycles\":1000,\"busy_share\":0.25}");
	assert_float_equal(number(RT_OBJECT_THREAD, 0, RT_M_LCORE_USAGE), 0.25, 1e-9);
	assert_false(subject_wanted(&s, RT_OBJECT_LCORE, 0));
	assert_true(subject_wanted(&s, RT_OBJECT_LCORE, 1));
}

static void usage_that_is_unknown(void **state)
{
	thread[1][0].lcore = 0;
	assert_true(isnan(number(RT_OBJECT_THREAD, 0, RT_M_LCORE_USAGE)));
	thread[1][0].lcore = UINT32_MAX; /* no lcore's */
	assert_true(isnan(number(RT_OBJECT_THREAD, 0, RT_M_LCORE_USAGE)));
	thread[1][0].lcore = 1;
	lcores[1][1].total_cycles = 999; /* the application began again */
	assert_true(isnan(number(RT_OBJECT_THREAD, 0, RT_M_LCORE_USAGE)));
	lcores[1][1].total_cycles = 1000;
	assert_true(isnan(number(RT_OBJECT_THREAD, 0, RT_M_LCORE_USAGE)));
	lcores[1][1].total_cycles = 1900; /* busy cycles of a moment later */
	assert_float_equal(number(RT_OBJECT_THREAD, 0, RT_M_LCORE_USAGE), 1, 0);
	snapshots[0].lcore_count = 1;
	assert_true(isnan(number(RT_OBJECT_THREAD, 0, RT_M_LCORE_USAGE)));
}

#define CASE(t) cmocka_unit_test_setup(t, setup)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_statistic_of_a_channel),
		CASE(a_statistic_of_a_device_that_is_gone),
		CASE(growth_that_is_unknown),
		CASE(collectors_that_are_off),
		CASE(usage_of_an_lcore),
		CASE(usage_that_is_unknown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
